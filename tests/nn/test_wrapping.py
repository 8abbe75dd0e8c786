import copy
from dataclasses import fields
from pathlib import Path
from typing import get_type_hints

import pytest
import torch
import torch_geometric.nn as pyg
from torch import Tensor
from torch.nn import Linear, ModuleList, ReLU
from torch_geometric.nn import GAT, GCN, GIN, PNA, DeepGCNLayer, GCNConv, GraphSAGE, SAGEConv

import eamp
from eamp.nn import EntropyStep
from eamp.nn.step.options import StepOptions
from eamp.nn.wrapping import WrapOptions, message_passing_layers
from problems import irregular_graph

GRAPH = irregular_graph()
EDGES = GRAPH.edge_index


class Own(torch.nn.Module):
    """A user's model: a convolution used twice, one in a dictionary, a layer that is not PyG's."""

    def __init__(self) -> None:
        super().__init__()
        self.shared = GCNConv(4, 4)
        self.same = self.shared
        self.parts = torch.nn.ModuleDict({"sage": SAGEConv(4, 4)})
        self.head = Linear(4, 2)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        x = self.same(self.shared(x, edge_index), edge_index)
        return self.head(self.parts["sage"](x, edge_index))


def pna() -> PNA:
    degrees = torch.bincount(GRAPH.degree.long())
    return PNA(
        4,
        8,
        num_layers=2,
        out_channels=3,
        aggregators=["mean", "max"],
        scalers=["identity"],
        deg=degrees,
    )


MODELS = {
    "GCN": lambda: GCN(4, 8, num_layers=3, out_channels=3),
    "GAT": lambda: GAT(4, 8, num_layers=3, out_channels=3, heads=2),
    "GraphSAGE": lambda: GraphSAGE(4, 8, num_layers=3, out_channels=3),
    "GIN": lambda: GIN(4, 8, num_layers=3, out_channels=3),
    "PNA": pna,
    "Sequential": lambda: pyg.Sequential(
        "x, edge_index",
        [(GCNConv(4, 8), "x, edge_index -> x"), ReLU(), (GCNConv(8, 3), "x, edge_index -> x")],
    ),
    "DeepGCNLayer": lambda: DeepGCNLayer(
        SAGEConv(4, 4), torch.nn.LayerNorm(4), ReLU(), block="res+"
    ),
    "own": Own,
    "layer": lambda: GCNConv(4, 3),
}


@pytest.mark.parametrize("name", MODELS)
def test_wrap_changes_the_output_and_unwrap_restores_the_very_same_modules(name: str) -> None:
    model = MODELS[name]().eval()
    x = torch.randn(10, 4)
    modules, parameters, expected = (
        dict(model.named_modules()),
        dict(model.named_parameters()),
        model(x, EDGES),
    )
    wrapped = eamp.wrap(model, weight=1.0, temperature=1.0)
    assert {id(p) for p in wrapped.parameters()} == {id(p) for p in parameters.values()}
    assert not torch.allclose(wrapped(x, EDGES), expected)
    restored = eamp.unwrap(wrapped)
    assert dict(restored.named_modules()) == modules
    assert torch.equal(restored(x, EDGES), expected)


@pytest.mark.parametrize("name", MODELS)
def test_weight_zero_leaves_every_model_bit_for_bit(name: str) -> None:
    model = MODELS[name]().eval()
    x = torch.randn(10, 4)
    expected = model(x, EDGES)
    assert torch.equal(eamp.wrap(model, weight=0.0)(x, EDGES), expected)


@pytest.mark.parametrize("name", MODELS)
def test_wrapping_twice_is_wrapping_once_and_other_options_are_an_error(name: str) -> None:
    model = eamp.wrap(MODELS[name](), weight=0.5)
    before = repr(model), dict(model.named_modules())
    assert (repr(eamp.wrap(model, weight=0.5)), dict(model.named_modules())) == before
    with pytest.raises(
        ValueError,
        match=r"already wrapped with EntropyStep\(weight=0.5.* call eamp.unwrap\(model\) before",
    ):
        eamp.wrap(model, weight=0.7)
    assert dict(model.named_modules()) == before[1]


def test_a_schedule_is_copied_for_every_layer_and_wrapping_twice_still_changes_nothing() -> None:
    class Schedule(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.strength = torch.nn.Parameter(torch.tensor(0.1))

        def forward(self, energy: Tensor, temperature: float) -> Tensor:
            return self.strength

    model = eamp.wrap(MODELS["GCN"](), weight=Schedule())
    assert len({id(layer.weight.strength) for layer in model.convs}) == 3
    before = dict(model.named_modules())
    assert dict(eamp.wrap(model, weight=Schedule()).named_modules()) == before


def test_a_layer_used_in_two_places_stays_one_layer() -> None:
    model = eamp.wrap(Own())
    assert model.shared is model.same
    assert isinstance(model.shared, eamp.EntropyAware)


def wrapped(model: torch.nn.Module) -> set[str]:
    return {name for name, module in model.named_modules() if isinstance(module, eamp.EntropyAware)}


def test_only_and_skip_by_name_and_type() -> None:
    gcn = MODELS["GCN"]
    assert wrapped(eamp.wrap(gcn(), only=["convs.0", "convs.2"])) == {"convs.0", "convs.2"}
    assert wrapped(eamp.wrap(gcn(), skip="convs.1")) == {"convs.0", "convs.2"}
    assert wrapped(eamp.wrap(Own(), only=SAGEConv)) == {"parts.sage"}
    assert wrapped(eamp.wrap(Own(), skip=[SAGEConv])) == {"shared"}
    assert wrapped(eamp.wrap(gcn(), only=GCNConv, skip="convs.0")) == {"convs.1", "convs.2"}


LAST_LAYERS = {
    "GCN": "convs.2",
    "GIN": "convs.2",  # with a perceptron inside
    "Sequential": "module_2",
    "own": "parts.sage",  # inside of a dictionary
}


@pytest.mark.parametrize("name", LAST_LAYERS)
def test_the_last_layer_can_be_skipped_without_its_name(name: str) -> None:
    model, every = MODELS[name](), wrapped(eamp.wrap(MODELS[name]()))
    assert LAST_LAYERS[name] in every
    assert wrapped(eamp.wrap(model, skip="last")) == every - {LAST_LAYERS[name]}
    assert wrapped(eamp.wrap(model, skip=["last"])) == every - {LAST_LAYERS[name]}


def test_the_last_of_blocks_that_hold_their_layers_is_skipped() -> None:
    blocks = ModuleList(DeepGCNLayer(SAGEConv(4, 4), block="res+") for _ in range(3))
    assert wrapped(eamp.wrap(blocks, skip="last")) == {"0.conv", "1.conv"}
    alone = GCNConv(4, 4)
    with pytest.raises(ValueError, match=r"no layer to wrap among .*, with skip='last'"):
        eamp.wrap(alone, skip="last")


class Ends(torch.nn.Module):
    """A model with a module that is really named "last"."""

    def __init__(self, last: torch.nn.Module) -> None:
        super().__init__()
        self.last, self.body, self.end = last, GCNConv(4, 4), GCNConv(4, 4)


def test_a_layer_that_is_named_last_is_meant_by_its_name() -> None:
    assert wrapped(eamp.wrap(Ends(GCNConv(4, 4)), skip="last")) == {"body", "end"}
    # A linear layer cannot be meant: it would not be wrapped anyway.
    assert wrapped(eamp.wrap(Ends(Linear(4, 4)), skip="last")) == {"body"}
    assert wrapped(eamp.wrap(Ends(Linear(4, 4)), only=[Linear, GCNConv], skip="last")) == {
        "body",
        "end",
    }


def test_the_last_of_the_layers_that_only_names_is_skipped() -> None:
    model = ModuleList([Linear(4, 4), Linear(4, 4)])
    assert wrapped(eamp.wrap(model, only=Linear, skip="last")) == {"0"}


def test_misspelt_options_are_refused_with_the_right_spelling() -> None:
    for make in (eamp.wrap, eamp.EntropyAware):
        with pytest.raises(ValueError, match=r"no option weigth; .* Did you mean 'weight'\?"):
            make(GCNConv(4, 4), weigth=2.0)
    with pytest.raises(ValueError, match=r"no module named conv.1; .* Did you mean 'convs.1'\?"):
        eamp.wrap(MODELS["GCN"](), skip="conv.1")


def test_the_type_checker_knows_every_option() -> None:
    options = {field.name for field in fields(EntropyStep)}
    assert set(get_type_hints(WrapOptions)) == options
    assert set(get_type_hints(StepOptions)) == options - {"weight", "temperature"}


@pytest.mark.slow
def test_the_type_checker_refuses_misspelt_options(tmp_path: Path) -> None:
    api = pytest.importorskip("mypy.api")
    script, settings = tmp_path / "script.py", tmp_path / "mypy.ini"
    calls = ["wrap(conv, weigth=2.0)", "EntropyAware(conv, weigth=2.0)", "wrap(conv, weight=2.0)"]
    script.write_text(
        "import eamp, torch\nconv = torch.nn.Linear(2, 2)\n"
        + "\n".join(f"eamp.{call}" for call in calls)
    )
    # Only one room is read: torch itself would take a minute.
    settings.write_text(
        f"[mypy]\nmypy_path = {Path(eamp.__file__).parents[1]}\nfollow_imports = skip\n"
        "[mypy-eamp,eamp.nn.*]\nfollow_imports = silent\n"
    )
    said, wrong, _ = api.run(
        [f"--config-file={settings}", f"--cache-dir={tmp_path / 'cache'}", str(script)]
    )
    refused = [line.split(":")[1] for line in said.splitlines() if 'argument "weigth"' in line]
    assert refused == ["3", "4"], said + wrong


def test_a_wrapped_model_shows_its_options() -> None:
    shown = repr(eamp.wrap(Own(), weight=2.0, detach=True))
    assert shown.count("EntropyAware(\n") == 3
    assert shown.count("weight=2.0, temperature=1.0, detach=True\n") == 3


def test_the_paper_has_a_step_of_its_own() -> None:
    model = eamp.wrap(MODELS["GCN"](), preset="paper", skip="last")
    step = model.convs[0].step
    assert (step.weight, step.temperature, step.detach, step.variant) == (1.0, 10.0, True, "paper")
    assert (
        repr(model.convs).count("weight=1.0, temperature=10.0, detach=True, variant='paper'") == 2
    )
    x = torch.randn(10, 4)
    conv = GCNConv(4, 4)
    out = conv(x, EDGES)
    expected = out + 10.0 * eamp.entropy_gradient(out, GRAPH, 10.0, variant="paper")
    layer = eamp.EntropyAware.of(conv, step)
    torch.testing.assert_close(layer(x, EDGES), expected)


def test_any_layer_can_be_named_even_if_it_is_not_pygs() -> None:
    class Mean(torch.nn.Module):
        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return (
                torch.sparse_coo_tensor(edge_index, torch.ones(edge_index.size(1)), (10, 10)) @ x
            ) / 2

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = ModuleList([Mean(), Mean()])

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            for layer in self.layers:
                x = layer(x, edge_index)
            return x

    with pytest.raises(
        ValueError, match=r"Model has no layer to wrap among Mean, Model, ModuleList.*only="
    ):
        eamp.wrap(Model())
    model = eamp.wrap(Model(), only=Mean)
    assert all(isinstance(layer, eamp.EntropyAware) for layer in model.layers)
    assert model(torch.randn(10, 4), EDGES).shape == (10, 4)


def test_unknown_names_are_an_error_before_anything_changes() -> None:
    model = MODELS["GCN"]()
    with pytest.raises(ValueError, match=r"GCN has no module named convs.7; it has .*convs.0"):
        eamp.wrap(model, skip=["convs.7"])
    assert not any(isinstance(module, eamp.EntropyAware) for module in model.modules())


def test_bad_options_change_nothing() -> None:
    model = MODELS["GCN"]()
    with pytest.raises(ValueError, match="temperature must be > 0"):
        eamp.wrap(model, temperature=-1.0)
    assert not any(isinstance(module, eamp.EntropyAware) for module in model.modules())


def test_a_wrapped_model_trains_copies_and_saves() -> None:
    model = eamp.wrap(MODELS["GCN"](), weight=1.0, learn_weight=True, learn_temperature=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    x = torch.randn(10, 4)
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x, EDGES), torch.arange(10) % 3)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    twin = copy.deepcopy(model)
    assert torch.equal(twin(x, EDGES), model(x, EDGES))
    fresh = eamp.wrap(MODELS["GCN"](), weight=1.0, learn_weight=True, learn_temperature=True)
    fresh.load_state_dict(model.state_dict())
    assert torch.equal(fresh(x, EDGES), model(x, EDGES))
    fresh.reset_parameters()
    assert not torch.equal(fresh(x, EDGES), model(x, EDGES))


@pytest.mark.usefixtures("_pyg_compiles")
def test_wrapped_models_compile_in_one_graph() -> None:
    torch._dynamo.reset()
    for name in ("GCN", "GraphSAGE"):
        model = eamp.wrap(MODELS[name]().eval(), detach=False)
        compiled = torch.compile(copy.deepcopy(model), fullgraph=True, backend="aot_eager")
        x = torch.randn(10, 4)
        torch.testing.assert_close(compiled(x, EDGES), model(x, EDGES))


def test_the_outermost_layers_are_found_in_order() -> None:
    names = [name for name, _ in message_passing_layers(eamp.wrap(MODELS["GCN"](), skip="convs.1"))]
    assert names == ["convs.0", "convs.1", "convs.2"]
