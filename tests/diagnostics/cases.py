"""Models with a known fault, or with none: each function makes one, with data and labels.

``CASES`` lists what a diagnosis must say: the kinds that it must find, kinds that it must not find,
and the part of the layers that is to blame for the first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import BatchNorm1d, Identity, Linear, Module, ModuleList
from torch_geometric.data import Data
from torch_geometric.nn import (
    GAT,
    GCN,
    GIN,
    DeepGCNLayer,
    GCN2Conv,
    GCNConv,
    GINConv,
    GPSConv,
    GraphSAGE,
    PairNorm,
    SAGEConv,
)

import eamp
from diagnostics.faulty_models import (
    Apply,
    Stack,
    average,
    features,
    grid,
    mean_of_neighbourhood,
    rotate,
    scale,
)

Case = tuple[Module, Data]


def data(width: int = 32, scale: float = 1.0, seed: int = 0) -> Data:
    """A grid with noise for features."""
    return Data(scale * features(width, seed), grid())


def halves(noise: float = 1.0) -> Data:
    """A homophilic graph: the left and the right half of the grid differ in noisy features."""
    labels = (torch.arange(100) % 10 >= 5).long()
    return Data(noise * features() + labels.unsqueeze(1), grid(), y=labels)


def checkerboard() -> Data:
    """A heterophilic graph: all neighbours of a node are of the other class."""
    node = torch.arange(100)
    labels = (node // 10 + node % 10) % 2
    return Data(0.3 * features() + labels.unsqueeze(1), grid(), y=labels)


def stack(step: Callable[[Tensor, Any], Tensor], depth: int, **options: Any) -> Stack:
    return Stack(*(Apply(step) for _ in range(depth)), **options)


class Between(Module):
    """Layers with a function of (x, layer's output) between them."""

    def __init__(self, layers: list[Module], update: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.layers, self.update = ModuleList(layers), update

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        for layer in self.layers:
            x = self.update(x, layer(x, edge_index))
        return x


# --- Faults of aggregation ---


def averaging() -> Case:
    return stack(average, 40), data()


def averaging_that_shrinks() -> Case:
    return stack(lambda x, e: 0.5 * average(x, e), 40), data()


def deep_gcn() -> Case:
    return GCN(32, 64, 32), data()


def deep_sage() -> Case:
    return GraphSAGE(32, 64, 32), data()


def harmless_smoothing() -> Case:
    return stack(average, 24), halves()


def harmful_smoothing() -> Case:
    return stack(average, 30), checkerboard()


def batch_norm_that_masks() -> Case:
    """Averages whose columns are centred and rescaled: norms stay, directions do not."""

    def update(x: Tensor, out: Tensor) -> Tensor:
        return (out - out.mean(0)) / (out.std(0) + 1e-12)

    return Between([Apply(mean_of_neighbourhood) for _ in range(120)], update), data()


def sums_that_explode() -> Case:
    return Stack(*(GINConv(Identity()) for _ in range(12))), data()


# --- Faults of weights ---


def small_weights() -> Case:
    return stack(scale(0.3), 12), data()


def rank_one_weights() -> Case:
    model = Stack(*(GCNConv(32, 32, bias=False) for _ in range(4)))
    with torch.no_grad():
        weight = torch.ones(32).outer(features(32)[0])
        model.layers[2].lin.weight.copy_(weight / weight.norm())  # type: ignore[union-attr]
    return model, data()


def constant_bias() -> Case:
    return stack(lambda x, e: x + 1e4, 3), data()


def biases_beside_small_features() -> Case:
    return GraphSAGE(32, 64, 2, out_channels=7), data(scale=0.005)


def large_weights() -> Case:
    return stack(scale(3.0), 20), data()


# --- Faults between the layers ---


def dead_relus() -> Case:
    model = GCN(32, 64, 5)
    with torch.no_grad():
        model.convs[1].bias[:58] = -100.0
    return model, data()


def residuals_that_explode() -> Case:
    """x + relu(conv(x)) with weights of one, whose norm doubles with every layer."""
    convs: list[Module] = [GCNConv(32, 32) for _ in range(16)]
    for conv in convs:
        torch.nn.init.eye_(conv.lin.weight)  # type: ignore[union-attr, arg-type]
    return Between(convs, lambda x, out: x + out.relu()), data()


def activation_that_shrinks() -> Case:
    return stack(rotate, 12, activation=lambda x: 0.3 * x), data()


def not_a_number() -> Case:
    return Stack(Apply(rotate), Apply(scale(float("nan"))), Apply(rotate)), data()


# --- Faults of gradients, with a healthy forward pass ---


def saturated() -> Case:
    """Signs of a rotation: the embedding differs between nodes, and hardly has a slope."""
    return stack(rotate, 8, activation=lambda x: x.sign() + 0.02 * x), data()


def chaotic() -> Case:
    return stack(lambda x, e: 10 * rotate(x, e), 20, activation=torch.tanh), data()


def detached_step() -> Case:
    return eamp.wrap(GCN(32, 64, 64), weight=10, temperature=1, detach=True), data()


# --- No fault ---


class GCNII(Module):
    def __init__(self, depth: int) -> None:
        super().__init__()
        self.first = Linear(32, 64)
        self.convs = ModuleList(GCN2Conv(64, 0.1, 0.5, k + 1) for k in range(depth))

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        x = initial = self.first(x).relu()
        for conv in self.convs:
            x = conv(x, initial, edge_index).relu()
        return x


class GPS(Module):
    def __init__(self) -> None:
        super().__init__()
        self.convs = ModuleList(GPSConv(32, GCNConv(32, 32), heads=2) for _ in range(3))

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        for conv in self.convs:
            x = conv(x, edge_index)
        return x


def residual_outside() -> Case:
    """Layers that smooth at once, beside a residual connection that keeps everything."""
    convs = [Apply(lambda x, e: 1e-3 * average(average(x, e), e)) for _ in range(16)]
    return Between(list(convs), lambda x, out: x + out), data()


def residual_blocks() -> Case:
    blocks = [DeepGCNLayer(GCNConv(32, 32), Identity(), block="res") for _ in range(6)]
    return Stack(*blocks), data()


def batch_norm() -> Case:
    return Between([GCNConv(32, 32) for _ in range(4)], normalised(BatchNorm1d(32))), data()


def normalised(norm: Module) -> Callable[[Tensor, Tensor], Tensor]:
    return lambda x, out: norm(out).relu()


def made(make: Callable[[], Module], scale: float = 1.0) -> Case:
    return make(), data(scale=scale)


@dataclass(frozen=True)
class Expected:
    """What a diagnosis must say about a case."""

    make: Callable[[], Case]
    finds: tuple[str, ...] = ()
    culprit: str | None = None
    harmless: bool | None = None
    seeds: tuple[int, ...] = (0,)
    allows: tuple[str, ...] = field(default=())  # further findings that are right as well


SEVERAL = (0, 1, 2, 3, 4)
CASES: dict[str, Expected] = {
    "smoothing by aggregation": Expected(
        averaging, ("smoothing",), "aggregation", None, (0,), ("rank loss",)
    ),
    "smoothing and shrinking": Expected(
        averaging_that_shrinks, ("smoothing", "shrinking"), "aggregation", allows=("rank loss",)
    ),
    "plain deep GCN": Expected(
        deep_gcn, ("smoothing", "shrinking"), "aggregation", allows=("rank loss",), seeds=SEVERAL
    ),
    "plain deep SAGE": Expected(
        deep_sage, ("smoothing",), allows=("rank loss", "vanishing gradient"), seeds=(0, 1)
    ),
    "harmless smoothing": Expected(
        harmless_smoothing, ("smoothing",), "aggregation", harmless=True, allows=("rank loss",)
    ),
    "harmful smoothing": Expected(
        harmful_smoothing, ("smoothing",), "aggregation", harmless=False, allows=("rank loss",)
    ),
    "batch norm that masks": Expected(
        batch_norm_that_masks, ("rank loss",), "aggregation", allows=("smoothing",)
    ),
    "sums that explode": Expected(
        sums_that_explode, ("exploding",), "aggregation", allows=("rank loss",)
    ),
    "small weights": Expected(small_weights, ("shrinking",), "weights"),
    "rank-one weights": Expected(rank_one_weights, ("rank loss",), "weights"),
    "constant bias": Expected(constant_bias, ("offset",), "weights", allows=("rank loss",)),
    "biases beside small features": Expected(biases_beside_small_features, seeds=SEVERAL),
    "large weights": Expected(large_weights, ("exploding",), "weights"),
    "dead ReLUs": Expected(dead_relus, ("dead units",), allows=("rank loss",)),
    "residuals that explode": Expected(
        residuals_that_explode, ("exploding",), "between", allows=("smoothing", "rank loss")
    ),
    "activation that shrinks": Expected(activation_that_shrinks, ("shrinking",), "between"),
    "not a number": Expected(not_a_number, ("exploding",)),
    "saturated": Expected(saturated, ("vanishing gradient",), "between"),
    "chaotic": Expected(chaotic, ("exploding gradient",), "weights"),
    "detached entropy step": Expected(detached_step, ("vanishing gradient",), "between"),
    "rotations": Expected(partial(made, lambda: stack(rotate, 30))),
    "GCN, 2 layers": Expected(partial(made, lambda: GCN(32, 64, 2, 7)), seeds=SEVERAL),
    "GCNII, 64 layers": Expected(partial(made, lambda: GCNII(64)), seeds=(0, 1)),
    "GAT": Expected(partial(made, lambda: GAT(32, 64, 3, 7, heads=4)), seeds=SEVERAL),
    "GATv2": Expected(partial(made, lambda: GAT(32, 64, 3, 7, v2=True)), seeds=SEVERAL),
    "GATv2, small features": Expected(
        partial(made, lambda: GAT(32, 64, 3, 7, v2=True), 0.005), seeds=SEVERAL
    ),
    "GPS": Expected(partial(made, GPS), seeds=(0, 1)),
    "jumping knowledge": Expected(partial(made, lambda: GCN(32, 64, 3, 7, jk="cat"))),
    "SAGE": Expected(partial(made, lambda: GraphSAGE(32, 64, 3, 7)), seeds=SEVERAL),
    "GIN": Expected(partial(made, lambda: GIN(32, 64, 3, 7)), seeds=SEVERAL),
    "GIN, small features": Expected(partial(made, lambda: GIN(32, 64, 3, 7), 0.005), seeds=SEVERAL),
    "PairNorm": Expected(partial(made, lambda: GCN(32, 64, 3, 7, norm=PairNorm()))),
    "batch norm": Expected(batch_norm),
    "residual outside": Expected(residual_outside),
    "residual blocks": Expected(residual_blocks),
    "one SAGE layer": Expected(partial(made, lambda: SAGEConv(32, 16))),
    "entropy step": Expected(
        partial(
            made,
            lambda: eamp.wrap(GCN(32, 64, 64), weight=10, temperature=1, detach=False),
        )
    ),
}
