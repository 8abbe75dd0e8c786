"""Plausible mistakes in the arguments of layers and models, and the sentences that answer them."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch_geometric.nn as pyg

import eamp
from eamp.nn import MODELS
from problems import undirected

PATH = undirected((0, 1), (1, 2))
X = torch.randn(3, 4)

MISTAKES: dict[str, tuple[Callable[[], Any], str]] = {
    "EntropyAware of a class": (
        lambda: eamp.EntropyAware(pyg.GCNConv),
        r"got the class GCNConv; make an object of it first, as in EntropyAware\(GCNConv\(",
    ),
    "wrap of a class": (lambda: eamp.wrap(pyg.GCN), "got the class GCN"),
    "EntropyAware of a name": (lambda: eamp.EntropyAware("GCN"), "needs a layer.*got 'GCN'"),
    "EntropyAware of a function": (lambda: eamp.EntropyAware(print), "needs a layer"),
    "wrap of a name": (lambda: eamp.wrap("x"), "wrap needs a layer or a model.*got 'x'"),
    "unwrap of a name": (lambda: eamp.unwrap("x"), "unwrap needs a layer or a model.*got 'x'"),
    "wrap only a number": (
        lambda: eamp.wrap(pyg.GCN(4, 4, 2), only=3),
        "modules are chosen by names",
    ),
    "skip of a layer": (
        lambda: eamp.wrap(pyg.GCN(4, 4, 2), skip=[pyg.GCNConv(4, 4)]),
        "modules are chosen by names",
    ),
    "weight=True": (
        lambda: eamp.EntropyAware(pyg.GCNConv(4, 4), weight=True),
        "weight must be a number",
    ),
    "detach='False'": (
        lambda: eamp.EntropyAware(pyg.GCNConv(4, 4), detach="False"),
        "detach must be True or False",
    ),
    "variant='exat'": (lambda: eamp.entropy_gradient(X, PATH, variant="exat"), "variant must be"),
    "temperature=True": (lambda: eamp.entropy(X, PATH, True), "must be a number > 0, but is True"),
    "NumPy features": (lambda: eamp.entropy(X.numpy(), PATH), r"Pass torch\.as_tensor\(x"),
    "features as a list": (lambda: eamp.entropy(X.tolist(), PATH), r"Pass torch\.as_tensor\(x"),
    "whole numbers": (lambda: eamp.entropy(X.long(), PATH), r"Pass x\.float\(\)"),
    "edges as a list": (
        lambda: eamp.Graph(PATH.tolist()),
        r"Pass torch\.as_tensor\(edge_index\)",
    ),
    "weights as a list": (
        lambda: eamp.Graph(PATH, edge_weight=[1.0] * 4),
        r"Pass torch\.as_tensor\(edge_weight\)",
    ),
    "NumPy batch": (
        lambda: eamp.Graph(PATH, batch=torch.zeros(3).numpy()),
        r"Pass torch\.as_tensor\(batch\)",
    ),
    "weights as num_nodes": (
        lambda: eamp.Graph(PATH, torch.ones(4).tolist()),
        "num_nodes must be a whole number",
    ),
    "NoisyNodes of a class": (lambda: eamp.nn.NoisyNodes(eamp.nn.GCN, 3), "got the class GCN"),
}


@pytest.mark.parametrize(("act", "sentence"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_gets_a_sentence(act: Callable[[], Any], sentence: str) -> None:
    with pytest.raises((TypeError, ValueError), match=sentence):
        act()


CALLS: dict[str, tuple[tuple[Any, ...], str]] = {
    "NumPy features": ((X.numpy(), PATH), r"torch\.as_tensor\(x"),
    "features as a list": ((X.tolist(), PATH), r"torch\.as_tensor\(x"),
    "whole numbers": ((X.long(), PATH), r"Pass x\.float\(\)"),
    "one dimension": ((X[:, 0], PATH), r"Pass x\.unsqueeze\(1\)"),
    "edges as a list": ((X, PATH.tolist()), r"torch\.as_tensor\(edge_index\)"),
    "no such node": ((X, PATH + 5), "edges with an index >= num_nodes = 3"),
    "negative node": ((X, PATH - 1), "edges with an index negative"),
    "transposed edges": ((X, PATH.t()), r"pass edge_index\.t\(\)"),
    "real edges": ((X, PATH.float()), r"Pass edge_index\.long\(\)"),
    "no edges": ((X, None), "cannot read a graph from builtins.NoneType"),
}
OWN = [name for name in MODELS if name not in ("gat", "graphsage", "gin")]  # these are PyG's


@pytest.mark.parametrize(("given", "sentence"), CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("name", [*OWN, "EntropyAware"])
def test_a_call_with_wrong_arguments_gets_a_sentence(
    name: str, given: tuple[Any, ...], sentence: str
) -> None:
    wrapped = eamp.EntropyAware(pyg.GCNConv(4, 4))
    model = wrapped if name == "EntropyAware" else MODELS[name](4, 8, 2, 2)
    with pytest.raises((TypeError, ValueError), match=sentence):
        model(*given)


@pytest.mark.parametrize("name", OWN)
def test_a_model_knows_its_number_of_features(name: str) -> None:
    with pytest.raises(ValueError, match=r"x has 3 features per node, but .* in_channels=4"):
        MODELS[name](4, 8, 2, 2)(X[:, :3], PATH)


@pytest.mark.parametrize("name", ["gat", "graphsage", "gin"])
def test_models_of_pyg_get_tensors(name: str) -> None:
    model = MODELS[name](4, 8, 2, 2)
    with pytest.raises(ValueError, match=r"Pass torch\.as_tensor\(x"):
        model(X.numpy(), PATH)
    with pytest.raises(TypeError, match=r"pass torch\.as_tensor\(edge_index\)"):
        model(X, PATH.numpy())


OPTIONS: dict[str, tuple[tuple[Any, ...], dict[str, Any], str]] = {
    "negative depth": ((4, 8, 2, -3), {}, "num_layers must be a whole number >= 0, but is -3"),
    "real depth": ((4, 8, 2, 2.0), {}, "num_layers must be a whole number"),
    "no width": ((4, 0, 2, 2), {}, "hidden_channels must be a whole number >= 1, but is 0"),
    "no classes": ((4, 8, 0, 2), {}, "out_channels must be a whole number >= 1, but is 0"),
    "features as text": (("4", 8, 2, 2), {}, "in_channels must be a whole number >= 1, but is '4'"),
    "dropout": ((4, 8, 2, 2), {"dropout": 1.5}, "dropout must be a number between 0 and 1"),
    "dropout=True": ((4, 8, 2, 2), {"dropout": True}, "dropout must be a number between 0 and 1"),
    "entropy=True": ((4, 8, 2, 2), {"entropy": True}, "the entropy step is described by a mapping"),
}


@pytest.mark.parametrize(("sizes", "options", "sentence"), OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("name", MODELS)
def test_every_model_checks_its_options(
    name: str, sizes: tuple[Any, ...], options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        MODELS[name](*sizes, **options)


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        ("gcn", {"checkpoint": "yes"}, "checkpoint must be True or False"),
        ("gat", {"heads": 0}, "heads must be a whole number >= 1"),
        ("gat", {"heads": 3}, "hidden_channels must be a multiple of heads"),
        ("grand", {"heads": 0}, "heads must be a whole number >= 1"),
        ("acmp", {"steps_per_layer": 0}, "steps must be a whole number >= 1, but is 0"),
        ("linear", {"mlp_layers": 0}, "mlp_layers must be a whole number >= 1"),
        ("linear", {"alpha": 2.0}, "alpha must be a number between 0 and 1"),
        ("deep-gcn", {"layer_dropout": -1.0}, "layer_dropout must be a number between 0 and 1"),
    ],
)
def test_models_check_options_of_their_own(
    name: str, options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        MODELS[name](4, 8, 2, 2, **options)
