"""Random numbers from given seeds, which leave the global generators as they are."""

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


def mixed(*numbers: int) -> int:
    """Return a seed that differs where one of the numbers differs.

    Example:
        >>> mixed(0, 1) == mixed(0, 1), mixed(0, 1) == mixed(1, 0)
        (True, False)
    """
    state = np.random.SeedSequence([number % 2**64 for number in numbers]).generate_state(1)
    return int(state[0])


def generator(*numbers: int) -> torch.Generator:
    """Return a generator of torch on the CPU, seeded with the numbers."""
    return torch.Generator().manual_seed(mixed(*numbers))


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed the generators of torch and of Python inside the block, and restore them after it.

    PyG draws pairs without an edge with the generator of Python.
    """
    before = random.getstate()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        random.seed(seed)
        try:
            yield
        finally:
            random.setstate(before)
