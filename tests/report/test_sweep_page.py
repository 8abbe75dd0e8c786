from pathlib import Path

import pandas as pd
import pytest

from eamp.experiments.statistics import compare
from eamp.report.comparison import comparison_table
from eamp.report.sweep_page import write_sweep_page
from headings import jumps


@pytest.fixture
def cells() -> pd.DataFrame:
    rows = [
        {"data": "cora", "name": name, "depth": depth, "seed": seed}
        for name in ("GCN", "<b>mine</b>")
        for depth in (2, 16)
        for seed in (0, 1, 2)
    ]
    accuracy = [0.8 - 0.01 * k for k in range(len(rows))]
    about = {"width": 64, "epochs": 200, "protocol": "standard", "seconds": 1.0, "threads": 1}
    about |= {"changes": [{"epochs": 200}] * len(rows), "version": "eamp 1.0, torch 2.13"}
    return pd.DataFrame(rows).assign(**about, best_val_accuracy=accuracy, test_accuracy=accuracy)


def test_the_page_of_a_sweep_says_what_was_found_and_how(
    cells: pd.DataFrame, tmp_path: Path
) -> None:
    compared = comparison_table(compare(cells, "GCN"), "GCN")
    cells["epochs"] = [200] * 11 + [300]
    path = write_sweep_page(
        tmp_path,
        "my recipe",
        cells,
        comparisons=[compared],
        planned=14,
        notices=["cora gat depth 4 failed"],
        command="eamp sweep mine.yaml",
    )
    text = path.read_text(encoding="utf-8")
    for words in (
        "<h1>my recipe</h1>",
        "the validation nodes choose GCN with 2 layers",
        "Comparison in pairs",
        "</strong> cora gat depth 4 failed",
        "12 of 14; width 64; 200 or 300 epochs; protocol standard",
        "eamp sweep mine.yaml",
        "3 seeds (numbers 0 to 2)",
        "{&#34;epochs&#34;: 200}",
        "eamp 1.0, torch 2.13",
    ):
        assert words in text, words
    assert "<b>mine" not in text
    assert not jumps(text)
    assert (tmp_path / "figures" / "means.png").stat().st_size > 1000
    assert (tmp_path / "tables" / "comparison.csv").stat().st_size > 50


def test_every_metric_has_a_section_of_its_own(cells: pd.DataFrame, tmp_path: Path) -> None:
    columns = {"metric": "roc_auc", "select": "val_metric", "best_val_metric": 0.7}
    both = pd.concat([cells, cells.assign(**columns, test_metric=0.6)], ignore_index=True)
    text = write_sweep_page(tmp_path, "two", both).read_text(encoding="utf-8")
    assert "Test accuracy at lowest validation loss against depth" in text
    assert "Test ROC AUC at highest validation ROC AUC against depth" in text
    assert "Comparison in pairs" not in text
