"""Datasets of many graphs: MUTAG and its kin from text files, and generated ones."""

import subprocess
import zipfile
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.loader import DataLoader
from torch_geometric.utils import to_networkx

import eamp
from eamp.data import DataError, DataWarning, GraphSet, RefusedError, cache, digests, tu_datasets
from eamp.data.tu_datasets import GRAKEL

# A triangle and a path of two, then an edge and an isolated node.
FILES = {
    "A": "1, 2\n2, 1\n2, 3\n3, 2\n1, 3\n3, 1\n4, 5\n5, 4\n",
    "graph_indicator": "1\n1\n1\n2\n2\n2\n",
    "graph_labels": "1\n-1\n",
    "node_labels": "0\n3\n0\n7\n0\n0\n",
}


WIENER = "ebea5f9f2397b7e63313521030b78e2cffdb07dc42fa675e92b5310f6f44a5db"


@pytest.fixture
def tiny_mutag(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Return a folder with a tiny dataset under MUTAG's name, whose digest is trusted."""
    for name in tu_datasets.GRAPHS:
        monkeypatch.setitem(tu_datasets.GRAPHS, name, 2)
    folder = tmp_path / "files"
    folder.mkdir()
    for name in ("MUTAG", "NCI1"):
        for part, text in FILES.items():
            (folder / f"{name}_{part}.txt").write_text(text)
    arrays = tu_datasets.assemble("mutag", {part: text.encode() for part, text in FILES.items()})
    monkeypatch.setitem(digests.ARRAY_DIGESTS, "mutag", digests.digest_of(arrays))
    return folder


def test_graphs_are_those_of_the_text_files(tiny_mutag: Path) -> None:
    graphs = eamp.data.load("MUTAG", folder=tiny_mutag)
    assert isinstance(graphs, GraphSet)
    assert (len(graphs), graphs.num_features, graphs.num_classes) == (2, 3, 2)
    assert (graphs.name, graphs.source) == ("mutag", "folder")
    assert graphs.digest == digests.ARRAY_DIGESTS["mutag"]
    first, second = graphs
    assert first.edge_index.tolist() == [[0, 0, 1, 1, 2, 2], [1, 2, 0, 2, 0, 1]]
    assert first.x.tolist() == [[1, 0, 0], [0, 1, 0], [1, 0, 0]]
    assert second.edge_index.tolist() == [[0, 1], [1, 0]]
    assert second.num_nodes == 3
    assert graphs.y.tolist() == [1, 0]


def test_the_second_load_reads_the_cache(tiny_mutag: Path) -> None:
    eamp.data.load("mutag", folder=tiny_mutag)
    for file in tiny_mutag.iterdir():
        file.unlink()
    again = eamp.data.load("mutag")
    assert again[0].edge_index.size(1) == 6
    assert eamp.data.check("mutag").state == "intact"
    path = cache.cache_path("mutag")
    path.write_bytes(path.read_bytes()[:-5])
    assert eamp.data.check("mutag").state == "damaged"


def test_files_may_lie_where_pyg_puts_them(
    tiny_mutag: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = tiny_mutag / "NCI1" / "raw"
    raw.mkdir(parents=True)
    for part in FILES:
        (tiny_mutag / f"NCI1_{part}.txt").rename(raw / f"NCI1_{part}.txt")
    monkeypatch.setenv("EAMP_DATA", str(tiny_mutag))
    assert len(eamp.data.load("nci1")) == 2
    assert "not known beforehand" in str(eamp.data.check("nci1"))


@pytest.mark.parametrize(
    ("part", "text", "words"),
    [
        ("A", FILES["A"] + "3, 4\n", "between two graphs"),
        ("A", FILES["A"] + "3, 9\n", "outside"),
        ("A", "1; 2\n", "cannot be read"),
        ("graph_indicator", "1\n1\n2\n1\n2\n2\n", "do not fit together"),
        ("graph_labels", "1\n-1\n1\n", "do not fit together"),
        ("node_labels", "0\n", "do not fit together"),
        ("node_labels", None, "node_labels"),
    ],
)
def test_files_that_do_not_fit_are_refused(
    tiny_mutag: Path, part: str, text: str | None, words: str
) -> None:
    file = tiny_mutag / f"NCI1_{part}.txt"
    file.unlink() if text is None else file.write_text(text)
    with (
        pytest.warns(DataWarning, match=words),
        pytest.raises(DataError, match=r"(?s)every source failed.*checksum"),
    ):
        eamp.data.load("nci1", folder=tiny_mutag)


def test_other_graphs_under_mutags_name_are_refused(tiny_mutag: Path) -> None:
    (tiny_mutag / "MUTAG_graph_labels.txt").write_text("1\n1\n")
    with pytest.warns(DataWarning, match="digest"), pytest.raises(DataError, match="expected"):
        eamp.data.load("mutag", folder=tiny_mutag)


def test_mutag_comes_from_the_package_index(
    tiny_mutag: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    wheel = tmp_path / GRAKEL.file
    with zipfile.ZipFile(wheel, "w") as zipped:
        for part, text in FILES.items():
            zipped.writestr(f"grakel/tests/data/MUTAG/MUTAG_{part}.txt", text)

    def pip(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        assert command[-1] == "grakel==0.1.11"
        (Path(command[command.index("--dest") + 1]) / wheel.name).write_bytes(wheel.read_bytes())
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr("eamp.data.package_index.subprocess.run", pip)
    refused = pytest.warns(DataWarning, match="is refused")
    with refused, pytest.raises(DataError, match=r"grakel.*is refused"):  # it is not the real one
        eamp.data.load("mutag")
    digest = digests.hashlib.sha256(wheel.read_bytes()).hexdigest()
    monkeypatch.setitem(digests.FILE_DIGESTS, wheel.name, digest)
    refused = pytest.warns(DataWarning, match="is refused")
    with refused, pytest.raises(DataError, match=r"MUTAG_A\.txt is refused"):  # nor its members
        eamp.data.load("mutag")
    for part, text in FILES.items():
        digest = digests.hashlib.sha256(text.encode()).hexdigest()
        monkeypatch.setitem(digests.FILE_DIGESTS, f"MUTAG_{part}.txt", digest)
    assert eamp.data.load("mutag").source == "package index"
    with pytest.raises(RefusedError):
        digests.verify_file("MUTAG_A.txt", b"")


def test_an_unknown_checksum_means_no_download() -> None:
    with pytest.raises(DataError, match=r"(?s)PROTEINS\.zip yourself.*checksum is not known"):
        eamp.data.load("proteins")


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("mutag", {"split": "random"}, "takes no split"),
        ("undirected:mutag", {}, "prefixes"),
        ("mutag:seed=1", {}, "takes no options"),
        ("wiener:graph=3", {}, "graphs=1000"),
        ("wiener:nodes=3", {}, "nodes >= 8"),
    ],
)
def test_wrong_names_are_refused(name: str, options: dict[str, str], words: str) -> None:
    with pytest.raises(DataError, match=words):
        eamp.data.load(name, **options)


def test_the_target_is_the_mean_distance() -> None:
    graphs = eamp.data.load("wiener:graphs=12,nodes=16,seed=3")
    for graph in graphs:
        network = to_networkx(graph, to_undirected=True)
        assert nx.average_shortest_path_length(network) == pytest.approx(graph.y.item(), rel=1e-6)
        assert max(dict(network.degree).values()) <= 4
        assert 12 <= graph.num_nodes <= 20
    assert any(nx.cycle_basis(to_networkx(graph, to_undirected=True)) for graph in graphs)
    assert graphs.num_classes == 1
    summary = eamp.data.get("wiener:graphs=12,nodes=16,seed=3")
    assert summary.graphs == 12
    assert "a number as target" in str(summary)


def test_a_name_gives_the_same_graphs_everywhere() -> None:
    graphs = eamp.data.load("wiener:graphs=5")
    assert graphs.digest == eamp.data.wiener(graphs=5).digest
    assert graphs.digest != eamp.data.load("wiener:graphs=5,seed=1").digest
    assert graphs.digest == WIENER


def test_a_set_is_a_sequence() -> None:
    graphs = eamp.data.load("wiener:graphs=9")
    assert graphs[-1] is graphs[8]
    assert graphs[torch.tensor(2)] is graphs[2]
    for index in ([0, 3], torch.tensor([0, 3]), np.array([0, 3])):
        assert [graph.num_nodes for graph in graphs[index]] == [
            graphs[0].num_nodes,
            graphs[3].num_nodes,
        ]
    assert len(graphs[torch.arange(9) > 6]) == 2
    assert len(graphs[2:5]) == 3
    assert "9 graphs" in repr(graphs)
    empty = graphs[[]]
    assert (len(empty), empty.num_features, empty.y.numel()) == (0, 0, 0)
    batches = list(DataLoader(graphs, batch_size=4))
    assert [batch.num_graphs for batch in batches] == [4, 4, 1]
