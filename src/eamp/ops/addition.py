"""Addition in the memory of a result that nobody else holds."""

from torch import Tensor

from eamp.graph.transforms import transformed


def added(x: Tensor, y: Tensor) -> Tensor:
    """Return ``x`` + ``y``, in the memory of ``x`` if it can hold the sum.

    It cannot if ``y`` has another dtype, nor inside a transform of torch: ``vmap`` may map over
    ``y`` alone.

    Args:
        x: a result that nobody else holds and that autograd does not need.
        y: a tensor that broadcasts to the shape of ``x``.

    Example:
        >>> import torch
        >>> added(torch.ones(2), torch.ones(2, dtype=torch.float64))
        tensor([2., 2.], dtype=torch.float64)
    """
    return x.add_(y) if x.dtype is y.dtype and not transformed() else x + y
