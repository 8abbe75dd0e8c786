"""Communication between the processes of a partitioned graph, with derivatives of every order.

torch's own differentiable collectives are experimental or lack gloo, and none of them adds up the
rows that belong to one node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor


class PeerError(RuntimeError):
    """Another process of the job has ended or does not answer."""


@contextmanager
def explained_failures() -> Iterator[None]:
    """Turn an error of a torch collective into a :class:`PeerError`, which says what to do."""
    try:
        yield
    except PeerError:
        raise
    except RuntimeError as error:
        raise PeerError(
            f"process {dist.get_rank()} of {dist.get_world_size()} lost touch with the others: one "
            "of them has ended, or has not answered in time. Start the job again, with any number "
            "of processes; it continues from its last checkpoint. "
            f"({str(error).strip().splitlines()[0]})"
        ) from error


@dataclass
class HaloExchange:
    """Rows of the halo from the processes that own them, and sums over all processes.

    All processes must call the same methods in the same order.

    Attributes:
        num_rows: number of own rows.
        rows_to_send: own rows that other processes need, ordered by the process that needs them.
        sent: how many of these rows go to each process.
        received: how many rows of the halo come from each process; the halo is ordered by process.
        group: the torch process group, ``None`` for the default one.
    """

    num_rows: int
    rows_to_send: Tensor
    sent: list[int]
    received: list[int]
    group: dist.ProcessGroup | None = None

    def halo(self, x: Tensor) -> Tensor:
        """Return the rows of the halo, ``[h, ...]`` for own rows ``[n, ...]``."""
        return LinearMap.of(x, self._to_halos, self._to_owners)

    def total(self, x: Tensor) -> Tensor:
        """Return the sum of ``x`` over all processes.

        Every process holds a share of the loss, so derivatives are summed over processes, too.
        """
        return LinearMap.of(x, self._sum, self._sum)

    def largest(self, x: Tensor) -> Tensor:
        """Return the largest ``x`` of all processes, elementwise, without a derivative."""
        return self._reduced(x, dist.ReduceOp.MAX)

    def swap(self, rows: Tensor, sent: list[int], received: list[int]) -> Tensor:
        """Send ``rows`` to other processes, and return the rows that come from them."""
        arrived = rows.new_empty(sum(received), *rows.shape[1:])
        with explained_failures():
            dist.all_to_all_single(arrived, rows.contiguous(), received, sent, self.group)
        return arrived

    def _to_halos(self, x: Tensor) -> Tensor:
        return self.swap(x.index_select(0, self.rows_to_send), self.sent, self.received)

    def _to_owners(self, halo: Tensor) -> Tensor:
        """Return the sum over all copies of every own row."""
        arrived = self.swap(halo, self.received, self.sent)
        zeros = halo.new_zeros(self.num_rows, *halo.shape[1:])
        return zeros.index_add_(0, self.rows_to_send, arrived)

    def _sum(self, x: Tensor) -> Tensor:
        return self._reduced(x, dist.ReduceOp.SUM)

    def _reduced(self, x: Tensor, operation: Any) -> Tensor:
        out = x.detach().clone()
        with explained_failures():
            dist.all_reduce(out, operation, self.group)
        return out


Map = Callable[[Tensor], Tensor]


class LinearMap(torch.autograd.Function):
    """A linear map across processes, whose derivative is the transposed map."""

    @staticmethod
    def of(x: Tensor, function: Map, transposed: Map) -> Tensor:
        """Return ``function(x)``, differentiable at every order."""
        out: Tensor = LinearMap.apply(x, function, transposed)  # type: ignore[no-untyped-call]  # torch leaves it untyped
        return out

    @staticmethod
    def forward(ctx: Any, x: Tensor, function: Map, transposed: Map) -> Tensor:
        """Apply the map."""
        ctx.function, ctx.transposed = function, transposed
        return function(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        """Apply the transposed map."""
        return LinearMap.of(grad, ctx.transposed, ctx.function), None, None
