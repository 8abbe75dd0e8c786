"""What the sums see of a graph that is spread over processes: the rows of one of them, and a way to the rows it borders on.

A process holds the nodes of its part (its core) and the edges of these. Their other ends that belong to other processes are its halo. On
the graph of core and halo, with the edges that have an end in the core, a sum over edges is complete in every row of the core; so is its
derivative, once what came out for the rows of a halo is sent home and added up, which is how the exchange of halos is differentiated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor

from eamp.graph import CSR, GraphError

if TYPE_CHECKING:
    from eamp.ops.placed_dropout import Places

places: Places | None = (
    None  # of the rows that dropout sees; set by :func:`eamp.ops.placed_dropout.placed`
)


class Exchange(Protocol):
    """The talk between processes. All of them must ask for the same things in the same order; derivatives go through the first two."""

    def halo(self, x: Tensor) -> Tensor:
        """The rows of ``x`` at the halo, ``[h, ...]``, from the processes whose core they are in."""

    def total(self, x: Tensor) -> Tensor:
        """The sum of all processes' ``x``, elementwise."""

    def largest(self, x: Tensor) -> Tensor:
        """The largest of all processes' ``x``, elementwise."""


class Copies:
    """The exchange of one process with itself, where every node sampled neighbours of its own: the halo holds a copy of all its rows."""

    def halo(self, x: Tensor) -> Tensor:
        """All rows."""
        return x

    def total(self, x: Tensor) -> Tensor:
        """There is nothing to add."""
        return x

    def largest(self, x: Tensor) -> Tensor:
        """There is nothing to compare with."""
        return x


class PartCSR(CSR):
    """The core of a part in place of a :class:`CSR`; ``degree`` and ``rsqrt_degree`` are those in the whole graph.

    Attributes:
        local: the graph of core and halo, core first.
        exchange: how to get at the rows of other processes.
        nodes: ``[n]``, the core's numbers in the whole graph, ascending.
        num_nodes: nodes of the whole graph.
    """

    local: CSR
    exchange: Exchange
    nodes: Tensor
    num_nodes: int

    @classmethod
    def make(
        cls,
        local: CSR,
        degree: Tensor,
        rsqrt_degree: Tensor,
        exchange: Exchange,
        nodes: Tensor,
        num_nodes: int,
    ) -> PartCSR:
        """From the graph of core and halo, and degrees of the core."""
        part = cls(local.rowptr, local.col, local.reverse, local.edge_weight, degree, rsqrt_degree)
        part.local, part.exchange, part.nodes, part.num_nodes = local, exchange, nodes, num_nodes
        return part

    def with_halo(self, x: Tensor) -> Tensor:
        """``x`` with the rows of the halo appended."""
        return torch.cat([x, self.exchange.halo(x)])

    def _replace(self, **changes: Any) -> PartCSR:
        degrees = {"degree": self.degree, "rsqrt_degree": self.rsqrt_degree, **changes}
        return PartCSR.make(
            self.local,
            exchange=self.exchange,
            nodes=self.nodes,
            num_nodes=self.num_nodes,
            **degrees,
        )

    # An operation that does not know of parts would read rows that are not there. It asks for one of these first.
    def __getattribute__(self, name: str) -> Any:
        if name in ("rowptr", "col", "reverse", "edge_weight"):
            raise not_for_parts("an operation on single edges")
        return super().__getattribute__(name)

    def __getitem__(self, key: Any) -> Any:
        raise not_for_parts("an operation on single edges")

    def __iter__(self) -> Any:
        raise not_for_parts("an operation on single edges")


def not_for_parts(what: str) -> GraphError:
    """The error of something that would be wrong, or have to be written anew, where a process holds a part of the graph."""
    return GraphError(
        f"{what} has no form for a graph that is spread over several processes or sampled; use the whole graph in one process."
    )


# --- Statistics over all nodes ----------------------------------------------------------------------------------------


def node_sum(values: Tensor, csr: CSR) -> Tensor:
    """The sum over all nodes, ``[...]`` for values ``[n, ...]``, on every process."""
    return csr.exchange.total(values.sum(0)) if isinstance(csr, PartCSR) else values.sum(0)


def node_mean(values: Tensor, csr: CSR) -> Tensor:
    """The mean over all nodes of values ``[n]``."""
    return node_sum(values, csr) / csr.num_nodes if isinstance(csr, PartCSR) else values.mean()


def node_max(values: Tensor, csr: PartCSR) -> Tensor:
    """The largest of values ``[n]`` over all nodes; equals share its derivative, as they do in torch."""
    largest = csr.exchange.largest(values.detach().amax())
    equal = (values == largest).to(values.dtype)
    total, count = node_sum(torch.stack([values * equal, equal], 1), csr)
    return total / count.detach()
