"""``eamp bench`` finds the benchmarks, which are no part of the wheel."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import eamp
from eamp.cli import main

REPORT = """
def run(output, *, quick, device):
    print(output, quick, device)
"""


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An installed eamp without a source checkout; the value is the current directory."""
    monkeypatch.setattr(eamp, "__file__", str(tmp_path / "lib" / "site-packages" / "eamp" / "x.py"))
    for name in loaded_benchmarks():
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for name in loaded_benchmarks():  # those of the test; monkeypatch puts the others back
        del sys.modules[name]


def loaded_benchmarks() -> list[str]:
    return [name for name in sys.modules if name.split(".")[0] == "benchmarks"]


def test_benchmarks_of_the_current_directory_are_run(
    elsewhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (elsewhere / "benchmarks").mkdir()
    (elsewhere / "benchmarks" / "__init__.py").touch()
    (elsewhere / "benchmarks" / "report.py").write_text(REPORT, encoding="utf-8")
    assert main(["bench", "--quick", "--output", "figures.json", "--device", "cuda"]) == 0
    assert capsys.readouterr().out == "figures.json True cuda\n"


def test_without_benchmarks_it_says_where_to_get_them(
    elsewhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "--quick"]) == 2
    assert "clone its repository and run `make bench`" in capsys.readouterr().err


def test_a_source_checkout_has_them() -> None:
    assert (Path(eamp.__file__).parents[2] / "benchmarks" / "report.py").exists()
