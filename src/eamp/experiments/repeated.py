"""One model on one graph, trained over several seeds."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch.nn import Module
from torch_geometric.data import Data
from torch_geometric.transforms import NormalizeFeatures

from eamp.data import load
from eamp.nn.models import MODELS
from eamp.training import PROTOCOLS, Result, train


def repeated(
    *,
    model: str,
    data: str,
    depth: int,
    width: int = 64,
    dropout: float = 0.0,
    entropy: dict[str, Any] | None = None,
    options: dict[str, Any] | None = None,
    protocol: str = "standard",
    changes: dict[str, Any] | None = None,
    normalize_features: bool = False,
    seed: int = 0,
    seeds: int = 1,
    output: Path | None = None,
    progress: bool = False,
) -> list[Result]:
    """Train with seeds ``seed``, ``seed + 1``, ...; with ``output``, interrupted runs go on and finished ones are not repeated."""
    graph = load_graph(data, normalize_features)
    rules = PROTOCOLS[protocol].with_changes(**(changes or {}))
    results = []
    for current in range(seed, seed + seeds):
        checkpoint = None if output is None else output / f"seed_{current}.safetensors"
        network = build_model(model, graph, width, depth, current, dropout, entropy, options)
        results.append(train(network, graph, rules, seed=current, checkpoint=checkpoint, progress=progress))
        if output is not None:
            (output / f"seed_{current}.json").write_text(json.dumps(asdict(results[-1])), encoding="utf-8")
    return results


def load_graph(name: str, normalize_features: bool) -> Data:
    """A dataset, its features divided by their sum for every node if asked to."""
    graph = load(name)
    return NormalizeFeatures()(graph) if normalize_features else graph


def build_model(
    name: str,
    graph: Data,
    width: int,
    depth: int,
    seed: int,
    dropout: float = 0.0,
    entropy: dict[str, Any] | None = None,
    options: dict[str, Any] | None = None,
) -> Module:
    """A model by its name, initialised under ``seed``."""
    if name not in MODELS:
        raise ValueError(f"no model named {name!r}; there are {', '.join(MODELS)}.")
    torch.manual_seed(seed)
    return MODELS[name](graph.num_features, width, graph.num_classes, depth, dropout=dropout, entropy=entropy, **(options or {}))


def summary(results: Sequence[Result], protocol: str) -> str:
    """Accuracies in words, each under the name of what it is."""
    number = len(results)
    seeds = f"{number} seed{'s' if number > 1 else ''}"
    rule = {"val_loss": "lowest validation loss", "val_accuracy": "highest validation accuracy"}[PROTOCOLS[protocol].select]
    lines = [
        f"test accuracy at the epoch of {rule}: {mean_and_deviation([r.test_accuracy for r in results])} ({seeds}, protocol {protocol})",
        f"highest validation accuracy over the epochs, the paper's number: {mean_and_deviation([r.best_val_accuracy for r in results])}",
        f"epochs: {', '.join(f'{r.epoch} of {len(r.history)}' for r in results)}",
    ]
    return "\n".join(lines)


def mean_and_deviation(values: Sequence[float]) -> str:
    """In percent, with the sample's standard deviation where there are several."""
    deviation = f" ± {100 * statistics.stdev(values):.2f}" if len(values) > 1 else ""
    return f"{100 * statistics.mean(values):.2f}{deviation}"
