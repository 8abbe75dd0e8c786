"""Time the entropy step beside the code that a user would write instead."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch_geometric.utils import degree, scatter

import eamp
from benchmarks.timing import interleaved, medians, ratios
from eamp.graph.ordering import near_order

TEMPERATURE = 10.0


def random_graph(num_nodes: int, num_edges: int, seed: int = 0) -> eamp.Graph:
    """Make a graph of about ``num_edges`` directed entries whose ends are drawn uniformly."""
    generator = torch.Generator().manual_seed(seed)
    ends = torch.randint(0, num_nodes, (2, num_edges // 2), generator=generator)
    return eamp.Graph(ends, num_nodes, symmetrize=True)


def local_graph(num_nodes: int, num_edges: int, reach: int = 50, seed: int = 0) -> eamp.Graph:
    """Make a graph whose neighbours lie within ``reach`` places of each other, as in a mesh."""
    generator = torch.Generator().manual_seed(seed)
    start = torch.arange(num_nodes).repeat(num_edges // 2 // num_nodes)
    end = (start + torch.randint(1, reach + 1, start.shape, generator=generator)) % num_nodes
    return eamp.Graph(torch.stack([start, end]), num_nodes, symmetrize=True)


def normaliser(x: Tensor, edge_index: Tensor) -> Tensor:
    """Return C_i = 1/sqrt(k_i F), which users of the edge-wise code would compute once."""
    degrees = degree(edge_index[0], x.size(0))
    return (degrees.clamp(min=1) * x.size(1)).rsqrt()  # an isolated node has no summands


def edgewise_energy(x: Tensor, edge_index: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """Return the energies and all differences, by gathering both ends of every edge."""
    row, col = edge_index
    difference = x[row] - x[col]
    return c / 2 * scatter(difference.square().sum(1), row, dim_size=x.size(0)), difference


def edgewise_step(x: Tensor, edge_index: Tensor, c: Tensor) -> Tensor:
    """Return T∇S as it is written with PyG's ``scatter``."""
    row, col = edge_index
    energy, difference = edgewise_energy(x, edge_index, c)
    q = c * torch.exp(-energy / TEMPERATURE) * (1 - energy / TEMPERATURE)
    return scatter((q[row] + q[col]).unsqueeze(1) * difference, row, dim_size=x.size(0))


def autograd_step(x: Tensor, edge_index: Tensor, c: Tensor) -> Tensor:
    """Return T∇S by differentiating the entropy with autograd."""
    x = x.detach().requires_grad_()
    ratio = edgewise_energy(x, edge_index, c)[0] / TEMPERATURE
    return torch.autograd.grad(TEMPERATURE * (ratio * torch.exp(-ratio)).sum(), x)[0]


def step_and_backward(
    x: Tensor, g: eamp.Graph
) -> tuple[Callable[[], Tensor], Callable[[], Tensor]]:
    """Return two functions: the step, and the backward pass through a step that was taken once."""
    tracked, upstream = x.clone().requires_grad_(), torch.randn_like(x)
    taken = eamp.entropy_gradient(tracked, g, TEMPERATURE)
    return (
        lambda: eamp.entropy_gradient(x, g, TEMPERATURE),
        lambda: torch.autograd.grad(taken, tracked, upstream, retain_graph=True)[0],
    )


def compare(num_nodes: int, num_edges: int, features: int, rounds: int = 15) -> dict[str, Any]:
    """Time the step, forward and backward, beside its alternatives on one random graph.

    The result also holds the relative error of the paper's published gradient on that graph.
    """
    torch.manual_seed(0)
    g, x = random_graph(num_nodes, num_edges), torch.randn(num_nodes, features)
    edge_index, adjacency, copied = g.edge_index, csr_matrix(g), torch.empty_like(x)
    c = normaliser(x, edge_index)
    step, backward = step_and_backward(x, g)
    calls: dict[str, Callable[[], Tensor]] = {
        "step": step,
        "A @ x": lambda: adjacency @ x,
        "backward": backward,
        "edge-wise": lambda: edgewise_step(x, edge_index, c),
        "autograd": lambda: autograd_step(x, edge_index, c),
        "copy": lambda: copied.copy_(x),
    }
    exact = step()
    for other in ("edge-wise", "autograd"):  # make sure that all compute the same thing
        torch.testing.assert_close(TEMPERATURE * exact, calls[other](), rtol=1e-3, atol=1e-3)
    seconds = interleaved(calls, rounds)
    paper = eamp.entropy_gradient(x, g, TEMPERATURE, variant="paper")
    pairs = [("edge-wise", "step"), ("autograd", "step"), ("step", "A @ x"), ("backward", "step")]
    return {
        "nodes": num_nodes,
        "edges": edge_index.size(1),
        "features": features,
        "ratios": ratios(seconds, pairs),
        "seconds": medians(seconds),
        "bytes per second": {
            name: size / min(seconds[name]) for name, size in bytes_moved(g, x).items()
        },
        "error of the published gradient": float((paper - exact).norm() / exact.norm()),
    }


def reordered(
    num_nodes: int, num_edges: int, features: int = 64, rounds: int = 3
) -> dict[str, Any]:
    """Time the step on a mesh in random order, and in the order that ``near_order`` finds."""
    torch.manual_seed(0)
    edge_index = torch.randperm(num_nodes)[local_graph(num_nodes, num_edges).edge_index]
    shuffled, x = eamp.Graph(edge_index, num_nodes), torch.randn(num_nodes, features)
    started = time.perf_counter()
    order = near_order(shuffled)
    took = time.perf_counter() - started
    if order is None:
        raise RuntimeError("near_order found no order in which neighbours are nearer.")
    place = torch.empty_like(order).scatter_(0, order, torch.arange(num_nodes))
    ordered = eamp.Graph(place[edge_index], num_nodes)
    calls = {
        "random": lambda: eamp.entropy_gradient(x, shuffled, TEMPERATURE),
        "found": lambda: eamp.entropy_gradient(x, ordered, TEMPERATURE),
    }
    return {
        "nodes": num_nodes,
        "edges": num_edges,
        "features": features,
        "ratio": ratios(interleaved(calls, rounds), [("random", "found")])["random / found"],
        "seconds to find it": took,
    }


def bytes_moved(g: eamp.Graph, x: Tensor) -> dict[str, int]:
    """Return how many bytes of features a processor without caches would read and write.

    For the energies the step reads every row and, for half of the entries, the row of the other
    end. For the gradient it reads every row and the other ends of all entries, and writes a row.
    A product with the adjacency matrix reads the other ends and writes a row.
    """
    n, m, row = g.num_nodes, g.csr.col.numel(), x.size(1) * x.element_size()
    return {"step": (n + m // 2 + n + m + n) * row, "A @ x": (m + n) * row, "copy": 2 * n * row}


def csr_matrix(g: eamp.Graph) -> Tensor:
    """Return the adjacency matrix as torch's own CSR matrix, on the graph's device."""
    csr, size = g.csr, (g.num_nodes, g.num_nodes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # torch calls its CSR matrices a beta
        return torch.sparse_csr_tensor(
            csr.rowptr, csr.col, torch.ones_like(csr.col, dtype=torch.float32), size
        )
