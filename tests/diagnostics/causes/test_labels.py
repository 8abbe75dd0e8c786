from __future__ import annotations

import pandas as pd
import pytest
import torch
from torch import Tensor
from torch.nn import Module
from torch.nn.functional import one_hot
from torch_geometric.data import Data
from torch_geometric.nn import GCN

import eamp
from diagnostics.faulty_models import features, grid

LABELS = torch.arange(100) % 10 // 5  # of the left half and of the right half


def model() -> GCN:
    torch.manual_seed(0)
    return GCN(32, 16, 2, out_channels=2)


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (LABELS[:60], r"60 labels .* 100 nodes"),
        (LABELS.double(), r"torch.float64 of shape \(100,\); pass labels.long"),
        (LABELS.bool(), r"torch.bool of shape \(100,\); pass labels.long"),
        (one_hot(LABELS), r"shape \(100, 2\); pass labels.argmax\(1\)"),
    ],
)
def test_labels_that_are_no_classes_of_the_nodes_are_refused(labels: Tensor, words: str) -> None:
    data = Data(features(), grid(), y=LABELS)
    with pytest.raises(ValueError, match=words):
        eamp.diagnose(model(), data, labels=labels)
    with pytest.raises(ValueError, match=words):
        eamp.diagnose(model(), (features(), grid()), labels=labels)
    with pytest.raises(ValueError, match=words), eamp.probe(model(), labels=labels) as p:
        p.model(features(), grid())


def test_one_column_of_labels_is_read_as_labels() -> None:
    data = (features(), grid())
    expected = eamp.diagnose(model(), data, labels=LABELS, measures="group_distance_ratio")
    found = eamp.diagnose(
        model(), data, labels=LABELS.unsqueeze(1), measures="group_distance_ratio"
    )
    assert found.usefulness is not None
    assert found.usefulness == expected.usefulness
    pd.testing.assert_frame_equal(found.table, expected.table)


def test_layers_with_other_nodes_than_the_data_are_diagnosed_without_its_labels() -> None:
    class Padded(Module):
        """Adds a virtual node without neighbours."""

        def __init__(self) -> None:
            super().__init__()
            self.gnn = model()

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            out: Tensor = self.gnn(torch.cat([x, x[:1]]), edge_index)
            return out[:-1]

    data = Data(features(), grid(), y=LABELS)
    table = eamp.diagnose(Padded(), data, measures="group_distance_ratio").table
    assert table[["probe_accuracy", "group_distance_ratio"]].isna().all(axis=None)
    with pytest.raises(ValueError, match=r"100 labels .* 101 nodes"):
        eamp.diagnose(Padded(), data, labels=LABELS)
