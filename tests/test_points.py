"""The recipes of docs/results/points: they load, fit their models, and have published settings."""

from pathlib import Path

import pytest
import torch

from eamp.experiments.cell import Cell
from eamp.experiments.recipe import load_recipe
from eamp.nn.models import MODELS
from eamp.training.objectives import Consistency

FOLDER = Path(__file__).parents[1] / "docs" / "results" / "points"
RECIPES = sorted(FOLDER.glob("*.yaml"))
PUBLISHED = "random propagation, consistency"


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_a_recipe_loads_and_its_models_take_their_options(path: Path) -> None:
    _, cells = load_recipe(path)
    page = (FOLDER / "README.md").read_text("utf-8")
    command = f"eamp sweep docs/results/points/{path.name} --output out/{path.stem}"
    assert command in page
    assert command in path.read_text("utf-8")
    x, edge_index = torch.randn(3, 5), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    for cell in (cell for cell in cells if cell.seed == cells[0].seed):
        options = {"dropout": cell.dropout, "entropy": cell.entropy, **(cell.options or {})}
        model = MODELS[cell.model](5, cell.width, 3, cell.depth, **options)
        assert model(x, edge_index).shape == (3, 3), cell.name


def published(name: str) -> dict[str, Cell]:
    paths = sorted(FOLDER.glob("harness_check*.yaml"))
    cells = [cell for path in paths for cell in load_recipe(path)[1]]
    return {cell.data: cell for cell in cells if cell.name == name and cell.seed == 0}


def test_random_propagation_has_the_settings_of_its_authors() -> None:
    found = published(PUBLISHED)
    expected = {
        "cora": (8, Consistency(4, 1.0, 0.5, 0.5)),
        "citeseer": (2, Consistency(2, 0.7, 0.3, 0.5)),
        "pubmed": (5, Consistency(4, 1.0, 0.2, 0.5)),
    }
    assert {data: (c.depth, c.rules.consistency) for data, c in found.items()} == expected
    # Rows are dropped once: by the objective, not by the network as well.
    assert all(cell.options and cell.options["drop_rows"] == 0 for cell in found.values())
    assert {cell.rules.weight_decay for cell in found.values()} == {5e-4}


def test_gcniii_has_the_settings_of_its_authors() -> None:
    found = published("GCNIII")
    sizes = {data: (cell.depth, cell.width) for data, cell in found.items()}
    assert sizes == {"cora": (64, 64), "citeseer": (16, 256), "pubmed": (16, 256)}
    shares = {data: (cell.options or {})["gamma"] for data, cell in found.items()}
    assert shares == {"cora": 0.02, "citeseer": 0.01, "pubmed": 0.02}
