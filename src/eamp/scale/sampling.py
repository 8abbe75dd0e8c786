"""Batches of sampled neighbours, as PyG's ``NeighborLoader`` draws them, with energies that are right on average."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.data import Data

from eamp.graph import Graph, GraphError, build_csr
from eamp.ops.part import Copies, PartCSR


class SampledGraph(Graph):
    """What :func:`sampled_graph` makes: nodes with some of their neighbours, whose sums count for all of them."""

    csr: PartCSR
    sampled: Tensor

    @property
    def num_edges(self) -> int:
        """Neighbours that were sampled."""
        return self.sampled.size(1)

    @property
    def device(self) -> torch.device:
        """Where the batch lies."""
        return self.sampled.device

    @property
    def edge_index(self) -> Tensor:
        """``[2, num_edges]`` as sampled, from a neighbour to the node that it was sampled for: what PyG's layers get."""
        return self.sampled

    def to(self, device: torch.device | str, non_blocking: bool = False) -> Graph:
        """Made where it is used: move the batch and the whole graph first."""
        if torch.device(device) == self.device:
            return self
        raise GraphError(
            f"a sampled graph stays on {self.device}; make it of a batch and a graph that are on {device}."
        )

    def __repr__(self) -> str:
        return f"SampledGraph(num_nodes={self.num_nodes}, num_edges={self.num_edges})"


def sampled_graph(batch: Data, graph: Graph) -> SampledGraph:
    r"""The graph of a batch of sampled neighbours, on which sums over neighbours are estimates of those over all neighbours.

    Of a node with :math:`n_i` neighbours, of which :math:`S_i` were sampled uniformly, the energy is estimated by

    .. math::
        \hat E_i = \frac{C_i}{2} \frac{n_i}{\lvert S_i \rvert} \sum_{j \in S_i} a_{ij} \lVert x_j - x_i \rVert^2

    with :math:`C_i` of the true degree. For given features it is unbiased: its mean over samples is :math:`E_i`, and it *is*
    :math:`E_i` where all neighbours were sampled. So is every sum over neighbours, the propagation of our layers among them. Derivatives
    are those of the estimates.

    What is not unbiased: whatever is no linear function of such sums, so :math:`p_i`, the entropy and the step, and a network's second
    layer, as with any sampled network. A node at the batch's rim, without sampled neighbours, counts as one of energy 0; an entropy-aware
    layer looks three hops far (two with ``placement="input"``), so sample more hops than there are layers. Layers of PyG get the sampled
    ``edge_index`` and see sampled degrees. Means over all nodes are those over the batch. Thresholds (``Gain``), ``normalize=True`` and
    whatever reads single edges are refused.

    Args:
        batch: a batch of ``NeighborLoader`` (``subgraph_type="directional"``, its default, with no neighbour added that was not sampled),
            or anything with ``edge_index`` (from sampled neighbours to the nodes they were sampled for), ``n_id`` (the nodes' numbers in
            ``graph``) and, if the graph has weights, ``edge_weight``.
        graph: the whole graph, of an edge list that has every edge once: a sampler counts neighbours twice that are listed twice.

    Example:
        >>> import torch, eamp
        >>> from eamp.scale import sampled_graph
        >>> from torch_geometric.data import Data
        >>> star = eamp.Graph(torch.tensor([[0, 0, 0], [1, 2, 3]]), symmetrize=True)
        >>> x = torch.tensor([[0.0], [1.0], [2.0], [3.0]])
        >>> batch = Data(x=x[[0, 2]], n_id=torch.tensor([0, 2]), edge_index=torch.tensor([[1], [0]]))   # one neighbour of the centre
        >>> eamp.dirichlet_energy(batch.x, sampled_graph(batch, star))                             # C/2 · 3 · 2²
        tensor([3.4641, 0.0000])
        >>> eamp.dirichlet_energy(x, star)[0]                                                    # C/2 · (1² + 2² + 3²)
        tensor(4.0415)
    """
    check_batch(batch, graph)
    nodes, weight = batch.n_id, getattr(batch, "edge_weight", None)
    neighbour, centre = batch.edge_index
    if bool(
        (loops := neighbour == centre).any()
    ):  # PyG samples them as neighbours, and they are none
        neighbour, centre, weight = (
            neighbour[~loops],
            centre[~loops],
            None if weight is None else weight[~loops],
        )
    count = nodes.numel()
    true = graph.csr.rowptr.diff()[nodes].double()
    if bool((strange := true[centre] == 0).any()):
        node = int(nodes[centre[strange][0]])
        raise GraphError(
            f"the batch has neighbours of node {node}, which has none in the whole graph: are they the same graph?"
        )
    share = centre.bincount(minlength=count).double() / true
    scale = (1 / share)[centre] if weight is None else weight.double() / share[centre]

    # Who was sampled for a node need not have sampled that node in turn. Copies of all nodes, joined to the nodes that they were sampled
    # for, make an undirected graph on which the nodes' sums are the sampled ones.
    copy = neighbour + count
    edges = torch.stack([torch.cat([centre, copy]), torch.cat([copy, centre])])
    local = build_csr(edges, torch.cat([scale, scale]), 2 * count, symmetrize=False)
    everyone = torch.arange(count, device=nodes.device)
    csr = PartCSR.make(
        local, graph.csr.degree[nodes], graph.csr.rsqrt_degree[nodes], Copies(), everyone, count
    )
    made: SampledGraph = object.__new__(SampledGraph)
    made._fill(csr, count, None, 1)
    object.__setattr__(made, "sampled", batch.edge_index)
    return made


def check_batch(batch: Data, graph: Graph) -> None:
    """A batch that knows where its nodes come from."""
    if graph.batch is not None:
        raise GraphError(
            "neighbours are sampled from one large graph, but this is a batch of graphs."
        )
    if getattr(batch, "n_id", None) is None or getattr(batch, "edge_index", None) is None:
        raise GraphError(
            "a sampled batch needs edge_index and n_id, its nodes' numbers in the whole graph, as NeighborLoader gives them."
        )
    weighted = getattr(batch, "edge_weight", None) is not None
    if weighted != (graph.edge_weight is not None):
        which = ("the batch", "the whole graph") if weighted else ("the whole graph", "the batch")
        raise GraphError(
            f"{which[0]} has edge weights and {which[1]} has none: sample from the Data that the graph is made of."
        )
