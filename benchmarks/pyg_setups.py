"""The ways to run PyG's GCN, from the default one to the fastest."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import Module, ModuleList
from torch_geometric import EdgeIndex
from torch_geometric.nn import GCNConv
from torch_geometric.nn.conv.gcn_conv import gcn_norm

import eamp
from benchmarks.timing import seconds_per_call

DEFAULT = "PyG"
"""A new normalisation of the ``edge_index`` in every layer of every pass."""


class PyGStack(Module):
    """The network a PyG user writes: convolutions with a ReLU in between.

    Args:
        width: the number of features.
        classes: the number of classes.
        layers: the number of hidden layers.
        **options: of :class:`torch_geometric.nn.GCNConv`.
    """

    def __init__(self, width: int, classes: int, layers: int, **options: Any) -> None:
        super().__init__()
        self.convs = ModuleList(GCNConv(width, width, **options) for _ in range(layers))
        self.output = GCNConv(width, classes, **options)

    def forward(self, x: Tensor, adjacency: Any, edge_weight: Tensor | None = None) -> Tensor:
        """Return logits."""
        for conv in self.convs:
            x = conv(x, adjacency, edge_weight).relu()
        return self.output(x, adjacency, edge_weight)


def stepper(model: Module, x: Tensor, y: Tensor, *adjacency: Any) -> Callable[[], None]:
    """Return a training step without the optimizer, which all networks have in common."""

    def step() -> None:
        model.zero_grad()
        F.cross_entropy(model(x, *adjacency), y).backward()

    return step


def pyg_setups(
    g: eamp.Graph, x: Tensor, y: Tensor, classes: int, layers: int, compiled: bool = True
) -> tuple[dict[str, Callable[[], None]], dict[str, Any]]:
    """Return training steps of the same network by set-up, and what became of ``torch.compile``.

    Args:
        g: the graph.
        x: features.
        y: labels.
        classes: the number of classes.
        layers: the number of hidden layers.
        compiled: compile the fastest of the other set-ups, too.
    """
    sizes = (x.size(1), classes, layers)
    edge_index, weight = gcn_norm(g.edge_index, None, g.num_nodes)
    by_column, order = EdgeIndex(edge_index, sparse_size=(g.num_nodes,) * 2).sort_by("col")
    normalised = PyGStack(*sizes, normalize=False)
    models: dict[str, tuple[Module, tuple[Any, ...]]] = {
        DEFAULT: (PyGStack(*sizes), (g.edge_index,)),
        "PyG, cached": (PyGStack(*sizes, cached=True), (g.edge_index,)),
        "PyG, CSR": (normalised, (normalised_csr(edge_index, weight, g.num_nodes),)),
        "PyG, EdgeIndex": (normalised, (by_column.fill_cache_(), weight[order])),
    }
    calls = {name: stepper(model, x, y, *given) for name, (model, given) in models.items()}
    if not compiled:
        return calls, {}
    fastest = min(calls, key=lambda name: seconds_of_warm_call(calls[name]))
    model, given = models[fastest]
    call = stepper(cast(Module, torch.compile(model)), x, y, *given)
    started = time.perf_counter()
    try:
        call()
    except Exception as error:  # whatever goes wrong in a compiler, the others are still compared
        reason = str(error).strip().splitlines()[0] if str(error).strip() else ""
        return calls, {"of": fastest, "error": f"{type(error).__name__}: {reason}"[:200]}
    seconds = time.perf_counter() - started
    return {**calls, f"{fastest}, compiled": call}, {"of": fastest, "seconds": seconds}


def normalised_csr(edge_index: Tensor, weight: Tensor, num_nodes: int) -> Tensor:
    """Return a normalised ``edge_index`` as torch's CSR matrix, transposed as PyG wants it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # torch calls its CSR matrices a beta
        size = (num_nodes, num_nodes)
        return torch.sparse_coo_tensor(edge_index.flip(0), weight, size).to_sparse_csr()


def seconds_of_warm_call(call: Callable[[], None]) -> float:
    """Return the fastest of three calls after a first one."""
    call()
    return min(seconds_per_call(call, 1) for _ in range(3))
