"""``GraphPart``: the part of a graph that one process holds, which models take as a graph."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor

from eamp.graph import Graph, GraphError, Rows
from eamp.graph.csr import build_csr
from eamp.graph.subgraph import rows_of
from eamp.scale.halo_exchange import HaloExchange
from eamp.scale.halo_graph import HaloGraph
from eamp.scale.partition import check_parts


class GraphPart(HaloGraph):
    """The nodes of one part of a graph, made by :func:`take_part`.

    When every process calls a model with its part, the model computes for every node what it
    computes on the whole graph. Operations that read single edges, as PyG's layers do, raise an
    error.
    """

    exchange: HaloExchange
    """The communication with the other processes."""
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
        return self.exchange.halo(x)

    def total(self, values: Tensor) -> Tensor:
        """Return the sum over the nodes of all parts, ``[...]`` for values ``[n, ...]``."""
        return self.exchange.total(values.sum(0))

    def largest(self, values: Tensor) -> Tensor:
        """Return the largest of values ``[n]`` over the nodes of all parts.

        Equal values share its derivative, as they do in torch.
        """
        largest = self.exchange.largest(values.detach().amax())
        equal = (values == largest).to(values.dtype)
        total, count = self.total(torch.stack([values * equal, equal], 1))
        return total / count.detach()

    def __repr__(self) -> str:
        return (
            f"GraphPart(num_nodes={self.num_nodes} of {self.total_nodes}, "
            f"num_edges={self.num_edges}, halo_size={self.halo_size})"
        )


def take_part(
    graph: Graph,
    part: Tensor,
    rank: int,
    parts: int,
    group: dist.ProcessGroup | None = None,
    features: Tensor | None = None,
) -> GraphPart:
    """Return the part of process ``rank``, without communication.

    Args:
        graph: the whole graph, the same on every process.
        part: ``[n]``, the process of every node; every process must have a node.
        rank: the process whose part is returned.
        parts: number of processes.
        group: the torch process group, ``None`` for the default one.
        features: the input features of the whole graph, for dropout of sparse features.

    Example:
        >>> import torch, eamp
        >>> path = eamp.Graph(torch.tensor([[0, 1, 2], [1, 2, 3]]), symmetrize=True)
        >>> take_part(path, torch.tensor([0, 0, 1, 1]), rank=0, parts=2)
        GraphPart(num_nodes=2 of 4, num_edges=2, halo_size=1)
    """
    check_parts(graph, part)
    if part.numel() and (int(part.min()) < 0 or int(part.max()) >= parts):
        raise GraphError(
            f"parts must be numbered 0 to {parts - 1}, but range from {int(part.min())} to "
            f"{int(part.max())}."
        )
    empty = (part.bincount(minlength=parts) == 0).nonzero().squeeze(1).tolist()
    if empty:
        raise GraphError(
            f"{len(empty)} of {parts} parts have no node, the first is {empty[0]}; use fewer "
            "processes."
        )
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

    def by_process(keys: Tensor) -> list[int]:
        counts: list[int] = (keys // n).bincount(minlength=parts).tolist()
        return counts

    counts = by_process(sent), by_process(received)
    # Edges to the halo are in the own rows once; their other direction makes the graph symmetric.
    edges = torch.stack([torch.cat([row, col[away]]), torch.cat([col, row[away]])])
    weights = None if weight is None else torch.cat([weight, weight[away]])
    entries = None
    if features is not None and features.layout == torch.sparse_csr:
        entries = features.crow_indices()[own].long()
    return GraphPart._of(
        build_csr(place[edges], weights, nodes.numel()),
        graph.degree[own],
        exchange=HaloExchange(own.numel(), place[sent % n], *counts, group),
        _rows=Rows(own, entries),
        _total_nodes=n,
    )
