"""Which graph of a mini-batch a node belongs to, for layers that get ``edge_index`` alone.

A model that is called with a ``batch`` ties it to its ``edge_index`` (:func:`set_batch`). The tie
lasts as long as the tensor, so that a layer finds it again when a checkpointed segment is computed
a second time in the backward pass. While the model runs, an ``edge_index`` that it makes itself, as
by adding self-loops, is tied to the same ``batch`` if it has as many nodes (:func:`running_with`).
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from weakref import ref

from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary, WeakTensorKeyDictionary


class Tie:
    """The ``batch`` of an ``edge_index``; a changed ``batch`` makes another tie.

    Args:
        batch: the batch.
        told: whether :func:`set_batch` has told of it. Otherwise it is that of the model in which
            the ``edge_index`` was met, and the next call of the model may have another.
    """

    def __init__(self, batch: Tensor, told: bool) -> None:
        self.batch, self.told, self.version = batch, told, version(batch)

    def holds(self, batch: Tensor) -> bool:
        """Return whether this is the tie to a batch in its present contents."""
        return self.batch is batch and self.version == version(batch)


_ties: WeakIdKeyDictionary = WeakTensorKeyDictionary()


class Running(threading.local):
    """The batches of the models that run in this thread, the innermost last."""

    def __init__(self) -> None:
        self.batches: list[ref[Tensor] | None] = []


_running = Running()


def set_batch(edge_index: Tensor, batch: Tensor | None) -> None:
    """Let layers know the ``batch`` of an ``edge_index``, as long as the tensor lives.

    Layers that are called with the ``edge_index`` alone then take means, thresholds and sums per
    graph. ``None`` makes it one graph again.
    """
    tie = _ties.get(edge_index)
    if batch is None:
        _ties.pop(edge_index, None)
    elif tie is None or not tie.told or not tie.holds(batch):
        _ties[edge_index] = Tie(batch, told=True)


def tie_of(edge_index: Tensor, num_nodes: int) -> Tie | None:
    """Return the tie of an ``edge_index`` to a batch, if one is known."""
    tie: Tie | None = _ties.get(edge_index)
    if (tie is not None and tie.told) or not in_a_call():
        return tie
    batch = running_batch()
    if batch is None or batch.numel() != num_nodes:
        _ties.pop(edge_index, None)
        return None
    if tie is None or not tie.holds(batch):
        tie = _ties[edge_index] = Tie(batch, told=False)
    return tie


def start_call(batch: Tensor | None) -> None:
    """Begin the call of a model; without a ``batch``, that of the model around it goes on."""
    outer = _running.batches[-1] if _running.batches else None
    _running.batches.append(outer if batch is None else ref(batch))


def end_call() -> None:
    """End the call of a model that :func:`start_call` began."""
    if _running.batches:
        _running.batches.pop()


def in_a_call() -> bool:
    """Return whether a model runs that :func:`start_call` has told of."""
    return bool(_running.batches)


def forget_calls() -> None:
    """Forget all calls, after an error in compiled code, whose hooks may not run."""
    _running.batches.clear()


@contextmanager
def running_with(batch: Tensor | None) -> Iterator[None]:
    """Let every ``edge_index`` that is met for the first time inside have this ``batch``."""
    start_call(batch)
    try:
        yield
    finally:
        end_call()


def running_batch() -> Tensor | None:
    """Return the batch of the innermost model that runs in this thread."""
    last = _running.batches[-1] if _running.batches else None
    return None if last is None else last()


def version(tensor: Tensor) -> int:
    """Return the in-place version counter; inference tensors have none and are compared."""
    return -1 if tensor.is_inference() else tensor._version
