"""DropEdge: another random part of the edges in every training step."""

from torch import Tensor
from torch.nn import Module
from torch_geometric.utils import dropout_edge

from eamp.graph import Adjacency, Graph, graph_for
from eamp.nn.checks import check_module
from eamp.nn.models.model_inside import ModelInside
from eamp.nn.models.traits import traits


class DroppedGraph(Graph):
    """A random part of a graph's edges, on which λ is that of the whole graph.

    The threshold of every part would have to be estimated anew.
    """

    _whole: Graph

    @property
    def sampled_from(self) -> Graph:
        """The graph with all edges."""
        return self._whole


class DropEdge(ModelInside):
    r"""Any model, on a random part of the edges in every forward pass of training.

    From `"DropEdge: Towards Deep Graph Convolutional Networks on Node Classification"
    <https://arxiv.org/abs/1907.10903>`_ (Rong et al., 2020). All layers see the same edges, and
    their normalisation is that of the edges that are left. The threshold that an entropy step's
    gain is measured by is that of all edges. Edge weights are refused, and ``torch.compile`` can
    trace the model in evaluation mode alone.

    Args:
        model: A model of :mod:`eamp.nn`.
        drop_edge: Probability of dropping an edge, in both directions.

    Example:
        >>> import torch
        >>> from eamp.nn import GCN
        >>> model = DropEdge(GCN(16, 64, 7, num_layers=2), drop_edge=0.3)
        >>> model(torch.randn(3, 16), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])).shape
        torch.Size([3, 7])
    """

    def __init__(self, model: Module, drop_edge: float = 0.3) -> None:
        super().__init__()
        check_module(model, "DropEdge")
        if not 0 <= drop_edge < 1:
            raise ValueError(f"drop_edge must lie in [0, 1), but is {drop_edge}.")
        self.model, self.drop_edge = model, drop_edge
        self.takes_sparse_features = traits(model).takes_sparse_features

    def forward(self, x: Tensor, edge_index: Adjacency) -> Tensor:
        """Return the logits of every node."""
        graph = graph_for(x, edge_index)
        return self.model(x, self.dropped(graph) if self.training and self.drop_edge else graph)

    def dropped(self, graph: Graph) -> Graph:
        """Return the graph of the edges that are left."""
        if graph.edge_weight is not None:
            raise ValueError("DropEdge takes graphs without edge weights; leave the weights out.")
        graph.require_all_rows("DropEdge")
        edges, _ = dropout_edge(graph.edge_index, self.drop_edge, force_undirected=True)
        part = Graph(edges, graph.num_nodes)
        of_batch = (graph.batch, graph.num_graphs)
        return DroppedGraph._of(part.csr, part.degree, *of_batch, _whole=graph.sampled_from)

    def extra_repr(self) -> str:
        """Return the probability."""
        return f"drop_edge={self.drop_edge}"
