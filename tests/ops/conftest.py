from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(autouse=True)
def _two_threads() -> Iterator[None]:
    """Run the kernels on two threads, as users do, and not on the one of the other tests."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)
