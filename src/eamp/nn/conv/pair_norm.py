"""Pair normalisation."""

import torch_geometric.nn
from torch import Tensor

from eamp.graph import Adjacency, Graph
from eamp.ops import node_mean, node_sum
from eamp.ops.part import PartCSR


class PairNorm(torch_geometric.nn.PairNorm):  # type: ignore[misc]  # PyG has no types
    r"""Pair normalisation, which keeps the total distance between the nodes of a graph constant.

    From `"PairNorm: Tackling Oversmoothing in GNNs" <https://arxiv.org/abs/1909.12223>`_ (Zhao &
    Akoglu, 2020).

    .. math::
        \mathbf{x}_i' = s \, \frac{\mathbf{x}_i - \bar{\mathbf{x}}}
            {\sqrt{\frac{1}{n} \sum_j \lVert \mathbf{x}_j - \bar{\mathbf{x}} \rVert^2}}

    In a batch of graphs (an :class:`eamp.Graph` that knows its ``batch``) every graph is normalised
    by itself. The norm has no parameters.

    Args:
        scale: :math:`s`, the root mean square distance of the nodes from their mean after the norm.
        scale_individually: Divide every node by its own norm instead of the root mean square norm
            of all nodes.

    Example:
        >>> import torch
        >>> PairNorm(scale=3.0)(torch.tensor([[0.0], [1.0]]), torch.tensor([[0, 1], [1, 0]]))
        tensor([[-2.9999],
                [ 2.9999]])
    """

    def __init__(self, scale: float = 1.0, scale_individually: bool = False) -> None:
        super().__init__(scale, scale_individually)

    def forward(self, x: Tensor, graph: Adjacency) -> Tensor:
        """Centre and scale the features."""
        if not isinstance(graph, Graph):
            return super().forward(x)
        if not isinstance(graph.csr, PartCSR):
            return super().forward(x, graph.batch, graph.num_graphs)
        # The mean and the norm are those over the nodes of all processes.
        x = x - node_sum(x, graph.csr) / graph.csr.num_nodes
        if self.scale_individually:
            return self.scale * x / (self.eps + x.norm(2, -1, keepdim=True))
        return self.scale * x / (self.eps + node_mean(x.square().sum(1), graph.csr)).sqrt()
