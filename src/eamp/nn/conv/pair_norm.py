"""Pair normalisation."""

from torch import Tensor
from torch.nn import Module

from eamp.graph import Adjacency, graph_for
from eamp.ops import in_dtype, widen

EPSILON = 1e-5  # added to norms before the division, as in PyG's PairNorm


class PairNorm(Module):
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
    """

    def __init__(self, scale: float = 1.0, scale_individually: bool = False) -> None:
        super().__init__()
        self.scale, self.scale_individually = scale, scale_individually

    def forward(self, x: Tensor, edge_index: Adjacency) -> Tensor:
        """Centre and scale the features; the means are those over all nodes of a graph."""
        graph = graph_for(x, edge_index, needs_batch=True)
        wide = widen(x)  # half precision holds neither the sums nor the squares
        wide = wide - graph.mean(wide)
        if self.scale_individually:
            norm = EPSILON + wide.norm(2, -1, keepdim=True)
        else:
            norm = (EPSILON + graph.mean(wide.square().sum(1, keepdim=True))).sqrt()
        return in_dtype(self.scale * wide / norm, x.dtype)

    def extra_repr(self) -> str:
        """Return the scale, and how it is reached."""
        return f"scale={self.scale}, scale_individually={self.scale_individually}"
