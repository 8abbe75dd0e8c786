"""Checkpointing changes the memory of the backward pass and nothing else, in every model."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import BatchNorm1d, Module
from torch.nn.utils.parametrizations import spectral_norm

import eamp
from eamp.nn.checkpointing import in_segments
from eamp.nn.conv.deep_conv import DeepConv
from eamp.nn.models import MODELS
from eamp.nn.models.traits import traits
from eamp.training.sparse_features import sparse_features
from problems import irregular_graph

GRAPH = irregular_graph()
X = torch.randn(GRAPH.num_nodes, 5, generator=torch.Generator().manual_seed(0))
LAYERS = 25
STEP = {"weight": 0.3, "temperature": 1.0}
EXACT = {**STEP, "detach": False}
FORCE = {"acmp", "grand", "entropic-grand"}  # the step is a term in an equation, with fewer options
OF_A_FORCE = {"none", "detached", "exact"}
OURS = [name for name in MODELS if name not in ("gat", "graphsage", "gin")]
STEPS: dict[str, dict[str, Any] | None] = {
    "none": None,
    "detached": STEP,
    "exact": EXACT,
    "auto": {**EXACT, "temperature": "auto"},
    "auto of propagation": {**EXACT, "temperature": "auto", "energy": "propagation"},
    "learned": {**EXACT, "learn_weight": True, "learn_temperature": True},
    "feedback": {
        **EXACT,
        "weight": {"schedule": "feedback", "lowest": 0.1, "highest": 0.5, "detach": False},
    },
    "ramp": {**STEP, "weight": {"schedule": "ramp", "start": 0.1, "end": 0.5}},
}


def network(name: str, checkpoint: bool, **options: Any) -> Module:
    torch.manual_seed(0)
    return MODELS[name](
        5, 8, 3, options.pop("num_layers", LAYERS), checkpoint=checkpoint, **options
    )


@contextmanager
def counting() -> Iterator[list[int]]:
    """Count the bytes of all tensors that are kept for a backward pass, each storage once."""
    sizes: dict[int, int] = {}
    total = [0]

    def keep(tensor: Tensor) -> Tensor:
        if tensor.layout == torch.strided:
            sizes[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        yield total
    total[0] = sum(sizes.values())


def training_step(model: Module, x: Tensor = X) -> tuple[list[Tensor], int]:
    """Return logits, gradients and buffers of two steps, the next random number, and the bytes that
    the first step keeps."""
    torch.manual_seed(1)
    results: list[Tensor] = []
    kept = []
    for _ in range(2):
        model.zero_grad()
        with counting() as total:
            logits = model(x, GRAPH)
        kept.append(total[0])
        loss = logits.log_softmax(1)[:, 0].sum()
        if (auxiliary_loss := traits(model).auxiliary_loss) is not None:
            loss = loss + auxiliary_loss()
        loss.backward()
        results += [logits.detach(), *(p.grad for p in model.parameters() if p.grad is not None)]
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= 0.001 * (0 if parameter.grad is None else parameter.grad.sign())
    return [*results, *(buffer.clone() for buffer in model.buffers()), torch.rand(())], kept[0]


def assert_same(results: list[Tensor], expected: list[Tensor]) -> None:
    assert len(results) == len(expected)
    assert all(
        torch.equal(a, b) and a.isfinite().all() for a, b in zip(results, expected, strict=True)
    )


@pytest.mark.parametrize(
    ("name", "step"),
    [(name, step) for name in OURS for step in STEPS if name not in FORCE or step in OF_A_FORCE],
)
def test_the_same_numbers_from_fewer_bytes(name: str, step: str) -> None:
    options: dict[str, Any] = {"dropout": 0.4, "entropy": copy.deepcopy(STEPS[step])}
    expected, many = training_step(network(name, False, **options))
    results, few = training_step(network(name, True, **options))
    assert_same(results, expected)
    # The backward pass of linear propagation needs no embedding, unless the step is differentiated,
    # and that of random propagation ends behind it, unless the step is learned.
    needed = {
        "linear": ("exact", "auto", "learned", "feedback"),
        "random-propagation": ("learned",),
    }
    if step in needed.get({"appnp": "linear"}.get(name, name), STEPS):
        assert few < 0.7 * many


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("gcn", {"form": "paper"}),
        ("gcn", {"num_layers": 1}),
        ("g2", {"conv": "gat"}),
        ("g2", {"p": 1.5}),
        ("deep-gcn", {"shared": True, "weights": "identity", "residual": True}),
        (
            "deep-gcn",
            {"shared": True, "num_layers": 300, "entropy": {**EXACT, "temperature": "auto"}},
        ),
        ("grand", {"attention": "nonlinear", "method": "rk4", "num_layers": 4}),
        ("grand", {"method": "dopri5", "num_layers": 4}),
        ("grand", {"method": "dopri5", "adjoint": True, "num_layers": 4}),
        ("acmp", {"attraction": "gcn", "num_layers": 4}),
        ("pairnorm", {"scale_individually": True}),
        ("gcn", {"norm": "BatchNorm"}),
        ("gcn", {"norm": "BatchNorm", "num_layers": 1100}),
    ],
)
def test_the_same_numbers_in_every_form(name: str, options: dict[str, Any]) -> None:
    options = {"entropy": EXACT, "dropout": 0.4, **options}
    assert_same(
        training_step(network(name, True, **options))[0],
        training_step(network(name, False, **options))[0],
    )


class NormConv(DeepConv):
    """A layer with a state that every pass in training changes."""

    def __init__(self, number: int) -> None:
        super().__init__(8, number, LAYERS, initial_residual=0.1)
        self.norm = BatchNorm1d(8)

    def forward(self, x: Tensor, initial: Tensor, edge_index: eamp.graph.Adjacency) -> Tensor:
        return self.norm(super().forward(x, initial, edge_index))


def test_buffers_of_your_own_layers() -> None:
    results = []
    for checkpoint in (False, True):
        results.append(training_step(network("deep-gcn", checkpoint, conv=NormConv))[0])
    assert_same(*results)


def test_buffers_that_the_weights_depend_on() -> None:
    results = []
    for checkpoint in (False, True):
        model = network("gcn", checkpoint)
        for conv in model.convs:
            spectral_norm(conv.lin)
        results.append(training_step(model)[0])
    assert_same(*results)


def test_sparse_features() -> None:
    x = sparse_features(torch.eye(GRAPH.num_nodes, 30))
    assert x.layout == torch.sparse_csr
    results = []
    for checkpoint in (False, True):
        torch.manual_seed(0)
        results.append(
            training_step(eamp.nn.GCN(30, 8, 3, LAYERS, dropout=0.4, checkpoint=checkpoint), x)[0]
        )
    assert_same(*results)


@pytest.mark.parametrize("name", OURS)
def test_evaluation_and_no_grad_are_left_alone(name: str) -> None:
    plain, checkpointed = (network(name, flag, entropy=STEP).eval() for flag in (False, True))
    assert torch.equal(checkpointed(X, GRAPH), plain(X, GRAPH))
    with torch.no_grad():
        assert torch.equal(checkpointed(X, GRAPH), plain(X, GRAPH))
        checkpointed.train()
        assert not checkpointed(X, GRAPH).requires_grad


@pytest.mark.parametrize("name", OURS)
def test_a_probe_sees_every_layer_once(name: str) -> None:
    tables = []
    for checkpoint in (False, True):
        model = network(name, checkpoint, entropy=STEP, dropout=0.4)
        torch.manual_seed(1)
        with eamp.probe(
            model,
            ["energy"],
            layers=traits(model).probed_layers,
            gradients=True,
            history=True,
        ) as p:
            model(X, GRAPH).sum().backward()
        tables.append(p.table())
    assert tables[1].equals(tables[0])


def test_a_learned_input_gets_its_gradient() -> None:
    gradients = []
    for checkpoint in (False, True):
        x = X.clone().requires_grad_()
        network("entropic-gcn", checkpoint, dropout=0.4, entropy=EXACT)(x, GRAPH).sum().backward()
        gradients.append(x.grad)
    assert torch.equal(*gradients)


def test_gradients_of_gradients() -> None:
    results = []
    for checkpoint in (False, True):
        model, x = (
            network("entropic-gcnii", checkpoint, entropy=EXACT).double(),
            X.double().requires_grad_(),
        )
        first = torch.autograd.grad(model(x, GRAPH).square().sum(), x, create_graph=True)[0]
        results.append(torch.autograd.grad(first.square().sum(), x)[0])
    assert torch.equal(*results)


def test_the_backward_pass_can_be_repeated() -> None:
    model = network("gcn", True, norm="BatchNorm", entropy=EXACT)
    with eamp.backend("torch"):
        loss = model(X, GRAPH).square().sum()
    buffers = [buffer.clone() for buffer in model.buffers()]
    gradients = [torch.autograd.grad(loss, list(model.parameters()), retain_graph=True)]
    gradients.append(torch.autograd.grad(loss, list(model.parameters())))
    assert all(map(torch.equal, *gradients))
    assert all(map(torch.equal, model.buffers(), buffers))


@pytest.mark.parametrize("name", ["entropic-gcn", "grand"])
def test_checkpointed_models_compile(name: str) -> None:
    model = network(name, True, num_layers=5)
    torch.compiler.reset()
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(X, GRAPH.edge_index), model(X, GRAPH))


def test_models_of_pyg_say_that_they_cannot() -> None:
    with pytest.raises(ValueError, match="checkpoint=True is for eamp's own models"):
        network("gat", True)


# --- The segments themselves ----------------------------------------------------------------------


@pytest.mark.parametrize("layers", [0, 1, 2, 3, 16, 17, 64, 100, 257, 1000])
def test_every_layer_runs_once_forward_and_in_order(layers: int) -> None:
    ran: list[int] = []

    def layer(x: Tensor, number: int) -> Tensor:
        ran.append(number)
        return x + number

    x = torch.zeros((), requires_grad=True)
    out = in_segments(layer, range(layers), x)
    assert ran == list(range(layers))
    out.backward()
    assert out == sum(range(layers))
    assert x.grad == 1


def peak(layers: int) -> tuple[int, int]:
    """Return the most embeddings alive in a training step, and the number of layers run in all."""
    alive = most = runs = 0

    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            nonlocal runs
            runs += 1
            ctx.save_for_backward(x)
            return x * 0.5

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> Tensor:
            return grad * 0.5 + 0 * ctx.saved_tensors[0]

    class Kept:
        def __init__(self, tensor: Tensor) -> None:
            nonlocal alive, most
            self.tensor = tensor
            alive += tensor.numel() > 0  # torch 2.8 also keeps an empty tensor per checkpoint
            most = max(most, alive)

        def __del__(self) -> None:
            nonlocal alive
            alive -= self.tensor.numel() > 0

    x = torch.ones(3, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(Kept, lambda kept: kept.tensor):
        in_segments(lambda x, _: Square.apply(x), range(layers), x).sum().backward()
    return most, runs


@pytest.mark.parametrize(
    ("layers", "embeddings", "passes"),
    [(16, 8, 2), (64, 16, 2), (256, 32, 2), (1000, 64, 2), (4096, 48, 3)],
)
def test_what_is_kept_grows_with_the_logarithm(layers: int, embeddings: int, passes: int) -> None:
    most, runs = peak(layers)
    assert most <= embeddings
    assert runs <= passes * layers
