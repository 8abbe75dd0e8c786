"""One process' part of a graph, which our models take in place of a whole one."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor

from eamp.graph import Graph, GraphError, build_csr
from eamp.graph.subgraph import rows_of
from eamp.ops.part import PartCSR
from eamp.scale.halo_exchange import Routes, Wire


class GraphPart(Graph):
    """The nodes of one part as an :class:`eamp.Graph`: features have a row for each of them, and none for the halo.

    A model that is called with it on every process at once computes for every node what it computes on the whole graph. Operations that
    read edges one by one, as PyG's layers do, raise an error.
    """

    csr: PartCSR

    @property
    def num_edges(self) -> int:
        """Undirected edges with an end in this part."""
        return self.csr.local.col.numel() // 2

    @property
    def halo_size(self) -> int:
        """Number of nodes that other processes send to this one."""
        return self.csr.local.rowptr.numel() - 1 - self.num_nodes

    @property
    def device(self) -> torch.device:
        """Where the part lies."""
        return self.csr.local.col.device

    def to(self, device: torch.device | str, non_blocking: bool = False) -> Graph:
        """Parts are made where they are used: move the whole graph before it is cut."""
        if torch.device(device) == self.device:
            return self
        raise GraphError(
            f"a part of a graph stays on {self.device}; cut the graph after moving it to {device}."
        )

    def __repr__(self) -> str:
        return f"GraphPart(num_nodes={self.num_nodes} of {self.csr.num_nodes}, num_edges={self.num_edges}, halo_size={self.halo_size})"


def take_part(
    graph: Graph, part: Tensor, rank: int, parts: int, group: dist.ProcessGroup | None = None
) -> GraphPart:
    """The part of process ``rank``, where ``part`` ``[n]`` tells every node's process. Needs no talk between the processes.

    Args:
        graph: the whole graph, the same on every process.
        part: from 0 to ``parts - 1``, none of which may be empty.
        rank: whose part.
        parts: how many processes there are.
        group: of processes; the default one when left out.

    Example:
        >>> import torch, eamp
        >>> path = eamp.Graph(torch.tensor([[0, 1, 2], [1, 2, 3]]), symmetrize=True)
        >>> take_part(path, torch.tensor([0, 0, 1, 1]), rank=0, parts=2)
        GraphPart(num_nodes=2 of 4, num_edges=2, halo_size=1)
    """
    check_parts(graph, part, parts)
    part = part.to(graph.device)
    core = (part == rank).nonzero().squeeze(1)
    row, col, weight = rows_of(graph.csr, core)

    # The halo by owner, then by number: the order in which the owners send.
    away = part[col] != rank
    outside = torch.unique(part[col[away]] * graph.num_nodes + col[away])
    owner, halo = outside // graph.num_nodes, outside % graph.num_nodes
    place = torch.full((graph.num_nodes,), -1, dtype=torch.long, device=graph.device)
    place[core] = torch.arange(core.numel(), device=graph.device)
    place[halo] = torch.arange(core.numel(), core.numel() + halo.numel(), device=graph.device)
    wanted = torch.unique(part[col[away]] * graph.num_nodes + row[away])
    routes = Routes(
        place[wanted % graph.num_nodes],
        (wanted // graph.num_nodes).bincount(minlength=parts).tolist(),
        owner.bincount(minlength=parts).tolist(),
    )

    # Edges between core and halo are in the core's rows once; their other direction makes the graph of both symmetric.
    edges = torch.stack(
        [torch.cat([place[row], place[col[away]]]), torch.cat([place[col], place[row[away]]])]
    )
    local = build_csr(
        edges,
        None if weight is None else torch.cat([weight, weight[away]]),
        core.numel() + halo.numel(),
        symmetrize=False,
    )
    csr = PartCSR.make(
        local,
        graph.csr.degree[core],
        graph.csr.rsqrt_degree[core],
        Wire(routes, group),
        core,
        graph.num_nodes,
    )
    made: GraphPart = object.__new__(GraphPart)
    made._fill(csr, core.numel(), None, 1)
    return made


def check_parts(graph: Graph, part: Tensor, parts: int) -> None:
    if graph.batch is not None:
        raise GraphError(
            "a batch of graphs is not cut into parts: give every process graphs of its own."
        )
    if part.shape != (graph.num_nodes,) or part.is_floating_point():
        raise GraphError(
            f"part must hold one integer per node, shape [{graph.num_nodes}]; got {list(part.shape)} of {part.dtype}."
        )
    if part.numel() and (int(part.min()) < 0 or int(part.max()) >= parts):
        raise GraphError(
            f"parts are numbered 0 to {parts - 1}, but range from {int(part.min())} to {int(part.max())}."
        )
    empty = (part.bincount(minlength=parts) == 0).nonzero().squeeze(1).tolist()
    if empty:
        raise GraphError(
            f"{len(empty)} of {parts} parts have no node, the first is {empty[0]}; use fewer processes."
        )
