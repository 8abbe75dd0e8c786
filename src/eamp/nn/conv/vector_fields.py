"""Vector fields on node features: the right-hand sides of differential equations on graphs."""

import math

import torch
from torch import Tensor
from torch.nn import Module, Parameter
from torch_geometric.nn.inits import reset
from torch_geometric.utils import softmax

from eamp import ops
from eamp.graph import Adjacency, Graph, graph_for
from eamp.graph.csr import rows_of_entries
from eamp.nn.checks import check_count
from eamp.nn.conv.gcn_conv import gcn_propagate, glorot_linear
from eamp.ops.edge_products import attended_sums, edge_products


class VectorField(Module):
    r"""The right-hand side :math:`f` of :math:`\dot{\mathbf{X}} = f(\mathbf{X})`.

    Shapes:
        - **input:** features :math:`(|\mathcal{V}|, F)`, edge indices :math:`(2, |\mathcal{E}|)` or
          an :class:`eamp.Graph`, and the tensors that :meth:`at_start` returned.
        - **output:** :math:`f(\mathbf{X})`, :math:`(|\mathcal{V}|, F)`.
    """

    def at_start(self, x: Tensor, edge_index: Adjacency) -> tuple[Tensor, ...]:
        """Return the tensors that are computed once, at time 0."""
        return ()


class RandomWalkDiffusion(VectorField):
    r"""Diffusion with the transition matrix of a random walk.

    .. math::
        \dot{\mathbf{X}} = (\tilde{D}^{-1}(A + I) - I)\, \mathbf{X}, \qquad \tilde{D} = D + I

    It is :class:`AttentionDiffusion` with equal scores. The mean of the nodes, weighted by
    :math:`k_i + 1`, is constant, and :math:`\sum_{ij} a_{ij} \lVert x_i - x_j \rVert^2` decreases.
    """

    def forward(self, x: Tensor, edge_index: Adjacency) -> Tensor:
        """Return the mean of every node and its neighbours, minus the node."""
        graph = graph_for(x, edge_index)
        inverse, ones = 1 / (graph.degree + 1), torch.ones_like(graph.degree)
        return ops.neighbour_sums(inverse, x, ones, graph, self_loops=True) - x


class GCNDiffusion(VectorField):
    r"""Diffusion with the weights of the graph convolution.

    .. math::
        \dot{x}_i = \sum_j \hat{a}_{ij} (x_j - x_i), \qquad
        \hat{a}_{ij} = \frac{a_{ij}}{\sqrt{(k_i + 1)(k_j + 1)}}
    """

    def forward(self, x: Tensor, edge_index: Adjacency) -> Tensor:
        """Return Â x minus x times the row sums of Â; the self-loops cancel."""
        ones = torch.ones_like(x[:, :1])
        total = gcn_propagate(torch.cat([x, ones], 1), edge_index)
        return total[:, :-1] - total[:, -1:] * x


class AttentionDiffusion(VectorField):
    r"""Diffusion weighted by scaled dot-product attention over a node's neighbours and itself.

    .. math::
        \dot{x}_i = \sum_{j \in \mathcal{N}_i} a_{ij} (x_j - x_i), \qquad
        a_{ij} = \operatorname{mean}_h \operatorname{softmax}_{j \in \mathcal{N}_i \cup \{i\}}
        \frac{(W_Q^h x_i) \cdot (W_K^h x_j)}{\sqrt{d}}

    The weights of a node add up to 1, its own included, so an isolated node does not change. The
    largest tensors have one number per edge and head; no features are gathered along the edges
    (:mod:`eamp.ops.edge_products`). Edge weights multiply the exponentials inside the softmax.

    Args:
        channels: Size of the features.
        heads: Number of attention heads :math:`h`, whose weights are averaged.
        head_channels: Size :math:`d` of each head's queries and keys.
        every_evaluation: Compute the attention from the present state at every evaluation, instead
            of once at time 0, which makes the equation linear.
    """

    def __init__(
        self, channels: int, heads: int = 4, head_channels: int = 16, every_evaluation: bool = False
    ) -> None:
        super().__init__()
        check_count("heads", heads)
        check_count("head_channels", head_channels)
        self.heads, self.head_channels = heads, head_channels
        self.every_evaluation = every_evaluation
        self.query = glorot_linear(channels, heads * head_channels)
        # A bias would add the same number to all scores of a node, which the softmax cancels.
        self.key = glorot_linear(channels, heads * head_channels, bias=False)

    def attention(self, x: Tensor, graph: Graph) -> tuple[Tensor, Tensor]:
        """Return the weights of the edges, ``[m]``, and of the nodes themselves, ``[n]``."""
        csr = graph.csr
        n, m, heads = x.size(0), csr.col.numel(), range(self.heads)
        size = n, self.heads, self.head_channels
        query = self.query(x).view(size) / math.sqrt(self.head_channels)
        key = self.key(x).view(size)
        own = (query * key).sum(-1)
        edge = torch.stack([edge_products(query[:, h], key[:, h], graph) for h in heads], 1)
        if csr.edge_weight is not None:
            smallest = torch.finfo(edge.dtype).tiny  # the logarithm of 0 would be −∞
            edge = edge + csr.edge_weight.to(edge.dtype).clamp(min=smallest).log().unsqueeze(1)
        # The last row, n, is that of the padding.
        row = torch.cat([rows_of_entries(csr), torch.arange(n, device=x.device)])
        weight = softmax(torch.cat([edge, own]), row, num_nodes=n + 1).mean(1)
        return weight[:m], weight[m:]

    def at_start(self, x: Tensor, edge_index: Adjacency) -> tuple[Tensor, ...]:
        """Return the attention at time 0, unless it is computed at every evaluation."""
        return () if self.every_evaluation else self.attention(x, graph_for(x, edge_index))

    def forward(self, x: Tensor, edge_index: Adjacency, *frozen: Tensor) -> Tensor:
        """Return Σ_j a_ij x_j − (1 − a_ii) x_i, where 1 − a_ii is the sum of the other weights."""
        graph = graph_for(x, edge_index)
        edge, own = frozen if frozen else self.attention(x, graph)
        return attended_sums(edge, x, graph) - (1 - own).unsqueeze(1) * x


class AllenCahn(VectorField):
    r"""Attraction and repulsion between neighbours, and the force of a double-well potential.

    .. math::
        \dot{x}_i = \alpha \odot \sum_{j \in \mathcal{N}_i} (a_{ij} - \beta)(x_j - x_i)
            + \delta \odot x_i \odot (1 - x_i \odot x_i)

    Args:
        channels: Size of the features.
        attraction: The vector field :math:`\sum_j a_{ij} (x_j - x_i)`.
        repulsion: :math:`\beta`.
        coupling: Initial value of :math:`\alpha` in every channel, in (0, 1).
        well: Initial value of :math:`\delta` in every channel, in (0, 1).
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
                raise ValueError(f"{name} must lie strictly between 0 and 1, but is {value}.")
        self.attraction, self.repulsion = attraction, repulsion
        self.coupling, self.well = coupling, well
        self.logit_coupling = Parameter(torch.empty(channels))
        self.logit_well = Parameter(torch.empty(channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reset the attraction, and α and δ to their initial values."""
        reset(self.attraction)
        torch.nn.init.constant_(self.logit_coupling, math.log(self.coupling / (1 - self.coupling)))
        torch.nn.init.constant_(self.logit_well, math.log(self.well / (1 - self.well)))

    def at_start(self, x: Tensor, edge_index: Adjacency) -> tuple[Tensor, ...]:
        """Return the tensors that the attraction computes at time 0."""
        return self.attraction.at_start(x, edge_index)

    def forward(self, x: Tensor, edge_index: Adjacency, *frozen: Tensor) -> Tensor:
        """Return the sum of the three forces."""
        force: Tensor = self.attraction(x, edge_index, *frozen)
        if self.repulsion != 0:
            graph = graph_for(x, edge_index)
            # −β Σ_j (x_j − x_i) = β Σ_j (q_i + q_j)(x_i − x_j) with q = ½
            half = x.new_full((x.size(0),), 0.5, dtype=ops.accumulate_dtype(x))
            force = force + self.repulsion * ops.weighted_differences(half, x, graph)
        coupling, well = self.logit_coupling.sigmoid(), self.logit_well.sigmoid()
        return coupling * force + well * x * (1 - x * x)
