"""A layer and its ReLU in one go: the same as one after the other, and taken only where nobody looks in between."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import Linear, Module, Parameter, Sequential, Tanh
from torch_geometric.nn import GCNConv as PyGConv
from torch_geometric.nn.dense.linear import Linear as PyGLinear

import eamp
from eamp import ops
from eamp.nn import GCN
from eamp.nn.conv.gcn_conv import GCNConv
from eamp.nn.relu_layer import can_be_one, relu_layer
from problems import random_graph

ENTROPIES = [
    None,
    {"weight": 0.7, "temperature": 2.0},
    {
        "weight": {"schedule": "gain", "of": 0.3},
        "temperature": 100.0,
        "normalization": "sym",
        "scale_free": True,
    },
    {"weight": {"schedule": "ramp", "start": 0.5, "end": 2.0}, "temperature": 2.0},
]


def layer(conv: Module, x: torch.Tensor, adjacency: Any) -> torch.Tensor:
    return relu_layer(conv, x, adjacency, can_be_one(conv))


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """One entry for every layer that is taken in one go."""
    seen: list[Any] = []
    fused = ops.relu_gcn_layer
    monkeypatch.setattr(ops, "relu_gcn_layer", lambda *given: seen.append(given) or fused(*given))
    return seen


def features(width: int = 8, dtype: torch.dtype = torch.float64) -> tuple[torch.Tensor, eamp.Graph]:
    return torch.randn(
        20, width, generator=torch.Generator().manual_seed(2), dtype=torch.float64
    ).to(dtype), random_graph(20, 50)


@pytest.mark.parametrize("entropy", ENTROPIES)
def test_a_network_is_the_same_as_with_one_layer_after_the_other(
    entropy: dict[str, Any] | None, calls: list[Any]
) -> None:
    x, g = features()
    model = GCN(8, 8, 3, 4, entropy=entropy).double()
    for conv in model.convs:
        torch.nn.init.normal_((conv if entropy is None else conv.conv).bias)
    results = []
    for observed in (False, True):
        handles = [conv.register_forward_hook(lambda *_: None) for conv in model.convs if observed]
        model.zero_grad()
        out = model(x, g)
        out.square().sum().backward()
        results.append([out.detach(), *(parameter.grad for parameter in model.parameters())])
        for handle in handles:
            handle.remove()
    assert len(calls) == 4  # and none where hooks look on
    for got, expected in zip(*results, strict=True):
        torch.testing.assert_close(got, expected)


class Scaled(eamp.EntropyAware):
    def forward(self, *given: Any, **options: Any) -> torch.Tensor:
        return 3 * super().forward(*given, **options)


def with_part(name: str, part: Any) -> GCNConv:
    conv = GCNConv(8, 8)
    setattr(conv, name, part)
    return conv


class Doubled(GCNConv):
    def forward(self, *given: Any) -> torch.Tensor:
        return 2 * super().forward(*given)


@pytest.mark.parametrize(
    "conv",
    [
        GCNConv(8, 16),
        Scaled(GCNConv(8, 8)),
        with_part("lin", Linear(8, 8)),
        with_part("lin", Sequential(Linear(8, 8), Tanh())),
        with_part("lin", PyGLinear(8, 8, bias=True)),
        with_part("forward", lambda x, graph: x - 1),
        with_part("bias", Parameter(torch.ones(1))),
        with_part("bias", Parameter(torch.ones(8, dtype=torch.float64))),
        PyGConv(8, 8),
        Doubled(8, 8),
        eamp.EntropyAware(Doubled(8, 8)),
        eamp.EntropyAware(PyGConv(8, 8)),
        eamp.EntropyAware(GCNConv(8, 8), weight=0.0),
        eamp.EntropyAware(GCNConv(8, 8), learn_weight=True),
        eamp.EntropyAware(GCNConv(8, 8), learn_temperature=True),
        eamp.EntropyAware(GCNConv(8, 8), temperature="auto"),
        eamp.EntropyAware(GCNConv(8, 8), detach=False),
        eamp.EntropyAware(GCNConv(8, 8), placement="input"),
        eamp.EntropyAware(GCNConv(8, 8), residual=True),
        eamp.EntropyAware(GCNConv(8, 8), variant="paper"),
        eamp.EntropyAware(GCNConv(8, 8), normalize=True),
        eamp.EntropyAware(GCNConv(8, 8), weight={"schedule": "gain", "of": 1.3}),
    ],
    ids=repr,
)
def test_other_layers_are_taken_as_they_are(conv: Module, calls: list[Any]) -> None:
    x, g = features(dtype=torch.float32)
    adjacency = g.edge_index if isinstance(conv, PyGConv) else g
    torch.testing.assert_close(layer(conv, x, adjacency), conv(x, adjacency).relu(), rtol=0, atol=0)
    assert not calls


def test_half_precision_and_casting_and_sparse_features_and_other_backends(
    calls: list[Any],
) -> None:
    x, g = features(dtype=torch.float32)
    conv = eamp.EntropyAware(GCNConv(8, 8), weight=0.7)
    with torch.autocast("cpu", torch.bfloat16):
        assert layer(conv, x, g).dtype == conv(x, g).dtype
    with eamp.backend("reference"):
        layer(conv, x, g)
    layer(GCNConv(8, 8), x.to_sparse_csr(), g)
    layer(GCNConv(8, 8).bfloat16(), x.bfloat16(), g)
    assert not calls


def test_hooks_on_parts_of_a_layer_see_it(calls: list[Any]) -> None:
    x, g = features(dtype=torch.float32)
    conv = eamp.EntropyAware(GCNConv(8, 8), weight=0.7)
    seen: list[str] = []
    for name, module in (("layer", conv), ("conv", conv.conv), ("lin", conv.conv.lin)):
        handle = module.register_forward_pre_hook(lambda *_, name=name: seen.append(name))
        layer(conv, x, g)
        handle.remove()
    handle = torch.nn.modules.module.register_module_forward_hook(
        lambda module, *_: seen.append(type(module).__name__)
    )
    layer(conv, x, g)
    handle.remove()
    assert seen == ["layer", "conv", "lin", "Linear", "GCNConv", "EntropyAware"]
    assert not calls
    layer(conv, x, g)
    assert len(calls) == 1


def test_who_traces_sees_operators(calls: list[Any]) -> None:
    x, g = features(dtype=torch.float32)
    conv = eamp.EntropyAware(GCNConv(8, 8), weight=0.7)
    with FakeTensorMode(allow_non_fake_inputs=True):
        assert layer(conv, x, g).shape == (20, 8)
    assert not calls


@pytest.mark.parametrize(
    "looks_on",
    [lambda model: eamp.probe(model), lambda model: eamp.backend("torch")],
    ids=["probe", "backend"],
)
def test_a_second_pass_takes_layers_as_the_first_did(looks_on: Any) -> None:
    x, g = features(dtype=torch.float32)
    model = GCN(8, 8, 3, 9, entropy={"weight": 0.7}, checkpoint=True)
    with looks_on(model):
        out = model(x, g)
    out.sum().backward()
    later = [parameter.grad for parameter in model.parameters()]
    model.zero_grad()
    model(x, g).sum().backward()
    for got, expected in zip(
        later, (parameter.grad for parameter in model.parameters()), strict=True
    ):
        torch.testing.assert_close(got, expected, rtol=1e-3, atol=1e-4)


def test_only_what_is_needed_is_kept() -> None:
    x, g = features(dtype=torch.float32)
    conv = GCNConv(8, 8)
    out = layer(conv, x, g)
    with torch.no_grad():
        conv.lin.weight.mul_(2)  # which the derivative in the weight does not read
    out.sum().backward()
    conv.lin.weight.requires_grad_(False)
    changing = x.clone().requires_grad_()
    doubled = 2 * changing
    out = layer(conv, doubled, g)
    doubled.data.zero_()
    out.sum().backward()
    assert changing.grad is not None
    with torch.inference_mode():
        made = x * 1
    layer(conv, made, g).sum().backward()
