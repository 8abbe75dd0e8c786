"""Tutorials run from their first cell to their last; charts in notebooks need no network."""

import base64
import re
from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat", reason="reads notebooks, with eamp[docs]")
pytest.importorskip("nbclient", reason="runs notebooks, with eamp[test]")

from website.execute import TUTORIALS, executed  # noqa: E402 - the skips above come first

pytestmark = [
    pytest.mark.slow,
    # jupyter_client and its event loop, which only run the notebooks
    pytest.mark.filterwarnings("default"),
]

CHARTS = """
import eamp
import pandas as pd
import altair as alt
from torch_geometric.nn import GCN
from eamp.report.figure import Figure, Panel

data = eamp.data.load("grid:4x4")
model = GCN(data.num_features, 8, num_layers=3)
with eamp.probe(model) as p:
    model(data.x, data.edge_index)
"""
SHOWN = (
    "p.plot(['energy'])",
    "eamp.diagnose(model, data).plot(['norm'])",
    "chart = alt.Chart(pd.DataFrame({'x': [1, 2]})).mark_point().encode(x='x:Q')\n"
    "Figure('key', 'title', 'caption', (Panel('heading', chart),))",
)


def text_of(output: Any) -> str:
    return str(output.get("text", "")) + "".join(map(str, output.get("data", {}).values()))


def outputs(notebook: Any) -> list[Any]:
    return [each for cell in notebook.cells for each in cell.get("outputs", [])]


def loads_from_elsewhere(output: Any) -> bool:
    return bool(re.search(r"<(script|link|iframe)|https?://cdn", text_of(output)))


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_runs_and_shows_what_is_stored(path: Path) -> None:
    """Numbers may differ between machines; kinds of outputs may not."""
    stored, found = outputs(nbformat.read(path, as_version=4)), outputs(executed(path))
    assert [sorted(o.get("data", o)) for o in found] == [sorted(o.get("data", o)) for o in stored]
    assert stored
    assert not any(map(loads_from_elsewhere, stored + found))
    assert path.stat().st_size < 300_000


def test_charts_in_a_notebook_are_pictures(tmp_path: Path) -> None:
    cells = [nbformat.v4.new_code_cell(source) for source in (CHARTS, *SHOWN)]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "charts.ipynb")
    found = outputs(executed(tmp_path / "charts.ipynb"))
    assert len(found) == len(SHOWN)
    for output in found:
        assert base64.b64decode(output.data["image/png"]).startswith(b"\x89PNG")
        assert not loads_from_elsewhere(output)
        assert set(output.data) == {"image/png", "text/plain"}
