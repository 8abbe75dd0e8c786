"""Communication between the processes of a partitioned graph, with derivatives of every order.

torch's own differentiable collectives are experimental, and none adds up the copies of a row.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
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


def all_reduced(x: Tensor, operation: Any = dist.ReduceOp.SUM) -> Tensor:
    """Return the sum, or the result of another operation, over all processes."""
    out = x.detach().clone()
    with explained_failures():
        dist.all_reduce(out, operation)
    return out


def swapped(rows: Tensor, sent: list[int], received: list[int]) -> Tensor:
    """Send ``rows`` to other processes, and return the rows that come from them.

    Args:
        rows: the rows to send, ordered by the process that they go to.
        sent: how many of them go to each process.
        received: how many rows come from each process, which is also their order.
    """
    arrived = rows.new_empty(sum(received), *rows.shape[1:])
    with explained_failures():
        dist.all_to_all_single(arrived, rows.contiguous(), received, sent)
    return arrived


Map = Callable[[Tensor], Tensor]


class LinearMap(torch.autograd.Function):
    """A linear map across processes, whose derivative is the transposed map."""

    @staticmethod
    def of(x: Tensor, function: Map, transposed: Map) -> Tensor:
        """Return ``function(x)``, differentiable at every order."""
        apply: Any = LinearMap.apply  # torch leaves it untyped
        out: Tensor = apply(x, function, transposed)
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
