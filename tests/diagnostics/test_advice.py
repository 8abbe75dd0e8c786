"""The order of the advice is that of the accuracies to which it leads."""

from pathlib import Path
from typing import get_args

import pandas as pd
import pytest
import torch
from torch_geometric.nn import GCN, GraphSAGE

import eamp
from eamp.diagnostics.advice import INITIAL_RESIDUAL, REMEDIES, advise
from eamp.diagnostics.verdict import Finding, Kind

EVIDENCE = Path(__file__).parents[2] / "docs" / "results" / "evidence"
RECIPES = ("remedies", "remedies_rates")  # the latter at smaller learning rates
# What a remedy is called in the advice, and in the recipe that trained it.
IN_ADVICE = {
    "entropic-deep-gcn": "initial residual: entropic-deep-gcn",
    "GCN2Conv": "initial residual and identity mapping: GCNII",
    "fewer layers": "fewer layers",
    "mirror_weights": "mirrored initial weights",
    "x + conv(x)": "residual connections, x + conv(x)",
    "PairNorm": "pair normalisation",
    "kaiming_normal_": "initial weights for ReLU",
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
    trained = pd.concat(pd.read_csv(EVIDENCE / f"{name}.csv") for name in RECIPES)
    trained["remedy"] = trained["name"].str.split(" [", regex=False).str[0]
    means = trained.groupby(["remedy", "name", "depth"])["test_accuracy"].mean()
    accuracy = means.groupby("remedy").max()
    in_text = [remedy for remedy in sorted(IN_ADVICE, key=text.find) if remedy in text]
    assert "entropic-deep-gcn" in in_text
    assert in_text == sorted(in_text, key=lambda remedy: -accuracy[IN_ADVICE[remedy]])
    assert text.find("eamp.wrap") > max(map(text.find, in_text))


def test_mirrored_weights_are_advised_where_they_can_be_had_and_cure() -> None:
    data = eamp.data.load("csbm")
    for kind, advised in ((GCN, True), (GraphSAGE, False)):
        torch.manual_seed(0)
        model = kind(data.num_features, 64, num_layers=32, out_channels=data.num_classes)
        diagnosis = eamp.diagnose(model, data)
        assert "rank loss" in {finding.kind for finding in diagnosis.findings}
        assert any("mirror_weights" in line for line in diagnosis.advice) == advised
        if advised:
            eamp.nn.mirror_weights(model.convs)
            kinds = {finding.kind for finding in eamp.diagnose(model, data).findings}
            assert not kinds & {"shrinking", "rank loss"}
