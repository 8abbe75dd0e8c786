"""Explain the U-curve: measure every layer of 64-layer networks before and during training.

    python examples/u_curve.py --output out/u_curve

The script trains the networks of :func:`networks` on Cora. It measures the embedding and the
gradient at each of their layers before training, after 10 epochs and after 100. It writes
``layers.csv`` (a row per network, epoch, layer and measure), ``accuracies.csv`` (a row per network)
and a chart per measure. Networks that are in ``accuracies.csv`` already are not trained again.
"""

from __future__ import annotations

import argparse
import copy
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import altair as alt
import pandas as pd
import torch
from torch import Tensor
from torch.nn import Module
from torch.nn.functional import cross_entropy
from torch.nn.utils import get_total_norm
from torch_geometric.data import Data
from tqdm import tqdm

import eamp
from eamp.diagnostics import effective_rank, mean_energy, norm, rayleigh_quotient
from eamp.diagnostics.rendering import logarithmic
from eamp.experiments.cell import Cell, load_graph
from eamp.report import figure
from eamp.report.axes import LogAxis, finite
from eamp.report.colours import Look
from eamp.report.figure import Figure, Panel
from eamp.training import Epoch, train

EPOCHS = (0, 10, 100)  # after which the layers are measured
COLOURS = ("#7c8593", "#d55e00", "#2b7bba")
FLOOR = 1e-24  # lines of a logarithmic chart end there, to leave room for the rest
COLUMNS = ["network", "epoch", "layer", "measure", "value"]


# --- The networks ---------------------------------------------------------------------------------


def networks(data: str, depth: int, epochs: int) -> list[Cell]:
    """Return the networks, from the plain GCN to deep ones, one ingredient after the other.

    None of them has dropout.
    """
    changes = {"epochs": epochs, "patience": None}
    gentle = {**changes, "learning_rate": 1e-3, "weight_decay": 0.0}
    plain = Cell("gcn", data, depth, "GCN", changes=changes)
    published = {"weight": 1.0, "temperature": 10.0, "variant": "paper", "detach": False}
    deep = Cell("deep-gcn", data, depth, changes=changes)
    glorot, orthogonal, identity = (
        {"weights": weights, "initial_residual": 0.0}
        for weights in ("glorot", "orthogonal", "identity")
    )
    differentiated = step(0.9, detach=False)
    gcnii = {"weights": "mapping", "initial_residual": 0.1}
    return [
        plain,
        replace(plain, name="GCN, lr .001, no decay", changes=gentle),
        replace(plain, name="GCN + step, λ = 1, T = 10", entropy=published),
        replace(deep, name="Glorot", options=glorot),
        replace(deep, name="Orthogonal", options=orthogonal),
        replace(deep, name="Identity", options=identity),
        replace(deep, name="Identity + step, g = .9", options=identity, entropy=step(0.9)),
        replace(
            deep, name="Identity + step, differentiated", options=identity, entropy=differentiated
        ),
        replace(deep, name="GCNII", options=gcnii),
        replace(deep, name="GCNII + step, g = .3", options=gcnii, entropy=step(0.3)),
    ]


def step(gain: float, detach: bool = True) -> dict[str, Any]:
    """Return a step that undoes the share ``gain`` of the smoothing of nodes far below T."""
    return {
        "weight": {"schedule": "gain", "of": gain},
        "temperature": 1.0,
        "energy": "propagation",
        "scale_free": True,
        "detach": detach,
    }


# --- Measuring ------------------------------------------------------------------------------------


def scale_free_energy(x: Tensor, graph: eamp.Graph) -> Tensor:
    """Return the mean energy of ``x`` divided by its root mean square."""
    return mean_energy(x.double() / norm(x), graph)


MEASURES = {
    "energy": mean_energy,
    "scale_free_energy": scale_free_energy,
    "rayleigh_quotient": rayleigh_quotient,
    "effective_rank": lambda x, graph: effective_rank(x),
    "norm": lambda x, graph: norm(x),
}
TITLES = {
    "energy": "Mean Dirichlet energy",
    "scale_free_energy": "Mean Dirichlet energy over the features' mean square",
    "rayleigh_quotient": "Rayleigh quotient: scale-free energy in the coordinates of graph "
    "convolutions",
    "effective_rank": "Effective rank",
    "norm": "Root mean square of the features",
    "gradient": "Norm of the loss's gradient at the layer's output",
    "weight_gradient": "Norm of the loss's gradient at the layer's parameters",
}


def measured(model: Module, data: Data, cell: Cell) -> Iterator[tuple[int, str, float]]:
    """Yield layer, measure and value for every hidden layer.

    A layer's output is measured with its step and before its ReLU; gradients are those of the
    training loss. The measured model is a copy in evaluation mode, so that training is not
    disturbed. Without dropout it computes the same as in training.
    """
    model = copy.deepcopy(model).eval()
    model.zero_grad()
    layers = [f"convs.{number}" for number in range(cell.depth)]
    with eamp.probe(model, MEASURES, layers=layers, gradients=True) as probe:
        logits = model(data.x, eamp.Graph(data.edge_index, data.num_nodes))
        cross_entropy(logits[data.train_mask], data.y[data.train_mask]).backward()
    for row, name in zip(probe.rows, layers, strict=True):
        values = {measure: row[measure] for measure in (*MEASURES, "gradient")}
        parameters = model.get_submodule(name).parameters()
        # In float64, because the squares of vanishing gradients are 0 in float32.
        gradients = [weights.grad.double() for weights in parameters if weights.grad is not None]
        values["weight_gradient"] = float(get_total_norm(gradients))
        yield from ((row["layer"], measure, value) for measure, value in values.items())


def study(cell: Cell, epochs: tuple[int, ...]) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Train one network; return the measures of its layers at ``epochs``, and its accuracies."""
    data, model = load_graph(cell.data, cell.normalize_features), cell.build()
    rows: list[tuple[str, int, int, str, float]] = []

    def look(epoch: int) -> None:
        rows.extend((cell.name, epoch, *row) for row in measured(model, data, cell))

    def on_epoch(epoch: int, _: Epoch) -> None:
        if epoch + 1 in epochs:
            look(epoch + 1)

    look(0)
    result = train(model, data, cell.rules, seed=cell.seed, progress=True, on_epoch=on_epoch)
    last = result.history[-1]
    accuracies = {
        "network": cell.name,
        "test_accuracy": result.test_accuracy,  # at the epoch of lowest validation loss
        "selected_epoch": result.epoch + 1,
        "last_test_accuracy": last.test_accuracy,
        "last_train_loss": last.train_loss,
        "epochs": len(result.history),
        "cell": cell.key,
    }
    return pd.DataFrame(rows, columns=COLUMNS), accuracies


def append(rows: pd.DataFrame, path: Path) -> None:
    """Add rows to a CSV file, with a header if the file is new."""
    rows.to_csv(path, mode="a", header=not path.exists(), index=False, float_format="%.5g")


def run(cells: list[Cell], epochs: tuple[int, ...], folder: Path) -> None:
    """Train the networks that ``accuracies.csv`` does not have yet."""
    layers, accuracies = folder / "layers.csv", folder / "accuracies.csv"
    done = set(pd.read_csv(accuracies)["cell"]) if accuracies.exists() else set()
    waiting = [cell for cell in cells if cell.key not in done]
    if layers.exists():
        known = pd.read_csv(layers, dtype=str)
        stale = known["network"].isin([cell.name for cell in waiting])
        if stale.any():  # partly written by an interrupted run, or trained with other settings
            known[~stale].to_csv(layers, index=False)
    for cell in (bar := tqdm(waiting, disable=None)):
        bar.set_description(cell.name)
        rows, found = study(cell, epochs)
        append(rows, layers)
        append(pd.DataFrame([found]), accuracies)


# --- Drawing --------------------------------------------------------------------------------------


def chart(table: pd.DataFrame, measure: str) -> Figure:
    """Draw a panel per network, all on the same axes, with a line per epoch."""
    part = finite(table[table["measure"] == measure], "value")
    part = part.assign(name=part["epoch"].map(when))
    legend = {
        when(epoch): Look(colour)
        for epoch, colour in zip(sorted(set(table["epoch"])), COLOURS, strict=True)
    }
    scale = alt.Scale(domain=list(legend), range=[look.colour for look in legend.values()])
    colour = alt.Color("name:N", scale=scale)
    if logarithmic(part["value"]):
        part = part[part["value"] > FLOOR]
        y = LogAxis(part["value"], "").y("value")
    else:
        y = alt.Y("value:Q", title="", scale=alt.Scale(domain=[0, part["value"].max()], nice=True))
    layers = alt.Scale(domain=[1, int(table["layer"].max())], nice=False)
    x = alt.X("layer:Q", title="layer", scale=layers, axis=alt.Axis(tickMinStep=1))
    panels = []
    for name in dict.fromkeys(table["network"]):
        rows = part[part["network"] == name][["layer", "value", "name"]]
        lines = alt.Chart(rows).mark_line(strokeWidth=2, clip=True)
        panels.append(Panel(name, lines.encode(x=x, y=y, color=colour), width=190, height=170))
    return Figure(measure, TITLES[measure], "", tuple(panels), legend, columns=5)


def when(epoch: int) -> str:
    """Return the name of an epoch in the legend."""
    return f"after {epoch} epochs" if epoch else "before training"


def main() -> None:
    """Train, measure, draw."""
    description = "Embedding and gradient at every layer of deep networks, during training."
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--output", type=Path, default=Path("out/u_curve"))
    parser.add_argument("--data", default="cora")
    parser.add_argument("--depth", type=int, default=64)
    quick = "five layers and four epochs on a small generated graph"
    parser.add_argument("--quick", action="store_true", help=quick)
    given = parser.parse_args()
    data, depth, epochs = given.data, given.depth, EPOCHS
    if given.quick:
        data, depth, epochs = "csbm:nodes=60,features=8", 5, (0, 2, 4)
    given.output.mkdir(parents=True, exist_ok=True)

    cells = networks(data, depth, epochs[-1])
    run(cells, epochs, given.output)
    accuracies = pd.read_csv(given.output / "accuracies.csv")
    print(accuracies.drop(columns="cell").to_string(index=False))
    table = pd.read_csv(given.output / "layers.csv")
    for measure in TITLES:
        figure.save(chart(table, measure), given.output)
    print(f"Charts: {given.output}/{{{','.join(TITLES)}}}.png and .svg")


if __name__ == "__main__":
    torch.set_flush_denormal(True)  # as in training, also for measurements before it
    main()
