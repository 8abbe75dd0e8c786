import os
from pathlib import Path
from typing import Any

import pytest
import torch
import torch_geometric.datasets as pyg
from torch_geometric.data import Data, InMemoryDataset

from eamp.data import load, pyg_datasets
from eamp.data.errors import DataError, DataWarning


def path_graph(**more: Any) -> Data:
    edges = torch.stack([torch.arange(9), torch.arange(1, 10)])
    return Data(x=torch.rand(10, 3), edge_index=edges, y=torch.arange(10) % 2, **more)


class Fake:
    """A dataset class like PyG's: made from a root and a name, with graphs inside."""

    graphs: tuple[Any, ...] = ()

    def __init__(self, root: str, name: str, split: str = "public") -> None:
        self.root, self.name = root, name
        Path(root).mkdir(parents=True)

    def __len__(self) -> int:
        return len(self.graphs)

    def __getitem__(self, index: int) -> Any:
        return self.graphs[index]


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> type[Fake]:
    monkeypatch.setattr(pyg, "WebKB", Fake)
    monkeypatch.setattr(Fake, "graphs", (path_graph(),))
    return Fake


def test_dataset_without_a_download() -> None:
    data = load("pyg:KarateClub")
    assert (data.num_nodes, data.num_edges, data.num_classes) == (34, 156, 4)
    assert (data.name, data.source) == ("pyg:KarateClub", "torch_geometric")
    assert data.split.startswith("random")  # it has a train_mask only, which is not a split


def test_pyg_works_in_a_private_folder_of_the_cache(
    fake: type[Fake], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    roots = []

    def make(root: str, name: str) -> Fake:
        roots.append(Path(root))
        assert list(Path(root).parent.iterdir()) == []
        assert os.name != "posix" or Path(root).parent.stat().st_mode & 0o77 == 0
        return fake(root, name)

    monkeypatch.setattr(pyg, "WebKB", make)
    load("pyg:WebKB/Cornell")
    assert roots[0].parent.parent == tmp_path / "cache" / "pyg"
    assert [path.name for path in (tmp_path / "cache" / "pyg").iterdir()] == ["WebKB-Cornell.npz"]


class Real(InMemoryDataset):  # type: ignore[misc]  # torch_geometric has no types here
    """A dataset that downloads, processes and saves as PyG's own do."""

    raw_file_names, processed_file_names, downloads = ["raw.txt"], ["data.pt"], 0

    def __init__(self, root: str, name: str) -> None:
        super().__init__(root)
        self.load(self.processed_paths[0])

    def download(self) -> None:
        type(self).downloads += 1
        Path(self.raw_paths[0]).write_text("3")

    def process(self) -> None:
        self.save([path_graph(edge_weight=torch.rand(9))], self.processed_paths[0])


def test_second_load_comes_from_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyg, "WebKB", Real)
    monkeypatch.setattr(Real, "downloads", 0)
    first, second = load("pyg:WebKB/Cornell"), load("pyg:WebKB/Cornell")
    assert (first.digest, first.name, first.source) == (second.digest, second.name, second.source)
    assert Real.downloads == 1
    load("pyg:WebKB/Cornell", refresh=True)
    assert Real.downloads == 2
    load("pyg:WebKB/Texas")
    assert Real.downloads == 3
    assert "TORCH_FORCE_WEIGHTS_ONLY_LOAD" not in os.environ


def test_damaged_cache_is_reported_and_fetched_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(pyg, "WebKB", Real)
    load("pyg:WebKB/Cornell")
    file = tmp_path / "cache" / "pyg" / "WebKB-Cornell.npz"
    file.write_bytes(file.read_bytes()[:-50])
    with pytest.warns(DataWarning, match=r"WebKB-Cornell\.npz is refused.*fetched again"):
        load("pyg:WebKB/Cornell")
    load("pyg:WebKB/Cornell")


def test_cache_that_is_not_writable_is_a_warning(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("EAMP_CACHE", str(tmp_path / "file"))
    monkeypatch.setattr(pyg, "WebKB", Real)
    with pytest.warns(DataWarning, match="could not be cached"):
        assert load("pyg:WebKB/Cornell").num_nodes == 10


@pytest.mark.parametrize("name", pyg_datasets.CLASSES)
def test_every_allowed_class_is_one_of_pyg(name: str) -> None:
    assert name in pyg.__all__


def test_masks_of_several_splits(fake: type[Fake], monkeypatch: pytest.MonkeyPatch) -> None:
    columns = {
        mask: torch.eye(10, dtype=torch.bool)[:, [k, k + 1]]
        for k, mask in enumerate(("train_mask", "val_mask", "test_mask"))
    }
    monkeypatch.setattr(fake, "graphs", (path_graph(**columns),))
    assert load("pyg:WebKB/Cornell", split=1).train_mask.nonzero().tolist() == [[1]]


@pytest.mark.usefixtures("fake")
def test_directed_graph_can_be_made_undirected() -> None:
    assert load("pyg:WebKB/Cornell", symmetrize=True).num_edges == 18


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("pyg:Nonsense", "has no 'Nonsense'"),
        ("pyg:__doc__", "has no '__doc__'"),
        ("pyg:", "has no ''"),
        ("pyg:WebKB", r"pyg:WebKB needs name\. Write pyg:WebKB/<name>"),
        ("pyg:KarateClub/x", "takes no name"),
    ],
)
@pytest.mark.usefixtures("fake")
def test_wrong_names_are_refused(name: str, complaint: str) -> None:
    with pytest.raises(DataError, match=complaint):
        load(name)


@pytest.mark.parametrize(
    ("graphs", "complaint"),
    [
        ((path_graph(), path_graph()), "has 2 graphs"),
        (((),), "type tuple"),
        ((Data(edge_index=torch.zeros(2, 0, dtype=torch.long)),), "x, y missing"),
        (
            (
                Data(
                    x=torch.rand(2, 2).to_sparse(),
                    edge_index=torch.tensor([[0], [1]]),
                    y=torch.tensor([0, 1]),
                ),
            ),
            "x of .* torch.sparse_coo, expected a dense tensor",
        ),
        (
            (Data(x=torch.rand(2, 2), edge_index=torch.tensor([[0], [1]]), y=torch.rand(2)),),
            "one integer class",
        ),
    ],
)
def test_unusable_datasets_are_refused(
    fake: type[Fake], monkeypatch: pytest.MonkeyPatch, graphs: Any, complaint: str
) -> None:
    monkeypatch.setattr(fake, "graphs", graphs)
    with pytest.raises(DataError, match=complaint):
        load("pyg:WebKB/Cornell")


def test_failing_download_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(root: str, name: str) -> None:
        raise ConnectionError("no route to host")

    monkeypatch.setattr(pyg, "WebKB", fail)
    with pytest.raises(
        DataError, match="could not make pyg:WebKB/Cornell: ConnectionError: no route to host"
    ):
        load("pyg:WebKB/Cornell")
