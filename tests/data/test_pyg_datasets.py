from pathlib import Path
from typing import Any

import pytest
import torch
import torch_geometric.datasets as pyg
from torch_geometric.data import Data

from eamp.data import load
from eamp.data.errors import DataError


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


@pytest.mark.usefixtures("fake")
def test_root_lies_in_the_cache(tmp_path: Path) -> None:
    load("pyg:WebKB/Cornell")
    assert (tmp_path / "cache" / "pyg" / "WebKB").is_dir()


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
