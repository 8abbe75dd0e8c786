"""Measure facts about operators on Cora that the documentation states, into ``measures.csv``.

python docs/results/evidence/measures.py
"""

import csv
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import torch

import eamp
from eamp.experiments.cell import Cell
from eamp.nn import collapse_threshold
from eamp.nn.conv.gcn_conv import gcn_propagate
from eamp.paper.threshold import SETTING, measured_threshold
from eamp.training import train

CHANGES = {"epochs": 60}  # enough for trained weights; no accuracy is read off
Row = tuple[str, str, float]


def main() -> None:
    """Write a row per quantity and setting."""
    data = eamp.data.load("cora")
    graph = eamp.Graph(data.edge_index, data.num_nodes)
    x = data.x / data.x.sum(1, keepdim=True).clamp(min=1)
    rows = [
        *gradient_errors(data.x, x, graph),
        *thresholds(graph),
        *spectrum(graph),
        *fixed_point(),
    ]
    with (Path(__file__).parent / "measures.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["quantity", "setting", "value"])
        writer.writerows((*names, f"{value:.6g}") for *names, value in rows)


def gradient_errors(raw: torch.Tensor, x: torch.Tensor, graph: eamp.Graph) -> Iterator[Row]:
    """Relative error of the published gradient, by features and temperature."""
    noise = torch.randn(graph.num_nodes, 256, generator=torch.Generator().manual_seed(0))
    smooth = noise
    for _ in range(4):
        smooth = gcn_propagate(smooth, graph)
    features = {
        "features": raw,
        "rows normalised": x,
        "random, 256 columns": noise,
        "random, 4 propagations": smooth,
    }
    for name, embedding in features.items():
        for temperature, written in ((1.0, "1"), (10.0, "10"), (1e6, "∞")):
            exact, paper = (
                eamp.entropy_gradient(embedding.double(), graph, temperature, variant=variant)
                for variant in ("exact", "paper")
            )
            error = float((paper - exact).norm() / exact.norm())
            yield "error of the published gradient", f"{name}, T = {written}", error


def thresholds(graph: eamp.Graph) -> Iterator[Row]:
    """λ* at width 64: closed form at the mean degree, from the spectrum, and measured."""
    k, width = float(graph.degree.mean()), 64
    yield "lambda*", "closed form, mean degree", (k + 3) / (k - 1) / 4 * (width / k) ** 0.5
    yield "lambda*", "spectrum", collapse_threshold(graph, width).item()
    yield "lambda*", "measured", measured_threshold(graph, width, **SETTING)


def spectrum(graph: eamp.Graph) -> Iterator[Row]:
    """Share of the modes of Â that a lazy walk of gain g loses sooner than a bare layer."""
    values = torch.linalg.eigvalsh(gcn_propagate(torch.eye(graph.num_nodes), graph).double())
    for gain in (0.3, 0.9):
        share = float((values < -gain / (2 - gain)).double().mean())
        yield "modes lost sooner", f"g = {gain:g}", share


def fixed_point() -> Iterator[Row]:
    """Largest differences of logits on Cora: depth, ReLU, and the step against the residual."""
    cell = Cell(
        "entropic-deep-gcn", "cora", 64, dropout=0.6, normalize_features=True, changes=CHANGES
    )
    model, data = cell.build(), cell.graph
    train(model, data, cell.rules)
    others = {
        "64 and 1000 layers": replace(cell, depth=1000),
        "with and without ReLU": replace(cell, options={"linear": True}),
        "g = .3, alpha = .1 and no step, alpha = .143": replace(
            cell, model="deep-gcn", options={"initial_residual": 0.1 / 0.7}
        ),
    }
    with torch.no_grad():
        logits = model.eval()(data.x, data.edge_index)
        yield "largest logit", "64 layers", float(logits.abs().max())
        for name, changed in others.items():
            other = changed.build().eval()
            other.load_state_dict(model.state_dict())  # no layer has a parameter
            difference = (other(data.x, data.edge_index) - logits).abs().max()
            yield "difference of logits", name, float(difference)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    yield "parameters", "entropic-deep-gcn, any depth", parameters


if __name__ == "__main__":
    main()
