"""The order of the advice is that of the accuracies to which it leads."""

from pathlib import Path

import pandas as pd
import torch
from torch_geometric.nn import GCN

import eamp

TRAINED = Path(__file__).parents[2] / "docs" / "results" / "evidence" / "remedies.csv"
# What a remedy is called in the advice, and in the recipe that trained it.
REMEDIES = {
    "entropic-deep-gcn": "initial residual: entropic-deep-gcn",
    "GCN2Conv": "initial residual and identity mapping: GCNII",
    "fewer layers": "fewer layers",
    "eamp.wrap": "the entropy step, differentiated",
}


def test_what_leads_to_higher_accuracy_is_advised_first() -> None:
    torch.manual_seed(0)
    data = eamp.data.load("grid:10x10,features=16")
    diagnosis = eamp.diagnose(GCN(16, 64, num_layers=32), data)
    assert diagnosis.kind == "smoothing"
    text = "\n".join(diagnosis.advice)
    trained = pd.read_csv(TRAINED)
    accuracy = trained.groupby(["name", "depth"])["test_accuracy"].mean().groupby("name").max()
    in_text = sorted(REMEDIES, key=text.index)
    by_accuracy = sorted(REMEDIES, key=lambda remedy: -accuracy[REMEDIES[remedy]])
    assert in_text == by_accuracy
