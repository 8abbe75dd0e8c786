"""Graph neural diffusion, plain and entropy-aware."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric.nn.dense.linear import Linear

from eamp import ops
from eamp.graph import Adjacency, Graph, as_graph, graph_for
from eamp.nn.checkpointing import in_segments
from eamp.nn.conv.attention_diffusion import AttentionDiffusion
from eamp.nn.conv.ode import EntropyForce, Flow, VectorField
from eamp.nn.entropic import Entropy
from eamp.ops import dropout

AttentionKind = Literal["linear", "nonlinear", "constant"]


class RandomWalkDiffusion(VectorField):
    r"""Diffusion with equal weights, :math:`\dot{\mathbf{X}} = (\tilde{D}^{-1}(A + I) - I)\, \mathbf{X}` with :math:`\tilde{D} = D + I`.

    It is the attention of :class:`AttentionDiffusion` with all scores equal. The mean weighted by :math:`k_i + 1` never changes (the plain
    mean, where all degrees are equal), and :math:`\sum_{ij} a_{ij} \lVert x_i - x_j \rVert^2` falls at all times.

    Shapes:
        - **input:** features :math:`(|\mathcal{V}|, F)`, edge indices :math:`(2, |\mathcal{E}|)` or an :class:`eamp.Graph`.
        - **output:** features :math:`(|\mathcal{V}|, F)`.

    BibTeX key for ``eamp cite``: ``chamberlain2021grand``.

    Example:
        >>> import torch
        >>> RandomWalkDiffusion()(torch.tensor([[0.0], [1.0]]), torch.tensor([[0, 1], [1, 0]]))
        tensor([[ 0.5000],
                [-0.5000]])
    """

    def forward(self, x: Tensor, edge_index: Adjacency) -> Tensor:
        """One pass over the edges."""
        graph = graph_for(x, edge_index)
        return (
            ops.neighbour_sums(
                1 / (graph.degree + 1), x, torch.ones_like(graph.degree), graph, self_loops=True
            )
            - x
        )


class GRAND(Module):
    r"""Graph neural diffusion, from `"GRAND: Graph Neural Diffusion" <https://arxiv.org/abs/2106.10934>`_ (Chamberlain et al., 2021), and
    its entropy-aware form, from the appendix of `"Entropy Aware Message Passing in Graph Neural Networks"
    <https://arxiv.org/abs/2403.04636>`_ (Nazari et al., 2024).

    .. math::
        \dot{\mathbf{X}} = (\mathbf{A}(\mathbf{X}) - I)\, \mathbf{X} + \lambda \nabla S(\mathbf{X}), \qquad
        \mathbf{X}(0) = \text{encoder}(\mathbf{X}_{in}), \qquad \text{logits} = \text{decoder}(\mathbf{X}(L))

    Args:
        in_channels: size of each input sample.
        hidden_channels: size of the diffusing features.
        out_channels: number of classes.
        num_layers: :math:`L`, the time of the diffusion; each of its units is one layer to a probe.
        dropout: dropout before the encoder and before the decoder. None in between: the equation is deterministic.
        entropy: options of :class:`eamp.nn.conv.ode.EntropyForce`: ``weight``, ``temperature``, ``detach``, ``normalize``, ``variant``.
            The term is :math:`\lambda \nabla S`, as printed in the appendix, and not the :math:`\lambda T \nabla S` of
            :class:`eamp.EntropyAware`: multiply that one's weight by the temperature to compare.
        attention: ``"linear"`` takes :math:`\mathbf{A}` from the features at time 0; ``"nonlinear"`` takes it anew at every evaluation;
            ``"constant"`` is :math:`\tilde{D}^{-1}(A + I)`, without parameters.
        heads: number of attention heads.
        head_channels: size of each head's queries and keys.
        method: solver, see :class:`eamp.nn.conv.ode.Flow`; Euler with one step per layer is :math:`\mathbf{X} \leftarrow \mathbf{A X}`.
        steps_per_layer: steps per unit of time of a fixed-step solver.
        rtol: relative tolerance of an adaptive solver.
        atol: its absolute tolerance.
        adjoint: back-propagate through the adjoint equation.
        checkpoint: keep the embedding after a few units of time only and compute the others a second time in the backward pass; see
            :func:`eamp.nn.checkpointing.in_segments`.

    Shapes:
        - **input:** features :math:`(|\mathcal{V}|, F_{in})`, edge indices :math:`(2, |\mathcal{E}|)` or an :class:`eamp.Graph`.
        - **output:** logits :math:`(|\mathcal{V}|, F_{out})`.

    BibTeX key for ``eamp cite``: ``chamberlain2021grand``.

    Example:
        >>> import torch
        >>> model = GRAND(16, 32, 7, num_layers=4, entropy=dict(weight=1.0, temperature=1.0))
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
        attention: AttentionKind = "linear",
        heads: int = 4,
        head_channels: int = 16,
        method: str = "euler",
        steps_per_layer: int = 1,
        rtol: float = 1e-4,
        atol: float = 1e-5,
        adjoint: bool = False,
        checkpoint: bool = False,
    ) -> None:
        super().__init__()
        if attention not in ("linear", "nonlinear", "constant"):
            raise ValueError(
                f"attention must be 'linear', 'nonlinear' or 'constant', but is {attention!r}."
            )
        self.num_layers, self.dropout, self.checkpoint = num_layers, dropout, checkpoint
        self.encoder = Linear(
            in_channels, hidden_channels, weight_initializer="glorot", bias_initializer="zeros"
        )
        self.decoder = Linear(
            hidden_channels, out_channels, weight_initializer="glorot", bias_initializer="zeros"
        )
        self.field: VectorField = (
            RandomWalkDiffusion()
            if attention == "constant"
            else AttentionDiffusion(
                hidden_channels, heads, head_channels, every_evaluation=attention == "nonlinear"
            )
        )
        self.flow = Flow(
            method,
            steps=steps_per_layer,
            rtol=rtol,
            atol=atol,
            adjoint=adjoint,
            force=EntropyForce.of(entropy),
        )

    def reset_parameters(self) -> None:
        """Glorot for all weights, zero for all biases."""
        self.encoder.reset_parameters()
        self.field.reset_parameters()
        self.decoder.reset_parameters()

    def forward(self, x: Tensor, edge_index: Adjacency) -> Tensor:
        """Encode, diffuse for ``num_layers`` units of time, decode."""
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
