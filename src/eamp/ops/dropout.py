"""Dropout whose mask is a function of a seed and of the element's place.

torch draws its mask on one thread, one number after the other, and keeps it for the backward pass;
for a deep network of small width that is half of an epoch's time. Here every element hashes its
place with a seed drawn from torch's generator. So the mask is the same under
:func:`torch.manual_seed`, on any number of threads, and when it is computed again in the backward
pass. A process that holds some rows of an embedding hashes their places in the whole embedding, so
training on parts of a graph drops the same elements as training in one process.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from eamp.graph import GraphError, Rows
from eamp.graph.transforms import outside_transforms, unwrapped
from eamp.ops.operator import Operator, like_first


def dropout(x: Tensor, p: float, training: bool = True, rows: Rows | None = None) -> Tensor:
    """Set every element of ``x`` to 0 with probability ``p``, and divide the others by ``1 - p``.

    It behaves as :func:`torch.nn.functional.dropout`, which takes over where this function has no
    kernel: off the CPU, and in half precision.

    Args:
        x: a dense tensor, or a sparse CSR tensor, of which only the stored values are dropped.
        p: the probability.
        training: return ``x`` as it is if ``False``.
        rows: the places of the rows of ``x`` in the embedding of the whole graph, as
            :attr:`eamp.Graph.rows` has them; ``None`` if ``x`` is the whole.

    Example:
        >>> import torch
        >>> _ = torch.manual_seed(0)
        >>> dropout(torch.ones(8), 0.5)
        tensor([0., 2., 0., 2., 0., 2., 2., 0.])
    """
    if not 0 <= p <= 1:
        raise ValueError(f"the dropout probability must lie between 0 and 1, but is {p}.")
    if not training or p == 0:
        return x
    has_kernel = x.device.type == "cpu" and x.dtype in (torch.float32, torch.float64) and p < 1
    if rows is not None and x.device.type == "cpu" and p < 1:
        check_rows(x, rows, has_kernel)
        if x.layout == torch.sparse_csr:
            values = _dropout(x.values(), new_seed(), p, rows.entries, x.crow_indices().long())
            return with_values(x, values)
        offset = torch.arange(x.size(0) + 1, device="cpu") * x.size(1)
        return _dropout(x, new_seed(), p, rows.nodes * x.size(1), offset)
    if x.layout == torch.sparse_csr:
        return with_values(x, dropout(x.values(), p))
    return _dropout(x, new_seed(), p, None, None) if has_kernel else F.dropout(x, p, training)


def row_dropout(x: Tensor, p: float, training: bool = True, rows: Rows | None = None) -> Tensor:
    """Set every row of ``x`` to 0 with probability ``p``, and divide the others by ``1 - p``.

    The arguments are those of :func:`dropout`, with a row in place of an element.

    Example:
        >>> import torch
        >>> _ = torch.manual_seed(0)
        >>> row_dropout(torch.ones(3, 2), 0.5)
        tensor([[0., 0.],
                [2., 2.],
                [0., 0.]])
    """
    if not training or p == 0:
        return x
    kept = dropout(torch.ones(x.size(0), 1, dtype=x.dtype, device=x.device), p, rows=rows)
    if x.layout == torch.sparse_csr:
        sizes = x.crow_indices().diff()
        return with_values(x, x.values() * kept.squeeze(1).repeat_interleave(sizes))
    return x * kept


def new_seed() -> Tensor:
    """Draw a seed from torch's generator of the CPU."""
    return torch.randint(2**62, (), device="cpu")


def with_values(x: Tensor, values: Tensor) -> Tensor:
    """Return a sparse CSR tensor with other values."""
    crow, col = x.crow_indices(), x.col_indices()
    return torch.sparse_csr_tensor(crow, col, values, x.shape, check_invariants=False)


def check_rows(x: Tensor, rows: Rows, has_kernel: bool) -> None:
    """Raise an error unless the rows of ``x`` are those that ``rows`` gives the places of."""
    sparse = x.layout == torch.sparse_csr
    if x.dim() != 2 or x.size(0) != rows.nodes.numel() or not has_kernel:
        raise GraphError(
            f"dropout on a graph that is spread over processes needs an embedding of shape "
            f"[{rows.nodes.numel()}, F] in float32 or float64; got {list(x.shape)} of {x.dtype}."
        )
    if sparse and rows.entries is None:
        raise GraphError(
            "dropout on a graph that is spread over processes takes sparse features only as input "
            "of the network; call x.to_dense() before it."
        )


def _drop(x: Tensor, seed: Tensor, p: float, start: Tensor | None, offset: Tensor | None) -> Tensor:
    # Imported when it first runs: Numba takes half a second to load.
    from eamp.ops.backends.numba_cpu.dropout import drop, drop_rows

    if start is None or offset is None:
        return drop(x, int(seed.item()), p)
    return drop_rows(x, int(seed.item()), p, start, offset)


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    _, seed, ctx.p, start, offset = inputs
    ctx.save_for_backward(seed, start, offset)


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    seed, start, offset = ctx.saved_tensors
    return _dropout(grad, seed, ctx.p, start, offset), None, None, None, None


def _plain(x: Tensor, seed: Tensor, p: float, *places: Tensor | None) -> Tensor:
    start, offset = (None if place is None else unwrapped(place) for place in places)
    with outside_transforms():
        ones = torch.ones(x.shape, dtype=x.dtype, device="cpu")
        kept = _drop(ones, unwrapped(seed), p, start, offset)
    return x * kept


_dropout = Operator("eamp::dropout_at", _drop, like_first, _plain).differentiated(_backward, _save)
