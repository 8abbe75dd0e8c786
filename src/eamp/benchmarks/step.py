"""The entropy step beside what a user would write instead."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch_geometric.utils import scatter

import eamp
from eamp.benchmarks.timing import Timing, interleaved
from eamp.functional import entropy_step

TEMPERATURE = 10.0


def random_graph(num_nodes: int, num_edges: int, seed: int = 0) -> eamp.Graph:
    """A graph of about ``num_edges`` directed entries whose ends are drawn uniformly: no locality to exploit."""
    generator = torch.Generator().manual_seed(seed)
    return eamp.Graph(torch.randint(0, num_nodes, (2, num_edges // 2), generator=generator), num_nodes, symmetrize=True)


def edgewise_energy(x: Tensor, edge_index: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """Energies by gathering both ends of every edge and scattering the squares, and the differences gathered."""
    difference = x[edge_index[0]] - x[edge_index[1]]
    return c / 2 * scatter(difference.square().sum(1), edge_index[0], dim_size=x.size(0)), difference


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
    adjacency = torch.sparse_csr_tensor(csr.rowptr, csr.col, torch.ones(csr.col.numel()), (num_nodes, num_nodes))
    tracked, upstream = x.clone().requires_grad_(), torch.randn_like(x)

    def step() -> Tensor:
        return entropy_step(x, csr, TEMPERATURE)[0]

    def step_and_backward() -> Tensor:
        return torch.autograd.grad(entropy_step(tracked, csr, TEMPERATURE)[0], tracked, upstream)[0]

    for other in (edgewise_step, autograd_step):
        torch.testing.assert_close(step(), other(x, edge_index, c), rtol=1e-3, atol=1e-3)
    fast = interleaved({"A @ x": lambda: adjacency @ x, "step": step, "step + backward": step_and_backward}, "step", rounds)
    slow = interleaved(
        {"step": step, "edge-wise": lambda: edgewise_step(x, edge_index, c), "autograd": lambda: autograd_step(x, edge_index, c)},
        "step",
        rounds=5,
    )
    named: dict[str, Timing] = {timing.name: timing for timing in (*slow, *fast)}
    exact, paper = (eamp.entropy_gradient(x, g, TEMPERATURE, variant=variant) for variant in ("exact", "paper"))
    return {
        "nodes": num_nodes,
        "edges": csr.col.numel(),
        "features": features,
        "seconds": {name: timing.seconds for name, timing in named.items()},
        "edge-wise / step": named["edge-wise"].ratio,
        "autograd / step": named["autograd"].ratio,
        "step / A @ x": 1 / named["A @ x"].ratio,
        "backward / forward": named["step + backward"].ratio - 1,
        "error of the published gradient": float((paper - exact).norm() / exact.norm()),
    }
