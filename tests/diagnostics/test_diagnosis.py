from __future__ import annotations

import io
import math
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from torch import Tensor
from torch.nn import BatchNorm1d, Module
from torch_geometric.data import Data
from torch_geometric.nn import GCN, GCN2Conv, PointNetConv, SAGEConv

import eamp
from diagnostics.faulty_models import Apply, Stack, average, features, grid, rotate, scale
from eamp.diagnostics import report
from eamp.diagnostics.advice import needed_weight, step_increase
from eamp.diagnostics.verdict import Finding


def deep_gcn(seed: int = 0) -> GCN:
    torch.manual_seed(seed)
    return GCN(64, 256, 64)


def test_text_names_the_kind_the_layer_the_numbers_and_a_remedy() -> None:
    diagnosis = eamp.diagnose(deep_gcn(), (features(64), grid()))
    text = str(diagnosis)
    assert text.startswith(
        f"Oversmoothing from layer {diagnosis.layer} of 64 on: neighbours become alike"
    )
    assert "Shrinking from layer" in text
    assert "eamp.wrap(model, weight=" in text
    assert max(map(len, text.splitlines())) <= 120
    assert len(diagnosis.table) == 64
    assert repr(diagnosis) == f"Diagnosis(kind='smoothing', layer={diagnosis.layer}, num_layers=64)"
    assert "Oversmoothing" in diagnosis._repr_html_()


def test_shrinking_is_not_called_oversmoothing() -> None:
    text = str(eamp.diagnose(Stack(*(Apply(scale(0.3)) for _ in range(12))), (features(), grid())))
    assert text.startswith("Shrinking from layer 5 of 12 on")
    assert "Oversmoothing" not in text
    assert "eamp.wrap" not in text


def test_a_healthy_model_gets_no_advice() -> None:
    diagnosis = eamp.diagnose(Stack(Apply(rotate), Apply(rotate)), (features(), grid()))
    assert diagnosis.advice == ()
    assert str(diagnosis).startswith("Healthy: over 2 layers the scale-free energy is between")


def test_one_layer_is_one_layer() -> None:
    diagnosis = eamp.diagnose(Stack(Apply(rotate)), (features(), grid()))
    assert str(diagnosis).startswith("Healthy: over 1 layer the scale-free energy")


def test_following_the_advice_makes_the_model_healthy() -> None:
    data = (features(64), grid())
    (advice,) = (a for a in eamp.diagnose(deep_gcn(), data).advice if a.startswith("eamp.wrap"))
    weight, temperature = re.findall(r"(?:weight|temperature)=([\d.e+-]+)", advice)
    cured = eamp.diagnose(
        eamp.wrap(deep_gcn(), weight=float(weight), temperature=float(temperature), detach=False),
        data,
    )
    assert cured.kind == "healthy"


def test_advice_for_a_weak_entropy_step_gives_the_needed_weight() -> None:
    diagnosis = eamp.diagnose(
        eamp.wrap(deep_gcn(), weight=1.0, temperature=1.0), (features(64), grid())
    )
    assert "Your λ = 1 is too small" in diagnosis.advice[0]
    assert "eamp.unwrap(model)" in diagnosis.advice[0]


def test_advice_for_a_low_temperature_is_to_raise_it() -> None:
    diagnosis = eamp.diagnose(
        eamp.wrap(deep_gcn(), weight=10.0, temperature=1e-6), (features(64), grid())
    )
    assert "raise T" in diagnosis.advice[0]


def test_a_note_says_that_a_strong_step_makes_neighbours_opposite() -> None:
    diagnosis = eamp.diagnose(
        eamp.wrap(deep_gcn(), weight=10.0, temperature=1.0), (features(64), grid())
    )
    assert "more often opposite than alike" in str(diagnosis)


def test_advice_names_a_step_that_can_explode() -> None:
    model = eamp.wrap(Stack(*(Apply(scale(3.0)) for _ in range(12))), weight=50.0, temperature=1.0)
    diagnosis = eamp.diagnose(model, (features(), grid()))
    assert diagnosis.kind == "exploding"
    assert "The entropy step multiplies small differences by" in diagnosis.advice[0]


def test_advice_for_nodes_alike_from_the_start_is_to_check_the_input() -> None:
    diagnosis = eamp.diagnose(Stack(Apply(rotate), Apply(rotate)), (torch.ones(100, 8), grid()))
    assert (diagnosis.kind, diagnosis.layer) == ("smoothing", 1)
    assert "input features" in diagnosis.advice[0]


@pytest.mark.parametrize("labels", [None, torch.arange(100) % 2])
def test_without_edges_nothing_is_smoothed_and_a_note_says_so(labels: Tensor | None) -> None:
    none = torch.empty(2, 0, dtype=torch.long)
    diagnosis = eamp.diagnose(GCN(8, 16, 3), (features(8), none), labels=labels)
    assert diagnosis.kind in ("healthy", "low accuracy")
    assert "Note: the graph has no edges" in str(diagnosis)
    assert "nan" not in str(diagnosis)
    assert "energy" not in str(diagnosis).split("Note:")[0]
    shrinking = eamp.diagnose(Stack(*(Apply(scale(0.1)) for _ in range(6))), (features(8), none))
    assert [finding.kind for finding in shrinking.findings] == ["shrinking"]
    assert "the graph has no edges" not in str(
        eamp.diagnose(GCN(8, 16, 3), (features(8), torch.tensor([[0, 1], [1, 0]])))
    )


def test_needed_weight_by_hand() -> None:
    # Energy falls to 1/16 in two layers, so differences fall to 1/2 in each, and the gain must
    # be 1. With k = 4 and F = 64 this is 2λ/4 = 1.
    table = pd.DataFrame({"energy": [16.0, 4.0, 1.0], "width": [64] * 3})
    finding = Finding("smoothing", 3, 3, "")
    assert needed_weight(finding, table, 0.0, 4.0) == pytest.approx(2)
    # If a step of gain 1 was in use, the layers alone multiply differences by 1/4, and the gain
    # must be 3.
    assert step_increase(2.0, 4.0, 64) == pytest.approx(1)
    assert needed_weight(finding, table, 2.0, 4.0) == pytest.approx(6)
    assert math.isnan(needed_weight(Finding("smoothing", 1, 1, ""), table, 0.0, 4.0))


class Named(Module):
    """Takes its arguments by name, in an order of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = Apply(rotate)

    def forward(self, edge_index: Tensor, x: Tensor, missing: None = None) -> Tensor:
        return self.layer(x, edge_index)


class TakesData(Named):
    def forward(self, data: Data) -> Tensor:  # type: ignore[override]  # another signature is the point
        return self.layer(data.x, data.edge_index)


@pytest.mark.parametrize("model", [GCN(32, 8, 2), GCN(-1, 8, 2), Named(), TakesData()])
def test_data_is_passed_as_the_model_takes_it(model: Module) -> None:
    diagnosis = eamp.diagnose(model, Data(features(), grid(), y=torch.zeros(100)))
    assert diagnosis.kind == "healthy"
    assert diagnosis.usefulness is None  # targets of a regression are no labels


def test_the_graph_is_that_of_the_layers_wherever_it_stands_among_the_arguments() -> None:
    class Points(Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = eamp.EntropyAware(PointNetConv(torch.nn.Linear(35, 8)), weight=0.1)

        def forward(self, x: Tensor, pos: Tensor, edge_index: Tensor) -> Tensor:
            out: Tensor = self.first(x, pos, edge_index)
            return out

    assert eamp.diagnose(Points(), (features(), torch.randn(100, 3), grid())).kind == "healthy"
    layer = GCN2Conv(32, alpha=0.5)
    assert eamp.diagnose(layer, (features(), features(), grid())).kind == "healthy"


def test_run_calls_the_model() -> None:
    def run(model: Any, data: Any) -> Any:
        return model(data["edges"], data["nodes"])

    assert eamp.diagnose(Named(), {"nodes": features(), "edges": grid()}, run=run).kind == "healthy"


def test_the_model_is_left_as_it_was() -> None:
    model = GCN(32, 8, 3, norm="batch_norm", dropout=0.5)
    model.convs[1].eval()
    norm = next(m for m in model.modules() if isinstance(m, BatchNorm1d))
    before = norm.running_mean
    assert before is not None
    before = before.clone()
    diagnosis = eamp.diagnose(model, (features(), grid()))
    again = eamp.diagnose(model, (features(), grid()))
    assert model.training
    assert model.convs[0].training
    assert not model.convs[1].training
    assert torch.equal(before, norm.running_mean)  # type: ignore[arg-type]  # a tensor, as above
    pd.testing.assert_frame_equal(diagnosis.table, again.table)


@pytest.mark.filterwarnings("ignore:.*cannot be measured on a graph")
def test_error_if_no_layer_could_be_measured_on_a_graph() -> None:
    with pytest.raises(ValueError, match="no verdict"):
        eamp.diagnose(
            SAGEConv((32, 32), 8), ((features(), features()[:10]), torch.tensor([[50, 60], [0, 1]]))
        )


def test_report_writes_and_saves(tmp_path: Path) -> None:
    model = Stack(*(Apply(average) for _ in range(40)))
    stream = io.StringIO()
    diagnosis = report(model, (features(), grid()), tmp_path / "out", stream=stream)
    assert stream.getvalue() == f"{diagnosis}\n"
    assert (tmp_path / "out" / "diagnosis.txt").read_text(encoding="utf-8") == f"{diagnosis}\n"
    saved = pd.read_csv(tmp_path / "out" / "layers.csv")
    assert saved["layer"].tolist() == list(range(1, 41))
    assert "<svg" in (tmp_path / "out" / "layers.svg").read_text(encoding="utf-8")
    page = (tmp_path / "out" / "layers.html").read_text(encoding="utf-8")
    assert "<script src=" not in page  # opens without a network


def labelled_grid(width: int = 32) -> Data:
    """Nodes of the left half and of the right half, with features that tell them apart."""
    labels = (torch.arange(100) % 10 >= 5).long()
    x = features(width) + 2 * labels.unsqueeze(1)
    return Data(x, grid(), y=labels, train_mask=torch.arange(100) < 60, val_mask=None)


def test_an_untrained_model_is_called_so_if_labels_show_it() -> None:
    torch.manual_seed(0)
    model = GCN(32, 16, 2, out_channels=2)
    with torch.no_grad():
        model.convs[1].lin.weight.zero_()  # every node gets the same answer
        model.convs[1].bias.copy_(torch.tensor([1.0, 0.0]))
        model.convs[1].lin.weight[1, 0] = 1e-6
    diagnosis = eamp.diagnose(model, labelled_grid())
    assert diagnosis.usefulness is not None
    assert diagnosis.usefulness.learned is False
    assert "initialisation" in str(diagnosis)
    assert diagnosis.kind != "healthy"


def test_labels_are_those_of_the_data_unless_others_are_passed() -> None:
    model = GCN(32, 16, 2, out_channels=2)
    data = labelled_grid()
    assert eamp.diagnose(model, data).usefulness.nodes == 60  # type: ignore[union-attr]
    mask = torch.arange(100) >= 60
    assert eamp.diagnose(model, data, mask=mask).usefulness.nodes == 40  # type: ignore[union-attr]
    table = eamp.diagnose(model, (data.x, data.edge_index), labels=data.y).table
    assert {"probe_accuracy", "propagation_accuracy"} <= set(table.columns)
    with pytest.raises(ValueError, match="one truth value per label"):
        eamp.diagnose(model, data, mask=torch.arange(3))


def test_measures_that_no_verdict_reads_are_taken_if_they_are_named() -> None:
    model, data = GCN(32, 16, 2, out_channels=2), labelled_grid()
    usual = eamp.diagnose(model, data)
    more = eamp.diagnose(model, data, measures=["mad", "group_distance_ratio"])
    assert set(more.table) - set(usual.table) == {"mad", "group_distance_ratio"}
    assert set(eamp.diagnose(model, data, measures="mad").table) - set(usual.table) == {"mad"}
    assert more.findings == usual.findings
    with eamp.probe(model.eval(), ["mad", "group_distance_ratio"], labels=data.y) as p:
        model(data.x, data.edge_index)
    for name in ("mad", "group_distance_ratio"):
        assert list(more.table[name]) == pytest.approx(list(getattr(p, name)))
