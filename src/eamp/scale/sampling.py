"""Batches of sampled neighbours, as PyG's ``NeighborLoader`` draws them, with unbiased energies."""

import torch
from torch import Tensor
from torch_geometric.data import Data

from eamp.graph import Graph, GraphError
from eamp.graph.csr import build_csr
from eamp.graph.formats import check_weight
from eamp.scale.halo_graph import HaloGraph


class SampledGraph(HaloGraph):
    """Nodes with a sample of their neighbours, made by :func:`sampled_graph`.

    The halo is a copy of all rows. Every node is joined to copies of its sampled neighbours, since
    these need not have sampled the node in turn.
    """

    _sampled_edges: Tensor
    _whole: Graph

    @property
    def num_edges(self) -> int:
        """Number of sampled neighbours."""
        return self._sampled_edges.size(1)

    @property
    def edge_index(self) -> Tensor:
        """``[2, num_edges]``, from sampled neighbours to their nodes, as PyG's layers take it."""
        return self._sampled_edges

    @property
    def edge_weight(self) -> None:
        """Always ``None``: PyG's layers see the sampled edges without weights."""
        return

    def halo(self, x: Tensor) -> Tensor:
        """Return all rows."""
        return x

    @property
    def sampled_from(self) -> Graph:
        """The whole graph."""
        return self._whole

    def __repr__(self) -> str:
        return f"SampledGraph(num_nodes={self.num_nodes}, num_edges={self.num_edges})"


def sampled_graph(batch: Data, graph: Graph) -> SampledGraph:
    r"""Return a graph on which sums over sampled neighbours estimate sums over all neighbours.

    For a node with :math:`n_i` neighbours, of which :math:`S_i` were sampled uniformly, the energy
    is estimated by

    .. math::
        \hat E_i = \frac{C_i}{2} \frac{n_i}{\lvert S_i \rvert}
            \sum_{j \in S_i} a_{ij} \lVert x_j - x_i \rVert^2

    with :math:`C_i` of the true degree. For given features its mean over samples is :math:`E_i`. It
    is exact if all neighbours were sampled. The same holds for every sum over neighbours, such as
    the propagation of eamp's layers. Derivatives are those of the estimates.

    Nonlinear functions of these sums are biased: :math:`p_i`, the entropy, the step, and, as in any
    sampled network, the second layer. A node without sampled neighbours has energy 0. An
    entropy-aware layer reads three hops (two with ``placement="input"``), so sample more hops than
    there are layers. PyG's layers see the sampled edges and their degrees. Means over all nodes are
    those of the batch. Thresholds (``Gain``) are those of the whole graph, estimated once.
    ``normalize=True`` raises an error.

    Args:
        batch: a batch of ``NeighborLoader`` (with its default ``subgraph_type="directional"``), or
            any object with ``edge_index`` (from sampled neighbours to their nodes), ``n_id`` (the
            numbers of its nodes in ``graph``) and, if the graph has weights, ``edge_weight``.
        graph: the whole graph. The edge list that is sampled from must hold every edge once.

    Raises:
        GraphError: if the batch was not sampled from the graph.

    Example:
        >>> import torch, eamp
        >>> from eamp.scale import sampled_graph
        >>> from torch_geometric.data import Data
        >>> star = eamp.Graph(torch.tensor([[0, 0, 0], [1, 2, 3]]), symmetrize=True)
        >>> x = torch.tensor([[0.0], [1.0], [2.0], [3.0]])
        >>> sampled = torch.tensor([[1], [0]])                # one neighbour of the centre
        >>> batch = Data(x=x[[0, 2]], n_id=torch.tensor([0, 2]), edge_index=sampled)
        >>> eamp.dirichlet_energy(batch.x, sampled_graph(batch, star))     # C/2 · 3 · 2²
        tensor([3.4641, 0.0000])
        >>> eamp.dirichlet_energy(x, star)[0]                       # C/2 · (1² + 2² + 3²)
        tensor(4.0415)
    """
    check_batch(batch, graph)
    nodes, weight = batch.n_id, getattr(batch, "edge_weight", None)
    neighbour, centre = batch.edge_index
    keep = neighbour != centre  # PyG samples self-loops as neighbours
    neighbour, centre = neighbour[keep], centre[keep]
    true = graph.csr.rowptr.diff()[nodes].double()
    if bool((strange := true[centre] == 0).any()):
        raise GraphError(
            f"the batch has neighbours of node {int(nodes[centre[strange][0]])}, which has none in "
            "the whole graph: sample from the Data that the graph is made of."
        )
    count = nodes.numel()
    share = centre.bincount(minlength=count).double() / true
    if weight is not None:
        weight = check_weight(weight, batch.edge_index)
    scale = 1 / share[centre] if weight is None else weight[keep].double() / share[centre]
    edges = torch.stack([centre, neighbour + count])
    return SampledGraph._of(
        build_csr(torch.cat([edges, edges.flip(0)], 1), torch.cat([scale, scale]), 2 * count),
        graph.degree[nodes],
        _sampled_edges=batch.edge_index,
        _whole=graph,
    )


def check_batch(batch: Data, graph: Graph) -> None:
    """Raise an error unless ``batch`` looks like a sample of one large ``graph``."""
    if graph.batch is not None:
        raise GraphError("neighbours are sampled from one graph, but this is a batch of graphs.")
    if getattr(batch, "n_id", None) is None or getattr(batch, "edge_index", None) is None:
        raise GraphError(
            "a sampled batch needs edge_index and n_id, the numbers of its nodes, as "
            "NeighborLoader gives them."
        )
    weighted = getattr(batch, "edge_weight", None) is not None
    if weighted != (graph.edge_weight is not None):
        which = ("the batch", "the whole graph") if weighted else ("the whole graph", "the batch")
        raise GraphError(
            f"{which[0]} has edge weights and {which[1]} has none: sample from the Data that the "
            "graph is made of."
        )
