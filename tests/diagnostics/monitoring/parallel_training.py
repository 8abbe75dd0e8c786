"""Training under DistributedDataParallel with and without a monitor, as a job of one process.

The processes import this module by its name.
"""

from __future__ import annotations

import warnings
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch_geometric.nn import GCN, GCNConv
from torch_geometric.utils import erdos_renyi_graph

import eamp
from eamp.diagnostics import CollapseWarning, Monitor
from eamp.diagnostics.monitoring.gain_control import number_of
from eamp.nn import Gain
from eamp.nn.conv.gcn_conv import gcn_propagate

EPOCHS, EVERY, LAYERS = 5, 2, 12


def trained(folder: str | None) -> tuple[list[float], list[float], list[int], int]:
    """Train on a graph of this process's own, with a monitor if there is a folder for it.

    Returns:
        Losses, parameters, the epochs that this process has measured once per layer, and the number
        of its alarms.
    """
    torch.manual_seed(0)
    model = DistributedDataParallel(GCN(8, 16, LAYERS, 3, dropout=0.2))
    torch.manual_seed(1 + dist.get_rank())
    x, edge_index = torch.randn(40, 8), erdos_renyi_graph(40, 0.2)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    monitor = None if folder is None else Monitor(model, every=EVERY, folder=folder)
    losses: list[float] = []
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        if monitor is not None:
            monitor.__enter__()
        for epoch in range(EPOCHS):
            optimizer.zero_grad()
            loss = model(x, edge_index).square().mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            if monitor is not None:
                monitor.step(epoch)
        if monitor is not None:
            monitor.__exit__()
    rows: list[dict[str, Any]] = [] if monitor is None else monitor.rows
    alarms = sum(issubclass(each.category, CollapseWarning) for each in warned)
    parameters = torch.cat([p.detach().flatten() for p in model.parameters()])
    return losses, parameters.tolist(), [row["epoch"] for row in rows], alarms


def gained(kind: str) -> tuple[list[float], list[Any]]:
    """Smooth the data of process 0 from epoch to epoch, with a monitor that raises λ or the gain.

    Returns:
        The numbers, and the last outputs on data that are the same in all processes.
    """
    torch.manual_seed(0)
    weight = Gain(0.05) if kind == "gain" else 0.01
    layer = eamp.EntropyAware(GCNConv(8, 8), weight=weight, temperature=1e6)
    model = DistributedDataParallel(layer)
    edge_index = erdos_renyi_graph(40, 0.2)
    x = given = torch.randn(40, 8)
    numbers = []
    with Monitor(model, every=2, gain_limit=0.5) as monitor:
        for _ in range(EPOCHS):
            model(x, edge_index).square().mean().backward()
            monitor.step()
            numbers.append(number_of(layer))
            for _ in range(10 if dist.get_rank() == 0 else 0):
                x = gcn_propagate(x, eamp.Graph(edge_index))
    with torch.no_grad():
        return numbers, layer(given, edge_index).tolist()
