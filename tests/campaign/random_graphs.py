"""Random graphs, features and settings, each made from a seed and a number."""

import random
from typing import Any, NamedTuple

import networkx as nx
import torch
from scipy import sparse
from torch import Tensor
from torch_geometric import EdgeIndex
from torch_geometric.data import Data

import eamp

Edges = dict[tuple[int, int], float]

DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
SCALES = {  # powers of ten of the features
    torch.float64: (-60, 60),
    torch.float32: (-30, 30),
    torch.float16: (-4, 1),
    torch.bfloat16: (-20, 20),
}
LAYOUTS = (
    "edge_index",
    "repeated",
    "one way",
    "NumPy",
    "EdgeIndex",
    "COO",
    "CSR",
    "CSC",
    "SciPy",
    "networkx",
    "Data",
    "Graph",
)
SHAPES = ("normal", "collapsed", "outlier", "constant", "rows of all sizes")


class Case(NamedTuple):
    """A problem as the campaign drew it, before eamp has seen it.

    Attributes:
        nodes: number of nodes.
        edges: weight of every edge, by its two ends in ascending order.
        weighted: whether the weights differ from 1.
        batch: the graph of every node, or ``None``.
        layout: a name in :data:`LAYOUTS`.
        shape: a name in :data:`SHAPES`.
        x: the features.
        upstream: the gradient that flows into the step.
        temperature: T.
        variant: of the gradient of the entropy.
        normalize: whether the distribution is normalised.
        energy: the energy of the layer.
        detach: whether the layer's step is a constant of the backward pass.
    """

    nodes: int
    edges: Edges
    weighted: bool
    batch: list[int] | None
    layout: str
    shape: str
    x: Tensor
    upstream: Tensor
    temperature: float
    variant: Any
    normalize: bool
    energy: Any
    detach: bool

    def __str__(self) -> str:
        """Return the settings in words."""
        kind = f"{self.nodes} nodes, {len(self.edges)} edges, {self.layout}, {self.x.dtype}"
        kind += ", weighted" if self.weighted else ""
        kind += f", batch of {max(self.batch) + 1}" if self.batch else ""
        size = float(self.x.double().abs().max())
        kind += f", {self.x.size(1)} features, {self.shape}, up to {size:.1e}"
        kind += f", T = {self.temperature:.1e}, {self.variant}"
        kind += ", normalize" if self.normalize else ""
        return kind + f", {self.energy} energy" + (", detach" if self.detach else "")


def draw(seed: int, number: int) -> Case:
    """Draw a case; the same seed and number give the same case."""
    chance = random.Random(f"{seed}/{number}")
    batch = chance.choice([None, None, *range(1, 4)])
    sizes = [chance.randint(1, 4) for _ in range(batch)] if batch else [chance.randint(1, 8)]
    weighted, edges, first = chance.random() < 0.5, {}, 0
    power = chance.choice([0, 0, 8])  # of two, the range of the weights
    for size in sizes:
        density = chance.random()
        for j in range(first, first + size):
            for i in range(first, j):
                if chance.random() < density:
                    weight = chance.randint(1, 24) / 8 * 2.0 ** chance.randint(-power, power)
                    edges[i, j] = (weight if chance.random() < 0.95 else 0.0) if weighted else 1.0
        first += size
    dtype, shape = chance.choices(DTYPES, (4, 5, 1, 1))[0], chance.choice(SHAPES)
    x = features(chance, first, chance.choice([1, 2, 3, 5]), dtype, shape)
    generator = torch.Generator().manual_seed(chance.getrandbits(32))
    return Case(
        first,
        edges,
        weighted,
        [k for k, size in enumerate(sizes) for _ in range(size)] if batch else None,
        chance.choice(LAYOUTS),
        shape,
        x,
        torch.randn(x.shape, generator=generator, dtype=torch.float64).to(dtype),
        temperature(chance, x, edges),
        chance.choice(["exact", "exact", "paper"]),
        chance.random() < 0.5,
        chance.choice(["paper", "propagation"]),
        chance.random() < 0.5,
    )


def features(
    chance: random.Random, nodes: int, width: int, dtype: torch.dtype, shape: str
) -> Tensor:
    """Return features of some size and shape."""
    low, high = SCALES[dtype]
    # Half of them in the range where networks live.
    scale = 10 ** (chance.uniform(low, high) if chance.random() < 0.5 else chance.uniform(-2, 2))
    generator = torch.Generator().manual_seed(chance.getrandbits(32))
    x = torch.randn(nodes, width, generator=generator, dtype=torch.float64)
    if shape == "collapsed":
        x = 1 + 10 ** chance.uniform(-4, -1) * x
    elif shape == "outlier" and nodes:
        x[chance.randrange(nodes)] *= 10 ** chance.uniform(0, 8)
    elif shape == "constant":
        x = x[:1].expand(nodes, width).clone()
    elif shape == "rows of all sizes":
        x *= torch.tensor([[10 ** chance.uniform(-3, 3)] for _ in range(nodes)])
    largest = 30.0 if dtype == torch.float16 else torch.finfo(dtype).max / 4
    return (scale * x).clamp(-largest, largest).to(dtype)


def temperature(chance: random.Random, x: Tensor, edges: Edges) -> float:
    """Return a temperature near the energies, or any."""
    z = x.double()
    energies = [a * float((z[i] - z[j]).square().sum()) for (i, j), a in edges.items()]
    near = max(energies, default=1.0) * 10 ** chance.uniform(-3, 2)
    anywhere = 10 ** chance.uniform(-6, 6)
    return min(max(near if chance.random() < 0.7 else anywhere, 1e-15), 1e15)


def graph_of(case: Case, chance: random.Random) -> eamp.Graph:
    """Hand a case to eamp in its layout, with self-loops and in any order."""
    entries = [(i, j, a) for (i, j), a in case.edges.items()]
    more: dict[str, Any] = {}
    if case.layout == "one way":
        more["symmetrize"] = True
    else:
        entries += [(j, i, a) for i, j, a in entries]
    if case.nodes and case.layout != "networkx":
        entries += [(i, i, 2.0 if case.weighted else 1.0) for i in range(0, case.nodes, 3)]
    if case.layout == "repeated":  # the weights of repeated edges are added up
        share = 0.5 if case.weighted else 1.0
        entries = [(i, j, share * a) for i, j, a in entries for _ in range(2)]
    chance.shuffle(entries)
    edge_index = torch.tensor([e[:2] for e in entries], dtype=torch.int64).reshape(-1, 2).t()
    weight = torch.tensor([e[2] for e in entries], dtype=torch.float64)
    if chance.random() < 0.5:
        weight = weight.float()
    size = (case.nodes, case.nodes)
    batch = None if case.batch is None else torch.tensor(case.batch)
    coo = torch.sparse_coo_tensor(edge_index, weight, size)
    given: Any = edge_index.contiguous()
    if case.layout == "NumPy":
        given = given.numpy()
    elif case.layout == "EdgeIndex":
        given = EdgeIndex(given, sparse_size=size)
    elif case.layout == "COO":
        return eamp.Graph(coo, batch=batch)
    elif case.layout == "CSR":
        return eamp.Graph(coo.to_sparse_csr(), batch=batch)
    elif case.layout == "CSC":
        return eamp.Graph(coo.to_sparse_csc(), batch=batch)
    elif case.layout == "SciPy":
        ends = edge_index.numpy()
        return eamp.Graph(sparse.coo_matrix((weight.numpy(), ends), size), batch=batch)
    elif case.layout == "networkx":
        graph = nx.Graph()
        graph.add_nodes_from(range(case.nodes))
        graph.add_weighted_edges_from((i, j, a) for (i, j), a in case.edges.items())
        return eamp.Graph(graph, batch=batch)
    if case.weighted:
        more["edge_weight"] = weight
    if case.layout == "Data":
        data = Data(edge_index=given, num_nodes=case.nodes, batch=batch, **more)
        return eamp.Graph(data)
    made = eamp.Graph(given, case.nodes, batch=batch, **more)
    return eamp.Graph(made) if case.layout == "Graph" else made
