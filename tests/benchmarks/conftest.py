import json
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pytest

from benchmarks import inference, large, memory
from forked import context


@pytest.fixture(autouse=True)
def _forked_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fork the fresh processes of the benchmarks, with the slow imports done."""

    def in_forked_process(function: Callable[..., Any], *arguments: Any) -> Any:
        with ProcessPoolExecutor(1, mp_context=context()) as pool:
            return json.loads(json.dumps(pool.submit(function, *arguments).result()))

    for module in (inference, large, memory):
        monkeypatch.setattr(module, "in_fresh_process", in_forked_process)
