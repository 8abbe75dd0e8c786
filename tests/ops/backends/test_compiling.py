"""Kernels are compiled when they are first needed, and a line on stderr says so."""

from pathlib import Path
from typing import Any

import numba
import pytest
import torch

import eamp
from eamp.ops.backends.numba_cpu import compiling, launch


def nothing(block):  # type: ignore[no-untyped-def]  # compiled
    pass


def test_only_a_first_compilation_is_announced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(compiling, "NOTICE", compiling.Notice())
    compiling.compiled(nothing, cache=True)
    said = capsys.readouterr()
    assert said.err.startswith("eamp: compiling kernels for this machine, once")
    assert not said.out
    compiling.compiled(nothing)  # another compilation in the same process
    monkeypatch.setattr(compiling, "NOTICE", compiling.Notice())  # as in another process
    compiling.compiled(nothing, cache=True)
    assert not capsys.readouterr().err


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the kernels that are compiled from now on."""
    names: list[str] = []

    def recorded(function: Any, **options: Any) -> Any:
        names.append(function.__name__)
        return compiling.compiled(function, **options)

    monkeypatch.setattr(launch, "compiled", recorded)
    launch.task.cache_clear()
    return names


def test_kernels_that_are_not_called_are_not_compiled(compiled: list[str]) -> None:
    g = eamp.Graph(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]))
    x = torch.randn(3, 4, requires_grad=True)
    step = eamp.entropy_gradient(x, g)
    assert compiled == ["squared", "drive", "weighted"]
    step.sum().backward()
    assert compiled[3:] == ["inner", "drive_backward", "weighted_pair"]
