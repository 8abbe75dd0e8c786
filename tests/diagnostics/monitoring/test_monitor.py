from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GCN, GCNConv, HeteroConv, SAGEConv

import eamp
from diagnostics.faulty_models import Apply, Stack, average, features, grid, rotate
from eamp.diagnostics import Alarm, CollapseWarning, Monitor
from eamp.diagnostics.monitoring.gain_control import stiffness
from eamp.nn import Gain


@pytest.fixture(autouse=True)
def _seed() -> Iterator[None]:
    torch.manual_seed(0)
    return


class Changing(Module):
    """A healthy stack of layers that averages from a given pass on."""

    def __init__(self, healthy: int) -> None:
        super().__init__()
        self.left = healthy
        self.stack = Stack(*(Apply(self.layer) for _ in range(30)))

    def layer(self, x: Tensor, edge_index: Any) -> Tensor:
        return rotate(x, edge_index) if self.left >= 0 else average(x, edge_index)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        self.left -= 1
        return self.stack(x, edge_index)


def train(model: Module, monitor: Monitor, epochs: int) -> None:
    x = features().requires_grad_()
    for epoch in range(epochs):
        model(x, grid()).square().mean().backward()
        monitor.step(epoch)


def test_it_measures_every_few_epochs_and_leaves_nothing_behind() -> None:
    model = GCN(32, 16, 3)
    expected = model(features(), grid())
    with Monitor(model, every=3) as monitor:
        train(model, monitor, 8)
        table = monitor.table()
    assert sorted(table["epoch"].unique()) == [0, 3, 6]
    assert table.groupby("epoch")["layer"].apply(list).tolist() == [[1, 2, 3]] * 3
    assert table[["energy", "norm", "effective_rank", "gradient"]].notna().all(axis=None)
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
    assert torch.equal(model(features(), grid()), expected)
    assert repr(monitor) == "Monitor(GCN, every=3): 3 epochs, 0 alarms"


def test_numbers_are_those_of_a_probe() -> None:
    model = GCN(32, 16, 3)
    with Monitor(model) as monitor, torch.no_grad():
        model(features(), grid())
        monitor.step()
    with eamp.probe(model) as p:
        model(features(), grid())
    for name in ("energy", "rayleigh_quotient", "effective_rank"):
        assert monitor.table()[name].tolist() == p.table()[name].tolist()


def test_the_alarm_rings_at_the_epoch_of_the_collapse() -> None:
    rung: list[Alarm] = []
    model = Changing(healthy=4)
    with Monitor(model, every=2, on_alarm=rung.append) as monitor:
        train(model, monitor, 4)
        assert not monitor.alarms
        with pytest.warns(CollapseWarning, match="epoch 4: Oversmoothing from layer"):
            train_from(model, monitor, 4, 9)
    assert [alarm.epoch for alarm in monitor.alarms] == [4], "once, not at every measurement"
    assert rung == monitor.alarms
    assert rung[0].finding.kind == "smoothing"


def train_from(model: Module, monitor: Monitor, first: int, last: int) -> None:
    for epoch in range(first, last):
        model(features(), grid())
        monitor.step(epoch)


def test_the_alarm_is_kept_where_warnings_are_errors(tmp_path: Path) -> None:
    model = Changing(healthy=0)
    with Monitor(model, folder=tmp_path) as monitor, pytest.raises(CollapseWarning):
        train_from(model, monitor, 0, 1)
    assert len(monitor.alarms) == 1
    assert (tmp_path / "monitor.csv").exists()


def test_evaluation_and_later_batches_are_not_measured() -> None:
    calls: list[int] = []
    model = GCN(32, 16, 2)
    with Monitor(model, every=1) as monitor:
        model.eval()
        model(100 * features(), grid())
        model.train()
        model(features(), grid())
        handle = model.convs[0].register_forward_hook(lambda *_: calls.append(1))
        model(100 * features(), grid())
        model.eval()(100 * features(), grid())
        monitor.step()
    handle.remove()
    assert len(calls) == 2
    assert len(monitor.table()) == 2
    assert monitor.table()["norm"].max() < 3


@pytest.mark.filterwarnings("ignore::eamp.diagnostics.CollapseWarning")  # of untrained layers
def test_a_batch_of_graphs_is_one_measurement() -> None:
    graphs = [Data(x=torch.randn(n, 8), edge_index=torch.tensor([[0, 1], [1, 0]])) for n in (2, 5)]
    batch, model = Batch.from_data_list(graphs), GCN(8, 8, 2)
    with Monitor(model) as monitor:
        model(batch.x, batch.edge_index)
        monitor.step()
    assert monitor.table()["nodes"].tolist() == [7, 7]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The .grad attribute:UserWarning")  # torch.compile's own
def test_compiled_models_are_measured_through_their_original() -> None:
    model = GCN(32, 16, 3, dropout=0.5)
    compiled = torch.compile(model, backend="eager")
    with Monitor(compiled, every=2) as monitor:
        for _ in range(3):
            compiled(features(), grid()).sum().backward()
            monitor.step()
    assert monitor.table()["epoch"].unique().tolist() == [0, 2]
    with eamp.probe(model) as p:
        model.eval()(features(), grid())
    assert monitor.table()["energy"].tolist()[:3] == pytest.approx(p.energy.tolist(), rel=1e-5)
    assert compiled._forward_hooks == {}


def test_wrappers_of_data_parallel_are_seen_through(monkeypatch: pytest.MonkeyPatch) -> None:
    model = GCN(32, 16, 2)
    wrapped = torch.nn.DataParallel(model)
    assert Monitor(wrapped).model is model
    monkeypatch.setattr("torch.distributed.is_initialized", lambda: True)
    monkeypatch.setattr("torch.distributed.get_rank", lambda: 1)
    with Monitor(model) as monitor:
        assert not any(module._forward_hooks for module in model.modules())
        model(features(), grid())
        assert monitor.step() == {}
    assert monitor.rows == []


def test_any_logger_gets_the_numbers_under_flat_names() -> None:
    logged: list[tuple[dict[str, float], int]] = []
    model = GCN(32, 16, 2)
    with Monitor(model, log=lambda values, epoch: logged.append((values, epoch))) as monitor:
        train(model, monitor, 2)
    ((values, epoch),) = logged
    assert epoch == 0
    assert values["eamp/norm/02"] == monitor.table()["norm"][1]
    assert all(isinstance(value, float) for value in values.values())


def test_files_hold_the_table_and_a_page_that_loads_nothing(tmp_path: Path) -> None:
    model = Changing(healthy=1)
    with Monitor(model, every=1, folder=tmp_path) as monitor, warnings.catch_warnings():
        warnings.simplefilter("ignore", CollapseWarning)
        train(model, monitor, 3)
    saved = pd.read_csv(tmp_path / "monitor.csv")
    assert saved["energy"].tolist() == pytest.approx(monitor.table()["energy"].tolist())
    page = (tmp_path / "monitor.html").read_text()
    assert "http" not in page.replace("http-equiv", "")
    assert "Epoch 1: Oversmoothing" in page
    assert page.count("<polyline") == page.count("<title>layer")
    assert page.count("<figure>") == page.count('class="alarm"') == 8
    assert monitor._repr_html_() in page
    assert len(monitor.plot(["energy"]).to_dict()["concat"]) == 1


def test_layers_that_never_run_are_told_once() -> None:
    with Monitor(GCN(32, 16, 2), every=1) as monitor:
        with pytest.warns(UserWarning, match="no forward pass"):
            monitor.step()
        monitor.step()
    with pytest.raises(RuntimeError, match="measured nothing"):
        monitor.table()
    assert "0 epochs" in monitor._repr_html_()
    with pytest.raises(ValueError, match="every"):
        Monitor(GCN(32, 16, 2), every=0)
    with pytest.raises(ValueError, match="every must be a whole number >= 1, but is True"):
        Monitor(GCN(32, 16, 2), every=True)


@pytest.mark.parametrize("weight", [0.2, 0.0, Gain(0.05)])
def test_it_raises_the_gain_of_layers_whose_energy_falls_up_to_its_limit(weight: Any) -> None:
    model = eamp.EntropyAware(Apply(rotate), weight=weight, temperature=1e6)
    smooth = features()
    with Monitor(model, every=1, gain_limit=0.5) as monitor:
        seen = []
        for _ in range(25):
            model(smooth, grid())
            smooth = average(smooth, grid())
            monitor.step()
            seen.append(model.weight.of if isinstance(weight, Gain) else model.weight)
    graph = eamp.Graph(grid())
    unit = stiffness(graph) / math.sqrt(32)
    if isinstance(weight, Gain):
        unit *= eamp.nn.collapse_threshold(graph, 32).item()
    assert seen == sorted(seen)
    assert seen[0] == getattr(weight, "of", weight), "nothing has fallen at the first measurement"
    assert seen[-1] * unit == pytest.approx(0.5)
    assert model.step.weight == model.weight
    assert monitor.table()["weight"].tolist()[1:] == seen[:-1]


def test_a_limit_bounds_what_the_step_does_to_any_difference() -> None:
    graph = eamp.Graph(
        torch.tensor([[0, 0, 0, 0, 1, 1, 2, 3, 4, 2], [1, 2, 3, 4, 0, 2, 0, 0, 0, 1]])
    )
    x = torch.randn(5, 7, dtype=torch.float64) * 1e-3
    weight = 0.5 * math.sqrt(7) / stiffness(graph)
    change = weight * eamp.entropy_gradient(x, graph, temperature=1.0)
    spread = (x.amax(0) - x.amin(0)).max()
    assert change.abs().max() <= 0.5 * spread * (1 + 1e-9)


def test_learned_weights_and_other_models_are_left_alone() -> None:
    model = eamp.wrap(GCN(32, 16, 2), weight=1.0, learn_weight=True)
    with Monitor(model, every=1, gain_limit=0.5) as monitor:
        train(model, monitor, 2)
    assert monitor.gain is not None
    assert monitor.gain.layers == {}
    with pytest.raises(ValueError, match="gain_limit"):
        Monitor(model, gain_limit=2.0)


def test_a_graph_without_edges_raises_no_alarm() -> None:
    model, none = GCN(32, 16, 3), torch.empty(2, 0, dtype=torch.long)
    with Monitor(model, every=1, gain_limit=0.5) as monitor:
        model(features(), none).sum().backward()
        monitor.step()
    assert monitor.alarms == []


def test_a_single_layer_is_measured_once_per_epoch() -> None:
    layer = GCNConv(32, 8)
    with Monitor(layer, every=1) as monitor:
        layer(features(), grid())
        layer(features(), grid())
        monitor.step()
    assert len(monitor.table()) == 1


def test_typed_layers_are_logged_by_relation_and_their_gains_left_alone() -> None:
    torch.manual_seed(0)
    writes, written = ("a", "writes", "p"), ("p", "written", "a")
    cites = ("p", "cites", "p")
    edges = torch.tensor([[0, 1, 2], [0, 1, 1]])
    given = {writes: edges, written: edges.flip(0)}
    given[cites] = torch.tensor([[0, 1], [1, 0]])
    convs = {kind: SAGEConv((4, 4), 4) for kind in given}
    model = eamp.EntropyAware(HeteroConv(convs), weight=1.0, temperature=1.0)
    x = {"a": torch.randn(3, 4), "p": torch.randn(2, 4)}
    with Monitor(model, gain_limit=0.5) as monitor:
        model(x, given)
        values = monitor.step()
    relations = set(monitor.table()["relation"])
    assert len(relations) == 2
    assert len([name for name in values if name.startswith("eamp/energy/")]) == 2
