import pytest
import torch
from hypothesis import settings

settings.register_profile("eamp", deadline=None, max_examples=40, derandomize=True)  # compiling a kernel takes seconds, once
settings.load_profile("eamp")


@pytest.fixture(autouse=True)
def _same_seed_for_every_test() -> None:
    torch.manual_seed(0)
