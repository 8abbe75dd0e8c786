"""Allen–Cahn message passing."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor
from torch.nn import Module, Parameter
from torch_geometric.nn.dense.linear import Linear

from eamp import ops
from eamp.graph import Adjacency, as_graph, graph_for
from eamp.nn.checkpointing import in_segments
from eamp.nn.conv.attention_diffusion import AttentionDiffusion
from eamp.nn.conv.gcn_conv import gcn_propagate
from eamp.nn.conv.ode import EntropyForce, Flow, VectorField
from eamp.nn.entropic import Entropy
from eamp.ops import dropout

AttractionKind = Literal["gat", "gcn"]


class GCNDiffusion(VectorField):
    r"""Attraction with the weights of the graph convolution, :math:`\sum_j \hat{a}_{ij} (x_j - x_i)` with
    :math:`\hat{a}_{ij} = a_{ij} / \sqrt{(k_i + 1)(k_j + 1)}`.

    BibTeX key for ``eamp cite``: ``kipf2017semi``.

    Example:
        >>> import torch
        >>> GCNDiffusion()(torch.tensor([[0.0], [1.0]]), torch.tensor([[0, 1], [1, 0]]))
        tensor([[ 0.5000],
                [-0.5000]])
    """

    def forward(self, x: Tensor, edge_index: Adjacency) -> Tensor:
        """Â x less the row sums of Â; the self-loops cancel."""
        ones = torch.ones_like(x[:, :1])
        total = gcn_propagate(torch.cat([x, ones], 1), edge_index)
        return total[:, :-1] - total[:, -1:] * x


class AllenCahn(VectorField):
    r"""Attraction, repulsion and a double well,
    :math:`\dot{x}_i = \alpha \odot \sum_j (a_{ij} - \beta)(x_j - x_i) + \delta \odot x_i \odot (1 - x_i \odot x_i)`.

    Args:
        channels: size of the features.
        attraction: the field :math:`\sum_j a_{ij} (x_j - x_i)`.
        repulsion: :math:`\beta`.
        coupling: what every :math:`\alpha` starts from, in (0, 1).
        well: what every :math:`\delta` starts from, in (0, 1).

    Shapes:
        - **input:** features :math:`(|\mathcal{V}|, F)`, edge indices :math:`(2, |\mathcal{E}|)` or an :class:`eamp.Graph`.
        - **output:** features :math:`(|\mathcal{V}|, F)`.

    BibTeX key for ``eamp cite``: ``wang2023acmp``.

    Example:
        >>> import torch
        >>> field = AllenCahn(1, GCNDiffusion(), repulsion=0.0)
        >>> field(torch.ones(2, 1), torch.tensor([[0, 1], [1, 0]]))     # together at the bottom of a well: at rest
        tensor([[0.],
                [0.]], grad_fn=<AddBackward0>)
    """

    def __init__(
        self,
        channels: int,
        attraction: VectorField,
        repulsion: float,
        coupling: float = 0.5,
        well: float = 0.5,
    ) -> None:
        super().__init__()
        for name, value in (("coupling", coupling), ("well", well)):
            if not 0 < value < 1:
                raise ValueError(
                    f"{name} must lie strictly between 0 and 1, but is {value}; it is learned from there through a sigmoid."
                )
        self.attraction, self.repulsion, self.coupling, self.well = (
            attraction,
            repulsion,
            coupling,
            well,
        )
        self.logit_coupling = Parameter(torch.empty(channels))
        self.logit_well = Parameter(torch.empty(channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Every channel of α and δ back to where it started."""
        self.attraction.reset_parameters()
        torch.nn.init.constant_(self.logit_coupling, math.log(self.coupling / (1 - self.coupling)))
        torch.nn.init.constant_(self.logit_well, math.log(self.well / (1 - self.well)))

    def at_start(self, x: Tensor, edge_index: Adjacency) -> tuple[Tensor, ...]:
        """What the attraction keeps from time 0."""
        return self.attraction.at_start(x, edge_index)

    def forward(self, x: Tensor, edge_index: Adjacency, *frozen: Tensor) -> Tensor:
        """The three forces."""
        force: Tensor = self.attraction(x, edge_index, *frozen)
        if self.repulsion != 0:
            graph = graph_for(x, edge_index)
            # −β Σ_j (x_j − x_i) = β Σ_j (q_i + q_j)(x_i − x_j) with q = ½
            half = torch.full(
                (x.size(0),),
                0.5,
                dtype=torch.promote_types(x.dtype, torch.float32),
                device=x.device,
            )
            force = force + self.repulsion * ops.weighted_differences(half, x, graph)
        return torch.sigmoid(self.logit_coupling) * force + torch.sigmoid(self.logit_well) * x * (
            1 - x * x
        )


class ACMP(Module):
    r"""Allen–Cahn message passing, from `"ACMP: Allen-Cahn Message Passing with Attractive and Repulsive Forces for Graph Neural Networks"
    <https://arxiv.org/abs/2206.05437>`_ (Wang et al., 2022).

    .. math::
        \dot{x}_i = \alpha \odot \sum_{j \in \mathcal{N}_i} (a_{ij} - \beta)(x_j - x_i) + \delta \odot x_i \odot (1 - x_i \odot x_i)
        + \lambda \nabla_{x_i} S

    Nodes joined by a weight above :math:`\beta` attract each other, the others repel; the double well with bottoms at :math:`\pm 1` keeps
    the repulsion from blowing up. :math:`\alpha` and :math:`\delta` are learned, one per channel, and kept in (0, 1) by a sigmoid, as in
    the authors' code. That code sums :math:`(a_{ij} - \beta) x_j` and subtracts :math:`x_i`; here stands the published sum of differences.

    Args:
        in_channels: size of each input sample.
        hidden_channels: size of the particles' features.
        out_channels: number of classes.
        num_layers: the time of the integration; each of its units is one layer to a probe.
        dropout: dropout before the encoder and before the decoder.
        entropy: options of :class:`eamp.nn.conv.ode.EntropyForce`: ``weight``, ``temperature``, ``detach``, ``normalize``, ``variant``.
            The term is :math:`\lambda \nabla S`, not :math:`\lambda T \nabla S`.
        attraction: ``"gat"`` learns :math:`a_{ij}` by attention, see :class:`eamp.nn.conv.attention_diffusion.AttentionDiffusion`; ``"gcn"`` has
            the constant weights of the graph convolution.
        every_evaluation: let the attention follow the moving features; otherwise it is taken at time 0, as in the authors' code.
        repulsion: :math:`\beta \ge 0`. A node of degree k feels it k times, so explicit steps are stable only while
            :math:`\alpha \beta k` per step stays below about 1: more steps, or an adaptive solver, for large :math:`\beta` and hubs.
        coupling: what every :math:`\alpha` starts from.
        well: what every :math:`\delta` starts from.
        heads: number of attention heads.
        head_channels: size of each head's queries and keys.
        method: solver, see :class:`eamp.nn.conv.ode.Flow`.
        steps_per_layer: steps per unit of time of a fixed-step solver.
        rtol: relative tolerance of an adaptive solver.
        atol: its absolute tolerance.
        adjoint: back-propagate through the adjoint equation.
        checkpoint: keep the embedding after a few units of time only and compute the others a second time in the backward pass; see
            :func:`eamp.nn.checkpointing.in_segments`.

    Shapes:
        - **input:** features :math:`(|\mathcal{V}|, F_{in})`, edge indices :math:`(2, |\mathcal{E}|)` or an :class:`eamp.Graph`.
        - **output:** logits :math:`(|\mathcal{V}|, F_{out})`.

    BibTeX key for ``eamp cite``: ``wang2023acmp``.

    Example:
        >>> import torch
        >>> model = ACMP(16, 32, 7, num_layers=4, attraction="gcn", repulsion=0.1)
        >>> model(torch.randn(3, 16), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])).shape
        torch.Size([3, 7])
    """

    takes_sparse_features = True

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int,
        *,
        dropout: float = 0.0,
        entropy: Entropy = None,
        attraction: AttractionKind = "gat",
        every_evaluation: bool = False,
        repulsion: float = 0.05,
        coupling: float = 0.5,
        well: float = 0.5,
        heads: int = 4,
        head_channels: int = 16,
        method: str = "euler",
        steps_per_layer: int = 10,
        rtol: float = 1e-4,
        atol: float = 1e-5,
        adjoint: bool = False,
        checkpoint: bool = False,
    ) -> None:
        super().__init__()
        if attraction not in ("gat", "gcn"):
            raise ValueError(f"attraction must be 'gat' or 'gcn', but is {attraction!r}.")
        self.num_layers, self.dropout, self.checkpoint = num_layers, dropout, checkpoint
        self.encoder = Linear(
            in_channels, hidden_channels, weight_initializer="glorot", bias_initializer="zeros"
        )
        self.decoder = Linear(
            hidden_channels, out_channels, weight_initializer="glorot", bias_initializer="zeros"
        )
        attract = (
            GCNDiffusion()
            if attraction == "gcn"
            else AttentionDiffusion(hidden_channels, heads, head_channels, every_evaluation)
        )
        self.field = AllenCahn(hidden_channels, attract, repulsion, coupling, well)
        self.flow = Flow(
            method,
            steps=steps_per_layer,
            rtol=rtol,
            atol=atol,
            adjoint=adjoint,
            force=EntropyForce.of(entropy),
        )

    def reset_parameters(self) -> None:
        """Glorot for all weights, zero for all biases, α and δ as given."""
        self.encoder.reset_parameters()
        self.field.reset_parameters()
        self.decoder.reset_parameters()

    def forward(self, x: Tensor, edge_index: Adjacency) -> Tensor:
        """Encode, let the particles move for ``num_layers`` units of time, decode."""
        edge_index = graph = as_graph(edge_index, x.size(0))
        x = self.encoder(dropout(x, self.dropout, self.training, graph.rows))
        frozen = self.field.at_start(x, edge_index)
        x = in_segments(
            lambda x, _: self.flow(x, edge_index, self.field, *frozen),
            range(self.num_layers),
            x,
            self.checkpoint,
        )
        return self.decoder(dropout(torch.relu(x), self.dropout, self.training, graph.rows))
