"""Train on a large graph in mini-batches of sampled neighbours beside full batches.

python -m benchmarks.sampling [--nodes 1000000] [--edges 5000000] [--features 64] [--output FILE]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch.nn.functional import cross_entropy
from torch_geometric.data import Data

import eamp
from benchmarks.fresh_process import in_fresh_process, resident_peak
from benchmarks.large import random_edges
from benchmarks.results import add_output, write_results
from eamp.scale import NeighbourLoader

CLASSES, WIDTH, LAYERS = 8, 64, 2
FANOUT, SEEDS, TRAINED = [10, 5, 5], 1024, 0.01  # the last: the share of training nodes
STEP = {"weight": 1.0, "temperature": 1.0}


def large_data(num_nodes: int, num_edges: int, features: int) -> Data:
    """Return a random graph with features that tell the classes."""
    generator = torch.Generator().manual_seed(0)
    y = torch.randint(CLASSES, (num_nodes,), generator=generator)
    x = torch.randn(num_nodes, features, generator=generator)
    x[torch.arange(num_nodes), y] += 2.0
    edge_index = eamp.Graph(random_edges(num_nodes, num_edges), num_nodes).edge_index
    train_mask = torch.rand(num_nodes, generator=generator) < TRAINED
    return Data(x=x, edge_index=edge_index, y=y, train_mask=train_mask)


def make_model(features: int) -> tuple[torch.nn.Module, torch.optim.Optimizer]:
    """Return an entropic GCN and its optimizer."""
    torch.manual_seed(0)
    model = eamp.nn.GCN(features, WIDTH, CLASSES, num_layers=LAYERS, entropy=STEP)
    return model, torch.optim.Adam(model.parameters(), lr=0.01)


def mini_batches(num_nodes: int, num_edges: int, features: int) -> dict[str, Any]:
    """Train two epochs in mini-batches; return seconds, the peak, and the loss of either."""
    data = large_data(num_nodes, num_edges, features)
    data_peak = resident_peak()
    started = time.perf_counter()
    options: dict[str, Any] = {"batch_size": SEEDS, "input_nodes": data.train_mask}
    loader = NeighbourLoader(data, FANOUT, shuffle=True, **options)
    ready = time.perf_counter() - started
    model, optimizer = make_model(features)
    seconds, work, losses, sampling, nodes = [], [], [], 0.0, 0
    for _ in range(2):
        started, busy, total = time.perf_counter(), time.process_time(), 0.0
        waited = time.perf_counter()
        for batch in loader:
            sampling += time.perf_counter() - waited
            nodes = max(nodes, batch.num_nodes)
            optimizer.zero_grad()
            seeds = slice(batch.batch_size)
            loss = cross_entropy(model(batch.x, batch.graph)[seeds], batch.y[seeds])
            loss.backward()
            optimizer.step()
            total += float(loss.detach())
            waited = time.perf_counter()
        seconds.append(time.perf_counter() - started)
        work.append(time.process_time() - busy)
        losses.append(total / len(loader))
    return {
        "seconds to make the loader": ready,
        "steps per epoch": len(loader),
        "nodes of the largest batch": nodes,
        "seconds per epoch": min(seconds),
        "processor seconds per epoch": min(work),
        "seconds of sampling per epoch": sampling / 2,
        "losses": losses,
        "peak bytes of the data": data_peak,
        "peak bytes": resident_peak(),
    }


def full_batches(num_nodes: int, num_edges: int, features: int) -> dict[str, Any]:
    """Train three epochs, of one step each, on the whole graph."""
    data = large_data(num_nodes, num_edges, features)
    data_peak, graph = resident_peak(), eamp.Graph(data)
    model, optimizer = make_model(features)
    seconds, work, losses = [], [], []
    for _ in range(3):
        started, busy = time.perf_counter(), time.process_time()
        optimizer.zero_grad()
        out = model(data.x, graph)[data.train_mask]
        loss = cross_entropy(out, data.y[data.train_mask])
        loss.backward()
        optimizer.step()
        seconds.append(time.perf_counter() - started)
        work.append(time.process_time() - busy)
        losses.append(float(loss.detach()))
    return {
        "steps per epoch": 1,
        "nodes of the largest batch": num_nodes,
        "seconds per epoch": min(seconds),
        "processor seconds per epoch": min(work),
        "losses": losses,
        "peak bytes of the data": data_peak,
        "peak bytes": resident_peak(),
    }


def sampling(
    num_nodes: int = 1_000_000, num_edges: int = 5_000_000, features: int = 64
) -> dict[str, Any]:
    """Train both ways, each in a process of its own."""
    size = (num_nodes, num_edges, features)
    return {
        "nodes": num_nodes,
        "edges": num_edges,
        "features": features,
        "mini-batches": in_fresh_process(mini_batches, *size),
        "full batch": in_fresh_process(full_batches, *size),
    }


def sampling_table(result: dict[str, Any]) -> Table:
    """Show mini-batches beside the full batch."""
    ways = ("mini-batches", "full batch")
    size = f"{result['nodes']:,} nodes, {result['edges']:,} undirected edges"
    table = Table("", *ways, title=f"{size}, {result['features']} features")
    found = [result[way] for way in ways]
    for name in ("steps per epoch", "nodes of the largest batch"):
        table.add_row(name, *(f"{way[name]:,}" for way in found))
    times = ("seconds per epoch", "processor seconds per epoch", "seconds of sampling per epoch")
    for name in times:
        table.add_row(name, *(f"{way[name]:.1f}" if name in way else "" for way in found))
    for name in ("peak bytes of the data", "peak bytes"):
        label = name.replace("peak bytes", "peak, GiB,").rstrip(",")
        table.add_row(label, *(f"{way[name] / 2**30:.2f}" for way in found))
    losses = (", ".join(f"{loss:.3f}" for loss in way["losses"]) for way in found)
    table.add_row("training loss, epoch by epoch", *losses)
    return table


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sampling")
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--edges", type=int, default=5_000_000, help="undirected")
    parser.add_argument("--features", type=int, default=64)
    add_output(parser)
    options = parser.parse_args(arguments)
    result = sampling(options.nodes, options.edges, options.features)
    Console().print(sampling_table(result))
    write_results(result, options.output)


if __name__ == "__main__":
    main()
