from collections.abc import Mapping
from typing import Any

import pytest

from benchmarks import first_call


def test_the_second_process_finds_the_kernels_of_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folders: list[str] = []

    def process(function: Any, environment: Mapping[str, str]) -> dict[str, float]:
        assert function is first_call.first_result
        folders.append(environment["NUMBA_CACHE_DIR"])
        return {"eamp": float(len(folders))}

    monkeypatch.setattr(first_call, "in_fresh_process", process)
    found = first_call.first_call()
    assert found == {"nothing compiled": {"eamp": 2.0}, "kernels on the disk": {"eamp": 3.0}}
    assert folders[0] != folders[1] == folders[2]


def test_a_first_training_step_is_timed() -> None:
    assert all(seconds >= 0 for seconds in first_call.first_result().values())
