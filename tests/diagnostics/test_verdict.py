"""Models that go wrong in one known way, and the verdict on each."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest
import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric.nn import GCN, GraphSAGE

import eamp
from diagnostics.faulty_models import (
    Apply,
    Stack,
    average,
    features,
    flatten,
    grid,
    rotate,
    scale,
    star_of_stars,
)
from eamp.diagnostics.verdict import DEAD, SMOOTHED, findings
from eamp.nn.conv.gcn_conv import gcn_propagate

Step = Callable[[Tensor, Any], Tensor]


def stack(step: Step, depth: int = 30) -> Stack:
    return Stack(*(Apply(step) for _ in range(depth)))


def kinds(model: Module, x: Tensor | None = None, edge_index: Any = None) -> list[str]:
    diagnosis = eamp.diagnose(
        model, (features() if x is None else x, grid() if edge_index is None else edge_index)
    )
    return [finding.kind for finding in diagnosis.findings]


def test_averaging_at_constant_norm_is_smoothing_and_nothing_else() -> None:
    assert kinds(stack(average, 40)) == ["smoothing"]


def test_averaging_that_also_shrinks_is_smoothing_first() -> None:
    assert kinds(stack(lambda x, e: 0.5 * average(x, e), 40)) == ["smoothing", "shrinking"]


def test_graph_convolution_is_smoothing_on_an_irregular_graph_too() -> None:
    graph = star_of_stars()
    assert kinds(stack(gcn_propagate), torch.randn(graph.num_nodes, 8), graph)[0] == "smoothing"


def test_scaling_down_is_shrinking_and_not_smoothing() -> None:
    assert kinds(stack(scale(0.3), 12)) == ["shrinking"]


def test_shrinking_to_nothing_is_shrinking() -> None:
    assert kinds(stack(scale(1e-8), 12)) == ["shrinking"]  # zero in float32 from the sixth layer on


def test_losing_directions_at_constant_energy_is_loss_of_rank() -> None:
    assert kinds(stack(flatten, 20)) == ["rank loss"]


def test_rotations_are_healthy() -> None:
    diagnosis = eamp.diagnose(stack(rotate), (features(), grid()))
    assert diagnosis.kind == "healthy"
    assert diagnosis.layer is None
    assert diagnosis.findings == ()


def test_one_layer_alone_cannot_shrink() -> None:
    assert kinds(stack(scale(1e-5), 1)) == []


@pytest.mark.parametrize("factor", [3.0, 1e8])
def test_scaling_up_is_exploding(factor: float) -> None:
    assert kinds(stack(scale(factor), 20)) == ["exploding"]


def test_not_a_number_is_exploding_where_it_first_appears() -> None:
    layers = [Apply(rotate), Apply(rotate), Apply(scale(math.nan)), Apply(rotate)]
    diagnosis = eamp.diagnose(Stack(*layers), (features(), grid()))
    assert (diagnosis.kind, diagnosis.layer) == ("exploding", 3)


def test_small_features_that_grow_to_order_one_do_not_explode() -> None:
    assert (
        kinds(Stack(Apply(scale(1.0)), Apply(scale(2000.0)), Apply(rotate)), 1e-3 * features())
        == []
    )


def dying(share: float, **options: Any) -> GCN:
    torch.manual_seed(0)
    model = GCN(32, 64, 5, **options)
    with torch.no_grad():
        model.convs[1].bias[: int(share * 64)] = -100.0
    return model


def test_units_behind_a_relu_that_never_fire_are_dead() -> None:
    diagnosis = eamp.diagnose(dying(0.9), (features(), grid()))
    assert (diagnosis.kind, diagnosis.layer) == ("dead units", 2)


def test_a_network_that_has_died_altogether_is_dead() -> None:
    diagnosis = eamp.diagnose(dying(1.0), (features(), grid()))
    assert (diagnosis.kind, diagnosis.layer) == ("dead units", 2)


def test_the_same_biases_without_a_relu_kill_nothing() -> None:
    assert "dead units" not in kinds(dying(0.9, act="tanh"))


def test_input_features_that_are_zero_everywhere_are_not_dead_units() -> None:
    x = features()
    x[:, 4:] = 0
    assert kinds(Stack(Apply(rotate), Apply(rotate)), x) == []
    assert kinds(Stack(Apply(scale(1.0))), x) == ["dead units"]  # but those of a layer's output are


@pytest.mark.parametrize("width", [1, 64])
def test_an_untrained_deep_gcn_smooths_and_shrinks(width: int) -> None:
    torch.manual_seed(0)
    x = torch.rand(100, 1) if width == 1 else features(width)
    found = ["smoothing", "shrinking"] if width == 1 else ["smoothing", "rank loss", "shrinking"]
    assert kinds(GCN(width, 256, 64), x) == found


@pytest.mark.parametrize("width", [1, 64])
def test_the_same_with_a_strong_entropy_step_is_healthy_if_it_is_differentiated(width: int) -> None:
    torch.manual_seed(0)
    x = torch.rand(100, 1) if width == 1 else features(width)
    step = {"weight": 10, "temperature": 1, "detach": True}
    # Of a detached step gradients see nothing, so they vanish as they do without it.
    assert kinds(eamp.wrap(GCN(width, 256, 64), step), x) == ["vanishing gradient"]
    assert kinds(eamp.wrap(GCN(width, 256, 64), step | {"detach": False}), x) == []


def test_the_same_with_the_entropy_step_below_its_threshold_is_not() -> None:
    torch.manual_seed(0)
    assert (
        kinds(eamp.wrap(GCN(64, 256, 64), weight=1, temperature=1), features(64))[0] == "smoothing"
    )


def test_an_untrained_deep_sage_smooths_without_shrinking() -> None:
    torch.manual_seed(0)
    assert kinds(GraphSAGE(32, 64, 32)) == ["smoothing", "vanishing gradient"]


def test_an_untrained_shallow_gcn_is_healthy() -> None:
    torch.manual_seed(0)
    assert kinds(GCN(32, 64, 2, out_channels=7)) == []


def test_a_narrow_output_layer_is_no_loss_of_rank() -> None:
    narrow = Apply(lambda x, e: x[:, :1])
    assert kinds(Stack(Apply(rotate), Apply(rotate), narrow)) == []


# --- On tables, where every number can be set ---


def table(**columns: list[float]) -> pd.DataFrame:
    depth = len(next(iter(columns.values())))
    healthy = {
        "relative_energy": 0.5,
        "rayleigh_quotient": 0.5,
        "norm": 1.0,
        "effective_rank": 20.0,
        "dead_units": 0.0,
        "dead_inputs": 0.0,
    }
    return pd.DataFrame(
        {"nodes": [100] * depth, "width": [64] * depth}
        | {k: [v] * depth for k, v in healthy.items()}
        | columns
    )


def test_a_u_curve_names_the_layers_of_its_valley() -> None:
    (found,) = findings(
        table(relative_energy=[0.5, 0.1, SMOOTHED / 2, SMOOTHED / 9, SMOOTHED / 2, 0.1, 0.5])
    )
    assert (found.kind, found.layer, found.last) == ("smoothing", 3, 5)
    assert "1.1e-4 at layer 4" in found.words


def test_a_fall_of_either_scale_free_energy_is_smoothing() -> None:
    (found,) = findings(table(rayleigh_quotient=[0.5, 1e-4]))
    assert found.kind == "smoothing"


def test_a_moderate_fall_is_not_collapse() -> None:
    energy, norm, rank = [0.5, 0.1, 0.02], [1.0, 0.1, 0.02], [20.0, 8.0, 3.0]
    assert findings(table(relative_energy=energy, norm=norm, effective_rank=rank)) == ()


def test_smoothing_needs_both_a_fall_and_a_low_energy() -> None:
    assert findings(table(relative_energy=[0.015, 0.012])) == ()  # low without a fall
    assert findings(table(relative_energy=[2.0, 0.05])) == ()  # a fall to a moderate energy
    deep = [0.5, 0.4, 0.3, 0.2, 0.015]
    assert [(f.kind, f.layer) for f in findings(table(relative_energy=deep))] == [("smoothing", 5)]
    assert findings(table(relative_energy=deep[1:])) == ()  # networks of four layers learn
    # Below a thousandth nodes are alike at any depth.
    assert [f.kind for f in findings(table(relative_energy=[0.5, 9e-4]))] == ["smoothing"]


def test_zero_features_that_enter_a_later_layer_again_are_not_dead_units() -> None:
    assert findings(table(dead_inputs=[0.9, 0.9, 0.0])) == ()
    (found,) = findings(table(dead_inputs=[0.9, 0.95, 0.0]))
    assert (found.kind, found.layer) == ("dead units", 1)


def test_half_of_the_units_dead_is_healthy() -> None:
    assert findings(table(dead_inputs=[0.0, 0.5, 0.6])) == ()


def test_dead_units_that_follow_smoothing_are_its_consequence() -> None:
    after = findings(table(relative_energy=[1e-4, 1e-4, 1e-4], dead_inputs=[0.0, 0.5, DEAD]))
    before = findings(table(relative_energy=[0.5, 0.5, 1e-4], dead_inputs=[0.0, DEAD, DEAD]))
    assert [f.kind for f in after] == ["smoothing"]
    assert [f.kind for f in before] == ["dead units", "smoothing"]


def test_loss_of_rank_and_shrinking_are_sorted_by_layer() -> None:
    rank, early, late = [20.0, 20.0, 1.0, 1.0], [1.0, 1e-3, 1e-3, 1e-3], [1.0, 1.0, 1.0, 1e-3]
    first = findings(table(effective_rank=rank, norm=early))
    second = findings(table(effective_rank=rank, norm=late))
    assert [f.kind for f in first] == ["shrinking", "rank loss"]
    assert [f.kind for f in second] == ["rank loss", "shrinking"]


def test_rank_that_is_lost_while_smoothing_is_found_too() -> None:
    found = findings(table(relative_energy=[0.5, 1e-4, 1e-5], effective_rank=[20.0, 8.0, 1.0]))
    assert [(f.kind, f.layer) for f in found] == [("smoothing", 2), ("rank loss", 3)]
    assert "though neighbours still differ" not in found[1].words


def test_an_embedding_collapses_only_if_the_next_input_does_too() -> None:
    """A residual connection outside of the layers brings back what they lose."""
    kept = {"after_energy": [0.5] * 3, "after_norm": [1.0] * 3, "after_rank": [20.0] * 3}
    low = {"relative_energy": [0.5, 1e-4, 0.5], "norm": [1.0, 1e-4, 1.0]}
    assert findings(table(effective_rank=[20.0, 1.0, 20.0], **low, **kept)) == ()
    lost = {name: [values[0], values[1] * 1e-5, values[2]] for name, values in kept.items()}
    kinds = {f.kind for f in findings(table(effective_rank=[20.0, 1.0, 20.0], **low, **lost))}
    assert kinds == {"smoothing", "shrinking", "rank loss"}


def test_what_a_norm_behind_the_layer_takes_back_does_not_explode() -> None:
    norm = [1.0, 1e5, 1e5, 1.0]
    assert findings(table(norm=norm, after_norm=[1.0, 1.0, 1.0, 1.0])) == ()
    (found,) = findings(table(norm=norm, after_norm=[1.0, 1e5, 1e5, 1.0]))
    assert (found.kind, found.layer) == ("exploding", 2)


def test_gradients_count_in_proportion_to_the_embedding() -> None:
    shrinking = {"norm": [1.0, 0.3, 0.03], "gradient": [1e-4, 1e-3, 1e-2]}
    assert findings(table(**shrinking)) == ()
    (found,) = findings(table(gradient=[1e-5, 1e-2, 1.0]))
    assert (found.kind, found.layer, found.last) == ("vanishing gradient", 1, 1)
    (found,) = findings(table(gradient=[1e5, 1e4, 1.0]))
    assert (found.kind, found.layer, found.last) == ("exploding gradient", 1, 2)
