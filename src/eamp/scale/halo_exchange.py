"""Rows of the halo from the processes that own them, and sums over all processes, with derivatives.

torch's own differentiable collectives are marked as experimental or leave gloo out, and none of them adds up what belongs to one row; so
these few lines do it. Each of the two transports is the other's derivative, so they can be differentiated at every order.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor


class PeerError(RuntimeError):
    """Another process of the job has ended or does not answer."""


@contextmanager
def talking() -> Iterator[None]:
    """Whatever torch says of a collective that failed, say what it means."""
    try:
        yield
    except PeerError:
        raise
    except RuntimeError as error:
        raise PeerError(
            f"process {dist.get_rank()} of {dist.get_world_size()} lost touch with the others: one of them has ended, or has not answered "
            "in time. Start the job again, with as many processes as there are machines; it goes on from its last checkpoint. "
            f"({str(error).strip().splitlines()[0]})"
        ) from error


class Routes(NamedTuple):
    """Who needs which rows.

    Attributes:
        rows: rows of the core that others need, in the order of the processes they go to.
        sent: how many of them go to each process.
        received: how many rows of the halo come from each process; the halo is in the order of processes, too.
    """

    rows: Tensor
    sent: list[int]
    received: list[int]


class Wire:
    """The exchange between the processes of a group, as :class:`eamp.ops.part.Exchange` describes it."""

    def __init__(self, routes: Routes, group: dist.ProcessGroup | None = None) -> None:
        self.routes, self.group = routes, group

    def halo(self, x: Tensor) -> Tensor:
        """The rows of ``x`` at the halo."""
        out: Tensor = Fetch.apply(x, self)  # type: ignore[no-untyped-call]  # torch leaves it untyped
        return out

    def total(self, x: Tensor) -> Tensor:
        """The sum of all processes' ``x``."""
        out: Tensor = Total.apply(x, self.group)  # type: ignore[no-untyped-call]  # torch leaves it untyped
        return out

    def largest(self, x: Tensor) -> Tensor:
        """The largest of all processes' ``x``."""
        out = x.detach().clone()
        with talking():
            dist.all_reduce(out, dist.ReduceOp.MAX, self.group)
        return out

    def transport(self, rows: Tensor, sent: list[int], received: list[int]) -> Tensor:
        """``rows`` to their destinations, and those that come from there."""
        arrived = rows.new_empty(sum(received), *rows.shape[1:])
        with talking():
            dist.all_to_all_single(arrived, rows.contiguous(), received, sent, self.group)
        return arrived


class Fetch(torch.autograd.Function):
    """Rows of the core to the halos that hold copies of them."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, wire: Wire) -> Tensor:
        """``[n, ...]`` to ``[h, ...]``."""
        ctx.wire, ctx.core = wire, x.size(0)
        return wire.transport(
            x.index_select(0, wire.routes.rows), wire.routes.sent, wire.routes.received
        )

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        """Home again."""
        return Return.apply(grad, ctx.wire, ctx.core), None  # type: ignore[no-untyped-call]  # torch leaves it untyped


class Return(torch.autograd.Function):
    """Rows of the halo back to the cores that own them, where copies of a row are added up."""

    @staticmethod
    def forward(ctx: Any, halo: Tensor, wire: Wire, core: int) -> Tensor:
        """``[h, ...]`` to ``[n, ...]``."""
        ctx.wire = wire
        arrived = wire.transport(halo, wire.routes.received, wire.routes.sent)
        return halo.new_zeros(core, *halo.shape[1:]).index_add_(0, wire.routes.rows, arrived)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        """Out again."""
        return Fetch.apply(grad, ctx.wire), None, None  # type: ignore[no-untyped-call]  # torch leaves it untyped


class Total(torch.autograd.Function):
    """The sum over processes. What they all do with it is added up in turn, so it is its own derivative."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, group: dist.ProcessGroup | None) -> Tensor:
        """Shape of ``x``."""
        ctx.group, out = group, x.detach().clone()
        with talking():
            dist.all_reduce(out, group=group)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        """The sum of all processes' derivatives."""
        return Total.apply(grad, ctx.group), None  # type: ignore[no-untyped-call]  # torch leaves it untyped
