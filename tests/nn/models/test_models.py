"""What must hold of every model, whatever its method."""

from __future__ import annotations

import shutil
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import Module

import eamp
from eamp.nn import MODELS
from eamp.nn.conv.ode import ODEBlock
from eamp.nn.models.traits import traits

IN, HIDDEN, OUT, LAYERS = 6, 8, 3, 3
ENTROPY = {"weight": 0.1, "temperature": 1.0}

# In these the entropy term is part of a differential equation, not a step after a layer.
CONTINUOUS = ("acmp", "grand", "entropic-grand")
# EGNN's activation max(x, b) gives b a gradient only where x < b; by default b starts far below.
BENT = {"egnn": {"shift": 0.2}}
PYG = ("gat", "graphsage", "gin", "gps", "linear", "appnp")  # the last two have PyG's perceptron
# Constructors of PyG's models draw parameters twice, as that of ACMP does with its attention.
DRAWN_ONCE = [name for name in MODELS if name not in ("acmp", *PYG)]

every_model = pytest.mark.parametrize("name", MODELS)
every_stack_of_layers = pytest.mark.parametrize(
    "name", [name for name in MODELS if name not in CONTINUOUS]
)


@pytest.fixture
def edge_index() -> Tensor:
    """A ring of 12 nodes with four chords: irregular, connected, both directions of every edge."""
    ring = torch.stack([torch.arange(12), (torch.arange(12) + 1) % 12])
    chords = torch.tensor([[0, 0, 2, 3], [4, 6, 9, 7]])
    one_way = torch.cat([ring, chords], 1)
    return torch.cat([one_way, one_way.flip(0)], 1)


@pytest.fixture
def x() -> Tensor:
    return torch.randn(12, IN, generator=torch.Generator().manual_seed(1))


def build(name: str, seed: int = 0, layers: int = LAYERS, **options: Any) -> Module:
    torch.manual_seed(seed)
    return MODELS[name](IN, HIDDEN, OUT, layers, **options)


def loss_of(model: Module, logits: Tensor) -> Tensor:
    loss = logits.square().sum() + logits.sum()
    auxiliary_loss = traits(model).auxiliary_loss
    return loss if auxiliary_loss is None else loss + auxiliary_loss()


@every_model
def test_returns_logits_for_every_node(name: str, x: Tensor, edge_index: Tensor) -> None:
    logits = build(name)(x, edge_index)
    assert isinstance(logits, Tensor)
    assert logits.shape == (12, OUT)
    assert logits.isfinite().all()


@every_model
def test_a_graph_without_nodes_has_no_logits(name: str) -> None:
    logits = build(name).eval()(torch.zeros(0, IN), torch.zeros(2, 0, dtype=torch.long))
    assert logits.shape == (0, OUT)


@every_model
def test_the_class_of_a_model_is_a_public_name(name: str) -> None:
    kind = type(build(name))
    if kind.__module__.startswith("eamp."):
        assert kind.__name__ in eamp.nn.__all__
        assert getattr(eamp.nn, kind.__name__) is kind


@every_model
@pytest.mark.parametrize("entropy", [None, ENTROPY], ids=["bare", "entropy"])
def test_does_not_depend_on_the_order_of_the_nodes(
    name: str, entropy: dict[str, Any] | None, x: Tensor, edge_index: Tensor
) -> None:
    model = build(name, entropy=entropy).double().eval()
    order = torch.randperm(12, generator=torch.Generator().manual_seed(2))
    place = order.argsort()  # node order[k] becomes node k
    torch.testing.assert_close(
        model(x.double()[order], place[edge_index]), model(x.double(), edge_index)[order]
    )


@every_model
@pytest.mark.parametrize("entropy", [None, ENTROPY | {"detach": False}], ids=["bare", "entropy"])
def test_gradient_reaches_every_parameter(
    name: str, entropy: dict[str, Any] | None, x: Tensor, edge_index: Tensor
) -> None:
    model = build(name, entropy=entropy, **BENT.get(name, {}))
    loss_of(model, model(x, edge_index)).backward()
    for parameter_name, parameter in model.named_parameters():
        assert parameter.grad is not None, parameter_name
        assert parameter.grad.isfinite().all(), parameter_name
        assert parameter.grad.any(), parameter_name


@every_stack_of_layers
def test_learned_weight_and_temperature_of_every_layer_get_a_gradient(
    name: str, x: Tensor, edge_index: Tensor
) -> None:
    model = build(name, entropy=ENTROPY | {"learn_weight": True, "learn_temperature": True})
    loss_of(model, model(x, edge_index)).backward()
    learned = [
        p
        for n, p in model.named_parameters()
        if n.endswith(("log_temperature", ".weight")) and p.dim() == 0
    ]
    assert learned
    assert all(p.grad is not None and p.grad.any() for p in learned)


@every_model
def test_prints_the_options_of_the_entropy_step(name: str) -> None:
    model = build(name, entropy=ENTROPY)
    layers = [layer for layer in model.modules() if isinstance(layer, eamp.EntropyAware | ODEBlock)]
    assert layers
    assert all("weight=0.1, temperature=1.0" in repr(layer) for layer in layers)
    assert type(model).__name__ in repr(model)


@every_model
def test_same_seed_same_training(name: str, x: Tensor, edge_index: Tensor) -> None:
    def train() -> Tensor:
        model = build(name, dropout=0.5)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(2):
            optimizer.zero_grad()
            loss_of(model, model(x, edge_index)).backward()
            optimizer.step()
        return model.eval()(x, edge_index)

    assert torch.equal(train(), train())


@every_model
def test_reset_parameters_draws_anew_from_the_seed(name: str) -> None:
    def reset(seed: int) -> list[Tensor]:
        torch.manual_seed(seed)
        model.reset_parameters()  # type: ignore[operator]
        return [parameter.detach().clone() for parameter in model.parameters()]

    model = build(name, entropy=ENTROPY)
    original = [parameter.detach().clone() for parameter in model.parameters()]
    first, second, again = reset(3), reset(4), reset(3)
    # Only parameters that start from constants (0, the identity) are equal after two draws.
    assert all(
        not torch.equal(a, b) or len(a.unique()) <= 2 for a, b in zip(first, second, strict=True)
    )
    assert any(not torch.equal(a, b) for a, b in zip(original, first, strict=True))
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(7.0)
    assert all(torch.equal(a, b) for a, b in zip(first, reset(3), strict=True)), (
        "something trained outlives a reset"
    )


@pytest.mark.parametrize("name", DRAWN_ONCE)
def test_reset_parameters_gives_the_network_that_the_constructor_gave(name: str) -> None:
    model, fresh = build(name, seed=5, entropy=ENTROPY), build(name, seed=3, entropy=ENTROPY)
    torch.manual_seed(3)
    model.reset_parameters()  # type: ignore[operator]
    expected = fresh.state_dict()
    assert all(torch.equal(tensor, expected[key]) for key, tensor in model.state_dict().items())


@every_model
def test_num_layers_counts_the_hidden_layers(name: str, x: Tensor, edge_index: Tensor) -> None:
    """An output layer comes on top; a layer applied several times counts as often."""
    model, calls = build(name, entropy=ENTROPY), []
    hidden = ODEBlock if name in CONTINUOUS else eamp.EntropyAware
    for module in model.modules():
        if isinstance(module, hidden):
            module.register_forward_hook(lambda *_: calls.append(1))
    model(x, edge_index)
    assert len(calls) == LAYERS


@every_model
@pytest.mark.parametrize("entropy", [None, ENTROPY], ids=["bare", "entropy"])
def test_64_layers_stay_finite(
    name: str, entropy: dict[str, Any] | None, x: Tensor, edge_index: Tensor
) -> None:
    model = build(name, layers=64, entropy=entropy)
    logits = model(x, edge_index)
    loss_of(model, logits).backward()
    assert logits.isfinite().all()
    assert all(
        parameter.grad is not None and parameter.grad.isfinite().all()
        for parameter in model.parameters()
    )


@every_stack_of_layers
def test_every_hidden_layer_takes_the_entropy_step(
    name: str, x: Tensor, edge_index: Tensor
) -> None:
    bare_name = name.removeprefix("entropic-")
    bare, entropic = build(bare_name), build(name, entropy=ENTROPY)
    layers = [module for module in entropic.modules() if isinstance(module, eamp.EntropyAware)]
    assert len(layers) == {"g2": 1}.get(bare_name, LAYERS)
    assert all(layer.step.weight == 0.1 and layer.step.temperature == 1.0 for layer in layers)
    assert not torch.equal(bare.eval()(x, edge_index), entropic.eval()(x, edge_index))


@every_model
def test_entropy_of_weight_0_changes_not_a_bit(name: str, x: Tensor, edge_index: Tensor) -> None:
    bare = build(name.removeprefix("entropic-"), dropout=0.2)
    zero = build(name, dropout=0.2, entropy={"weight": 0.0, "temperature": 1.0})
    outputs = []
    for model in (bare, zero):
        torch.manual_seed(5)  # of dropout
        outputs.append(model(x, edge_index))
        loss_of(model, outputs[-1]).backward()
    assert torch.equal(*outputs)
    assert all(
        torch.equal(a.grad, b.grad)
        for a, b in zip(bare.parameters(), zero.parameters(), strict=True)
    )  # type: ignore[arg-type]


@every_model
@pytest.mark.parametrize("entropy", [None, ENTROPY], ids=["bare", "entropy"])
def test_takes_a_graph_or_an_edge_index(
    name: str, entropy: dict[str, Any] | None, x: Tensor, edge_index: Tensor
) -> None:
    model = build(name, entropy=entropy).eval()
    torch.testing.assert_close(model(x, eamp.Graph(edge_index)), model(x, edge_index))


@every_model
def test_lives_through_a_state_dict(name: str, x: Tensor, edge_index: Tensor) -> None:
    model, other = build(name, entropy=ENTROPY).eval(), build(name, seed=9, entropy=ENTROPY).eval()
    other.load_state_dict(model.state_dict())
    assert torch.equal(other(x, edge_index), model(x, edge_index))


@pytest.mark.slow
# DropEdge and GGCM draw graphs, which cannot be traced.
@pytest.mark.parametrize("name", [name for name in MODELS if name not in ("dropedge-gcn", "ggcm")])
@pytest.mark.parametrize("entropy", [None, ENTROPY], ids=["bare", "entropy"])
def test_compiled_is_the_same(
    name: str, entropy: dict[str, Any] | None, x: Tensor, edge_index: Tensor
) -> None:
    check_compiled(build(name, entropy=entropy), x, edge_index, "aot_eager")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of torch.compile's own imports
@pytest.mark.skipif(
    shutil.which("c++") is None, reason="torch.compile's default backend needs a C++ compiler"
)
def test_compiled_by_inductor_is_the_same(x: Tensor, edge_index: Tensor) -> None:
    check_compiled(build("entropic-gcn"), x, edge_index, "inductor")


def check_compiled(model: Module, x: Tensor, edge_index: Tensor, backend: str) -> None:
    torch.compiler.reset()
    compiled = torch.compile(model, fullgraph=True, backend=backend)
    gradients = []
    for run in (model, compiled):
        model.zero_grad()
        torch.manual_seed(6)  # of noise
        logits = run(x, edge_index)
        loss_of(model, logits).backward()
        gradients.append([logits.detach(), *(parameter.grad for parameter in model.parameters())])
    torch.testing.assert_close(gradients[1], gradients[0], rtol=1e-4, atol=1e-5)
