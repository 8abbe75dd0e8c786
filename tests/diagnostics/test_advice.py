"""The order of the advice is that of the accuracies to which it leads."""

from pathlib import Path
from typing import get_args

import pandas as pd
import pytest
import torch
from torch_geometric.nn import GCN

import eamp
from eamp.diagnostics.advice import INITIAL_RESIDUAL, REMEDIES, advise
from eamp.diagnostics.verdict import Finding, Kind

TRAINED = Path(__file__).parents[2] / "docs" / "results" / "evidence" / "remedies.csv"
# What a remedy is called in the advice, and in the recipe that trained it.
IN_ADVICE = {
    "entropic-deep-gcn": "initial residual: entropic-deep-gcn",
    "GCN2Conv": "initial residual and identity mapping: GCNII",
    "fewer layers": "fewer layers",
    "x + conv(x)": "residual connections, x + conv(x)",
    "PairNorm": "pair normalisation",
    "eamp.wrap": "the entropy step, differentiated",
}


@pytest.mark.parametrize("kind", get_args(Kind))
def test_every_finding_in_a_deep_network_leads_to_a_network_that_wins(kind: Kind) -> None:
    if kind in ("healthy", "untrained"):
        return
    table = pd.DataFrame({"width": [64] * 16, "energy": [1.0] * 16})
    advice = advise([Finding(kind, 3, 16, "")], table, GCN(4, 4, 2), 4.0)
    assert advice[0] == INITIAL_RESIDUAL
    assert set(REMEDIES[kind]) <= set(advice)
    shallow = advise([Finding(kind, 2, 2, "")], table.iloc[:2], GCN(4, 4, 2), 4.0)
    assert (INITIAL_RESIDUAL in shallow) == (kind == "smoothing")
    harmless = Finding(kind, 3, 16, "", harmless=True)
    assert advise([harmless], table, GCN(4, 4, 2), 4.0, trained=True) == ()


def test_what_leads_to_higher_accuracy_is_advised_first() -> None:
    torch.manual_seed(0)
    data = eamp.data.load("grid:10x10,features=16")
    diagnosis = eamp.diagnose(GCN(16, 64, num_layers=32), data)
    assert diagnosis.kind == "smoothing"
    text = "\n".join(diagnosis.advice)
    trained = pd.read_csv(TRAINED)
    accuracy = trained.groupby(["name", "depth"])["test_accuracy"].mean().groupby("name").max()
    in_text = [remedy for remedy in sorted(IN_ADVICE, key=text.find) if remedy in text]
    assert "entropic-deep-gcn" in in_text
    assert in_text == sorted(in_text, key=lambda remedy: -accuracy[IN_ADVICE[remedy]])
