"""``GraphPart``: the part of a graph that one process holds, which models take as a graph."""

import torch
import torch.distributed as dist
from torch import Tensor

from eamp.graph import Graph, GraphError, Rows
from eamp.graph.csr import build_csr
from eamp.graph.subgraph import rows_of
from eamp.scale.halo_exchange import LinearMap, all_reduced, swapped
from eamp.scale.halo_graph import HaloGraph
from eamp.scale.partition import check_parts


class GraphPart(HaloGraph):
    """The nodes of one part of a graph, made by :func:`take_part`.

    If every process calls a model with its part, the results are those of the whole graph.
    Operations that read single edges, as PyG's layers do, raise an error. All processes must call
    the same methods in the same order.
    """

    rows_to_send: Tensor
    """Own rows that other processes need, ordered by the process that needs them."""
    sent: list[int]
    """How many of these rows go to each process."""
    received: list[int]
    """How many rows of the halo come from each process; the halo is ordered by process."""
    _rows: Rows
    _total_nodes: int

    @property
    def halo_size(self) -> int:
        """Number of nodes whose rows other processes send to this one."""
        return self.local_csr.rowptr.numel() - 1 - self.num_nodes

    @property
    def rows(self) -> Rows:
        """The places of the own rows in the whole graph."""
        return self._rows

    @property
    def total_nodes(self) -> int:
        """Number of nodes of the whole graph."""
        return self._total_nodes

    def halo(self, x: Tensor) -> Tensor:
        """Return the rows of the halo from the processes that own them."""
        return LinearMap.of(x, self._to_halos, self._to_owners)

    def _to_halos(self, x: Tensor) -> Tensor:
        return swapped(x.index_select(0, self.rows_to_send), self.sent, self.received)

    def _to_owners(self, halo: Tensor) -> Tensor:
        """Return the sum over the copies of every own row."""
        copies = swapped(halo, self.received, self.sent)
        zeros = halo.new_zeros(self.num_nodes, *halo.shape[1:])
        return zeros.index_add_(0, self.rows_to_send, copies)

    def total(self, values: Tensor) -> Tensor:
        """Return the sum over the nodes of all parts, ``[...]`` for values ``[n, ...]``.

        Every process holds a share of the loss, so derivatives are summed over processes, too.
        """
        return LinearMap.of(values.sum(0), all_reduced, all_reduced)

    def largest(self, values: Tensor) -> Tensor:
        """Return the largest of values ``[n]`` over the nodes of all parts.

        Equal values share its derivative, as they do in torch.
        """
        largest = all_reduced(values.amax(), dist.ReduceOp.MAX)
        equal = (values == largest).to(values.dtype)
        total, count = self.total(torch.stack([values * equal, equal], 1))
        return total / count.detach()

    def __repr__(self) -> str:
        return (
            f"GraphPart(num_nodes={self.num_nodes} of {self.total_nodes}, "
            f"num_edges={self.num_edges}, halo_size={self.halo_size})"
        )


def take_part(
    graph: Graph, part: Tensor, rank: int, parts: int, features: Tensor | None = None
) -> GraphPart:
    """Return the part of process ``rank``, without communication.

    Args:
        graph: the whole graph, the same on every process.
        part: ``[n]``, the process of every node; every process must have a node.
        rank: the process whose part is returned.
        parts: number of processes.
        features: the input features of the whole graph, for dropout of sparse features.

    Example:
        >>> import torch, eamp
        >>> path = eamp.Graph(torch.tensor([[0, 1, 2], [1, 2, 3]]), symmetrize=True)
        >>> take_part(path, torch.tensor([0, 0, 1, 1]), rank=0, parts=2)
        GraphPart(num_nodes=2 of 4, num_edges=2, halo_size=1)
    """
    check_parts(graph, part)
    found = part.unique().tolist()
    if found and not 0 <= found[0] <= found[-1] < parts:
        raise GraphError(
            f"parts must be numbered 0 to {parts - 1}, but range from {found[0]} to {found[-1]}."
        )
    if empty := sorted({*range(parts)} - {*found}):
        said = f"{len(empty)} of {parts} parts have no node, the first is {empty[0]}"
        raise GraphError(f"{said}; use fewer processes.")
    part, n = part.to(graph.device, torch.long), graph.num_nodes
    own = (part == rank).nonzero().squeeze(1)
    row, col, weight = rows_of(graph.csr, own)

    # One number for process and node. Sorted, rows arrive in the order in which they were sent.
    away = part[col] != rank
    received = torch.unique(part[col[away]] * n + col[away])
    sent = torch.unique(part[col[away]] * n + row[away])
    nodes = torch.cat([own, received % n])
    place = torch.full((n,), -1, dtype=torch.long, device=graph.device)
    place[nodes] = torch.arange(nodes.numel(), device=graph.device)

    # Edges to the halo are in the own rows once; their other direction makes the graph symmetric.
    edges = torch.stack([torch.cat([row, col[away]]), torch.cat([col, row[away]])])
    weights = None if weight is None else torch.cat([weight, weight[away]])
    entries = None
    if features is not None and features.layout == torch.sparse_csr:
        entries = features.crow_indices()[own].long()
    return GraphPart._of(
        build_csr(place[edges], weights, nodes.numel()),
        graph.degree[own],
        rows_to_send=place[sent % n],
        sent=(sent // n).bincount(minlength=parts).tolist(),
        received=(received // n).bincount(minlength=parts).tolist(),
        _rows=Rows(own, entries),
        _total_nodes=n,
    )
