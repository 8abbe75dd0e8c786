import os
from collections.abc import Iterator

# Several processes may run the tests at once, and share the cores. So networks run on one thread,
# also in processes that tests start; the tests of the operators ask for more.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
import torch
from hypothesis import settings

settings.register_profile(
    "eamp", deadline=None, max_examples=40, derandomize=True
)  # compiling a kernel takes seconds, once
settings.load_profile("eamp")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the slow tests last, so that most mistakes show within seconds."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is not None)


@pytest.fixture(autouse=True)
def _same_seed_for_every_test() -> None:
    torch.manual_seed(0)


@pytest.fixture(autouse=True, scope="session")
def _nothing_compiled_before(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Start with an empty cache of torch.compile, which may hold code from before a change."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path_factory.mktemp("inductor")))
        yield
