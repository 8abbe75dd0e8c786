from collections.abc import Iterator

import pytest
import torch
from hypothesis import settings

settings.register_profile(
    "eamp", deadline=None, max_examples=40, derandomize=True
)  # compiling a kernel takes seconds, once
settings.load_profile("eamp")


@pytest.fixture(autouse=True)
def _same_seed_for_every_test() -> None:
    torch.manual_seed(0)


@pytest.fixture(autouse=True, scope="session")
def _nothing_compiled_before(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Start with an empty cache of torch.compile, which may hold code from before a change."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path_factory.mktemp("inductor")))
        yield
