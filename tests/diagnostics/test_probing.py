from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import Linear, Module, ReLU
from torch.utils.checkpoint import checkpoint, set_checkpoint_early_stop
from torch_geometric.nn import GAT, GCN, GCNConv
from torch_geometric.nn import Sequential as PygSequential

import eamp
from diagnostics.faulty_models import Apply, Stack, features, grid, scale
from eamp.diagnostics import mean_energy, relative_energy


def gcn(num_layers: int = 3, **options: Any) -> GCN:
    torch.manual_seed(0)
    return GCN(32, 16, num_layers, **options)


def own(width: int = 32) -> Module:
    return Stack(
        *(eamp.nn.conv.gcn_conv.GCNConv(width, width) for _ in range(3)), activation=torch.relu
    )


MODELS: dict[str, Callable[[], Module]] = {
    "PyG": gcn,
    "dropout": lambda: gcn(dropout=0.5),
    "wrapped": lambda: eamp.wrap(gcn(), weight=1.0, temperature=1.0),
    "partly wrapped": lambda: eamp.wrap(gcn(), skip="convs.1"),
    "ours": own,
    "attention": lambda: GAT(32, 16, 3, heads=2),
    "Sequential": lambda: PygSequential(
        "x, edge_index",
        [(GCNConv(32, 8), "x, edge_index -> x"), ReLU(), (GCNConv(8, 8), "x, edge_index -> x")],
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_output_gradients_and_random_numbers_do_not_change(name: str) -> None:
    model, x, edge_index = MODELS[name](), features(), grid()

    def run() -> tuple[Tensor, list[Tensor], Tensor]:
        torch.manual_seed(1)
        model.zero_grad()
        out = model(x, edge_index)
        out.square().sum().backward()
        return (
            out,
            [p.grad.clone() for p in model.parameters() if p.grad is not None],
            torch.get_rng_state(),
        )

    expected = run()
    with eamp.probe(model, gradients=True) as p:
        seen = run()
    assert torch.equal(seen[0], expected[0])
    assert all(torch.equal(a, b) for a, b in zip(seen[1], expected[1], strict=True))
    assert torch.equal(seen[2], expected[2])
    assert len(p.table()) == sum(1 for _ in eamp.nn.wrapping.message_passing_layers(model))


def test_measures_are_taken_at_the_layers_outputs() -> None:
    model, x, edge_index = gcn(), features(), grid()
    with torch.no_grad(), eamp.probe(model) as p:
        model(x, edge_index)
        first = model.convs[0](x, edge_index)
        second = model.convs[1](first.relu(), edge_index)
    expected = [mean_energy(first, edge_index), mean_energy(second, edge_index)]
    np.testing.assert_allclose(p.energy[:2], [float(e) for e in expected])
    table = p.table()
    assert table["layer"].tolist()[:3] == [1, 2, 3]
    assert table["name"].tolist()[:3] == ["convs.0", "convs.1", "convs.2"]
    assert table["width"].tolist()[:3] == [16, 16, 16]


def test_wrapped_layers_are_measured_behind_the_entropy_step() -> None:
    model, x, edge_index = eamp.wrap(gcn(1), weight=5.0, temperature=1.0), features(), grid()
    with eamp.probe(model) as p:
        out = model(x, edge_index)
    assert p.type.tolist() == ["EntropyAware(GCNConv)"]
    assert p.relative_energy[0] == pytest.approx(relative_energy(out, edge_index).item())


def test_only_the_last_pass_is_kept_unless_asked() -> None:
    model = gcn()
    with eamp.probe(model) as last, eamp.probe(model, history=True) as every:
        for _ in range(5):
            model(features(), grid())
            assert len(last.rows) == 3
    assert len(last.forwards) == 1
    assert every.table()["forward"].tolist() == [k for k in range(1, 6) for _ in range(3)]


def test_layers_called_one_by_one_add_up_until_cleared() -> None:
    model = gcn(1)
    with eamp.probe(model) as p:
        model.convs[0](features(), grid())
        model.convs[0](features(), grid())
        assert len(p.rows) == 2
        p.clear()
        model.convs[0](features(), grid())
    assert len(p.rows) == 1


def hooks(model: Module) -> int:
    return sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules())


def test_hooks_are_removed_even_after_an_exception() -> None:
    model = gcn()
    with eamp.probe(model):
        assert hooks(model) > 0
    assert hooks(model) == 0
    with pytest.raises(RuntimeError), eamp.probe(model):
        model(torch.randn(100, 5), grid())  # wrong width
    assert hooks(model) == 0


def test_a_failed_pass_leaves_no_rows_in_the_next() -> None:
    model = gcn()
    with eamp.probe(model) as p:
        with pytest.raises(RuntimeError):
            model(torch.randn(100, 5), grid())
        model(features(), grid())
        model(features(), grid())
    assert len(p.forwards) == 1
    assert len(p.rows) == 3


@pytest.mark.parametrize("gradients", [False, True])
def test_embeddings_are_not_kept_alive(gradients: bool) -> None:
    outputs: list[weakref.ref[Tensor]] = []

    def remember(x: Tensor, edge_index: Any) -> Tensor:
        out = 2 * x
        outputs.append(weakref.ref(out))
        return out

    model = Stack(Apply(remember), Apply(remember))
    with eamp.probe(model, gradients=gradients) as p:
        model(features().requires_grad_(), grid()).sum().backward()
        gc.collect()
        assert [ref() for ref in outputs] == [None, None]
    assert len(p.rows) == 2


def test_gradient_norms_are_those_of_autograd() -> None:
    model, x, edge_index = (
        Stack(Apply(scale(0.5)), Apply(scale(3.0))),
        features().requires_grad_(),
        grid(),
    )
    with eamp.probe(model, gradients=True) as p:
        out = model(x, edge_index)
        assert np.isnan(p.gradient).all()
        out.square().sum().backward()
    upstream = float((2 * out).detach().double().norm())
    np.testing.assert_allclose(p.gradient, [3 * upstream, upstream], rtol=1e-6)


def test_layers_followed_by_an_operation_in_place() -> None:
    class InPlace(Stack):
        def forward(self, x: Tensor, edge_index: Any) -> Tensor:
            for layer in self.layers:
                x = layer(x, edge_index).mul_(10.0)
            return x

    with eamp.probe(InPlace(Apply(scale(0.5)), Apply(scale(0.5))), gradients=True) as p:
        p.model(features().requires_grad_(), grid()).sum().backward()
    assert p.norm[1] == pytest.approx(5 * p.norm[0])
    assert p.gradient[0] == pytest.approx(5 * p.gradient[1])


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpointed_layers_are_seen_once(reentrant: bool) -> None:
    class Checkpointed(Stack):
        def forward(self, x: Tensor, edge_index: Any) -> Tensor:
            for layer in self.layers:
                x = checkpoint(layer, x, edge_index, use_reentrant=reentrant)
            return x

    model = Checkpointed(GCNConv(32, 32), GCNConv(32, 32))
    with eamp.probe(model) as p, set_checkpoint_early_stop(False):  # the second run is complete
        model(features().requires_grad_(), grid()).sum().backward()
    assert len(p.rows) == 2


def test_dead_units_show_at_the_next_layer_s_input() -> None:
    model = gcn(2)
    with torch.no_grad():
        model.convs[0].bias[:12] = -1e3
    with eamp.probe(model) as p:
        model(features(), grid())
    assert p.dead_units.tolist() == [0, 0]
    assert p.dead_inputs.tolist() == [0, 12 / 16]


def test_labels_and_chosen_measures() -> None:
    model = gcn()
    with eamp.probe(model, ["norm", "group_distance_ratio"], labels=torch.arange(100) % 4) as p:
        model(features(), grid())
    assert list(p.table().columns) == [
        "layer",
        "name",
        "type",
        "nodes",
        "width",
        "norm",
        "group_distance_ratio",
    ]
    with eamp.probe(model, {"largest": lambda x, graph: x.max()}) as p:
        model(features(), grid())
    assert p.largest.shape == (3,)


def test_works_in_inference_mode_and_half_precision() -> None:
    model = gcn().bfloat16()
    with torch.inference_mode(), eamp.probe(model) as p:
        model(features().bfloat16(), grid())
    assert np.isfinite(p.energy).all()


def test_before_anything_has_run() -> None:
    p = eamp.probe(gcn())
    assert "no layer has run yet" in repr(p)
    with pytest.raises(RuntimeError, match="seen no layer run"):
        p.table()
    with pytest.raises(AttributeError, match="energy"):
        _ = p.energy
    with pytest.raises(ValueError, match="no message-passing layer"):
        eamp.probe(Linear(2, 2))
    with pytest.raises(ValueError, match="temperature"):
        eamp.probe(gcn(), temperature=0.0)
    with p, pytest.raises(RuntimeError, match="in use already"):
        p.__enter__()


@pytest.mark.filterwarnings(
    "ignore:The .grad attribute of a Tensor that is not a leaf"
)  # torch.compile, of its own tensors
def test_a_compiled_model_runs_unchanged_and_the_error_says_it_cannot_be_probed() -> None:
    model, x, edge_index = own(), features(), grid()
    expected = model(x, edge_index)
    compiled = torch.compile(model, backend="eager")
    with eamp.probe(model) as p:
        torch.testing.assert_close(compiled(x, edge_index), expected)
    with pytest.raises(RuntimeError, match=r"torch\.compile"):
        p.table()
