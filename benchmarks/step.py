"""The entropy step beside what a user would write instead."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from statistics import median
from typing import Any

import torch
from torch import Tensor
from torch_geometric.utils import scatter

import eamp
from benchmarks.timing import interleaved, ratios
from eamp.functional import entropy_step
from eamp.graph.ordering import near_order

TEMPERATURE = 10.0


def random_graph(num_nodes: int, num_edges: int, seed: int = 0) -> eamp.Graph:
    """A graph of about ``num_edges`` directed entries whose ends are drawn uniformly: no locality to exploit."""
    generator = torch.Generator().manual_seed(seed)
    return eamp.Graph(
        torch.randint(0, num_nodes, (2, num_edges // 2), generator=generator),
        num_nodes,
        symmetrize=True,
    )


def local_graph(num_nodes: int, num_edges: int, reach: int = 50, seed: int = 0) -> eamp.Graph:
    """A graph whose neighbours lie within ``reach`` places of each other, as in a mesh, or after reordering."""
    generator = torch.Generator().manual_seed(seed)
    start = torch.arange(num_nodes).repeat(num_edges // 2 // num_nodes)
    end = (start + torch.randint(1, reach + 1, start.shape, generator=generator)) % num_nodes
    return eamp.Graph(torch.stack([start, end]), num_nodes, symmetrize=True)


def edgewise_energy(x: Tensor, edge_index: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """Energies by gathering both ends of every edge and scattering the squares, and the differences gathered."""
    difference = x[edge_index[0]] - x[edge_index[1]]
    return c / 2 * scatter(
        difference.square().sum(1), edge_index[0], dim_size=x.size(0)
    ), difference


def edgewise_step(x: Tensor, edge_index: Tensor, c: Tensor) -> Tensor:
    """T∇S as it is written with PyG's ``scatter``."""
    energy, difference = edgewise_energy(x, edge_index, c)
    q = c * torch.exp(-energy / TEMPERATURE) * (1 - energy / TEMPERATURE)
    weight = (q[edge_index[0]] + q[edge_index[1]]).unsqueeze(1)
    return scatter(weight * difference, edge_index[0], dim_size=x.size(0))


def autograd_step(x: Tensor, edge_index: Tensor, c: Tensor) -> Tensor:
    """T∇S by differentiating the entropy."""
    x = x.detach().requires_grad_()
    ratio = edgewise_energy(x, edge_index, c)[0] / TEMPERATURE
    return torch.autograd.grad(TEMPERATURE * (ratio * torch.exp(-ratio)).sum(), x)[0]


def compare(num_nodes: int, num_edges: int, features: int, rounds: int = 15) -> dict[str, Any]:
    """Time the step, forward and backward, beside the alternatives on one random graph; also the published formula's error."""
    torch.manual_seed(0)
    g, x = random_graph(num_nodes, num_edges), torch.randn(num_nodes, features)
    edge_index, csr = g.edge_index, g.csr
    c = eamp.ops.normaliser(x, csr.rsqrt_degree)
    adjacency = csr_matrix(g)
    tracked, upstream = x.clone().requires_grad_(), torch.randn_like(x)

    copied = torch.empty_like(x)
    with_graph = entropy_step(tracked, csr, TEMPERATURE)[0]
    contenders: dict[str, Callable[[], Tensor]] = {
        "step": lambda: entropy_step(x, csr, TEMPERATURE)[0],
        "A @ x": lambda: adjacency @ x,
        "backward": lambda: torch.autograd.grad(with_graph, tracked, upstream, retain_graph=True)[
            0
        ],
        "edge-wise": lambda: edgewise_step(x, edge_index, c),
        "autograd": lambda: autograd_step(x, edge_index, c),
        "copy": lambda: copied.copy_(x),
    }
    for other in ("edge-wise", "autograd"):  # what is compared is the same thing
        torch.testing.assert_close(contenders["step"](), contenders[other](), rtol=1e-3, atol=1e-3)
    seconds = interleaved(contenders, rounds)
    exact, paper = (
        eamp.entropy_gradient(x, g, TEMPERATURE, variant=variant) for variant in ("exact", "paper")
    )
    return {
        "nodes": num_nodes,
        "edges": csr.col.numel(),
        "features": features,
        "ratios": ratios(
            seconds,
            [("edge-wise", "step"), ("autograd", "step"), ("step", "A @ x"), ("backward", "step")],
        ),
        "seconds": {name: median(times) for name, times in seconds.items()},
        "bytes per second": {
            name: size / min(seconds[name]) for name, size in bytes_moved(g, x).items()
        },
        "error of the published gradient": float((paper - exact).norm() / exact.norm()),
    }


def reordered(
    num_nodes: int, num_edges: int, features: int = 64, rounds: int = 3
) -> dict[str, Any]:
    """Time the step on a mesh whose nodes are in random order, and in the order that :func:`eamp.graph.ordering.near_order` finds."""
    torch.manual_seed(0)
    edge_index = torch.randperm(num_nodes)[local_graph(num_nodes, num_edges).edge_index]
    shuffled, x = eamp.Graph(edge_index, num_nodes), torch.randn(num_nodes, features)
    started = time.perf_counter()
    order = near_order(shuffled)
    took = time.perf_counter() - started
    if order is None:
        raise RuntimeError("no order was found in which neighbours are nearer.")
    ordered = eamp.Graph(
        torch.empty_like(order).scatter_(0, order, torch.arange(num_nodes))[edge_index], num_nodes
    )
    graphs = {"random": shuffled, "found": ordered}
    seconds = interleaved(
        {name: lambda csr=g.csr: entropy_step(x, csr, TEMPERATURE) for name, g in graphs.items()},
        rounds,
    )  # type: ignore[misc]
    ratio = ratios(seconds, [("random", "found")])["random / found"]
    return {
        "nodes": num_nodes,
        "edges": num_edges,
        "features": features,
        "ratio": ratio,
        "seconds to find it": took,
    }


def bytes_moved(g: eamp.Graph, x: Tensor) -> dict[str, int]:
    """What a processor without caches would have to read and write of the features.

    For the energies the step reads every row and, for half of the entries, the row of the other end; for the gradient every row and the
    other ends of all entries, and it writes a row. A product with the adjacency reads the other ends and writes.
    """
    n, m, row = g.num_nodes, g.csr.col.numel(), x.size(1) * x.element_size()
    return {"step": (n + m // 2 + n + m + n) * row, "A @ x": (m + n) * row, "copy": 2 * n * row}


def csr_matrix(g: eamp.Graph) -> Tensor:
    """The adjacency as torch's own CSR matrix."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # torch calls its CSR matrices a beta
        return torch.sparse_csr_tensor(
            g.csr.rowptr, g.csr.col, torch.ones(g.csr.col.numel()), (g.num_nodes, g.num_nodes)
        )
