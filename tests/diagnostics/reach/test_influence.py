from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import Linear, Module
from torch_geometric.data import Data
from torch_geometric.nn import APPNP, GAT, GCN, GIN, GCNConv, GraphSAGE, PairNorm
from torch_geometric.utils import erdos_renyi_graph

import eamp
from eamp.diagnostics import Influence, influence
from eamp.diagnostics.reach.receptive_field import distances_to, edges_of, neighbourhood
from problems import undirected

SIZE, WIDTH = 60, 3


def sparse_graph(seed: int = 0) -> Tensor:
    """A long ring with some chords and an isolated node, so that few steps see little of it."""
    generator = torch.Generator().manual_seed(seed)
    ring = [(k, (k + 1) % (SIZE - 1)) for k in range(SIZE - 1)]
    chords = torch.randint(SIZE - 1, (8, 2), generator=generator).tolist()
    return undirected(*ring, *((a, b) for a, b in chords if a != b))


def features() -> Tensor:
    x = torch.randn(SIZE, WIDTH, generator=torch.Generator().manual_seed(1))
    return x.double()


def dense(model: Module, x: Tensor, edge_index: Tensor) -> Tensor:
    """Σ |∂f_v/∂x_u| of all pairs, from the whole Jacobian."""
    jacobian = torch.autograd.functional.jacobian(lambda x: model(x, edge_index), x)
    return jacobian.abs().sum((1, 3))


def by_definition(model: Module, x: Tensor, edge_index: Tensor) -> tuple[np.ndarray, float]:
    """The mean I_k and the range R, literally."""
    pairs, edges = dense(model, x, edge_index), edges_of(edge_index, len(x))
    rows = []
    for node in range(len(x)):
        distance = torch.from_numpy(distances_to(node, edges))
        rows.append([float(pairs[node][distance == k].sum()) for k in range(SIZE)])
    values = np.array(rows)
    seeing = values[values.sum(1) > 0]
    shares = seeing / seeing.sum(1, keepdims=True)
    return values.mean(0), float((shares @ np.arange(SIZE)).mean())


class Mean(Module):
    """A layer, and the mean of all nodes: a virtual node."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = GCNConv(WIDTH, WIDTH)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.conv(x, edge_index) + x.mean(0)


class Normed(Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = GCNConv(WIDTH, WIDTH), PairNorm()

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.norm(self.conv(x, edge_index))


class Propagated(Module):
    """One layer that sees five steps."""

    def __init__(self) -> None:
        super().__init__()
        self.lin, self.propagate = Linear(WIDTH, 2), APPNP(5, 0.1)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.propagate(self.lin(x), edge_index)


MODELS: dict[str, Callable[[], Module]] = {
    "GCN": lambda: GCN(WIDTH, 4, 2, 2),
    "GAT": lambda: GAT(WIDTH, 4, 3, 2),
    "SAGE": lambda: GraphSAGE(WIDTH, 4, 3, 2),
    "GIN": lambda: GIN(WIDTH, 4, 1, 2),
    "entropic": lambda: eamp.wrap(GCN(WIDTH, 4, 2, 2), temperature=1.0, detach=False),
    "eamp": lambda: eamp.nn.GCN(WIDTH, 4, 2, 3),
    "APPNP": Propagated,
    "deep": lambda: GCN(WIDTH, 4, 12, 2),
    "virtual node": Mean,
    "pair norm": Normed,
}


@pytest.mark.parametrize("name", MODELS)
def test_all_nodes_and_channels_give_the_definition(name: str) -> None:
    torch.manual_seed(0)
    model, x, edge_index = MODELS[name]().double().eval(), features(), sparse_graph()
    found = influence(model, (x, edge_index), nodes=SIZE)
    expected, mean_distance = by_definition(model, x, edge_index)
    assert found.exact
    assert found.by_distance == pytest.approx(expected[: len(found.by_distance)], rel=1e-9)
    assert expected[len(found.by_distance) :].sum() == 0
    unseen = dense(model, x, edge_index).sum().item() / SIZE - expected.sum()
    assert (found.unreachable > 0) == (unseen > 1e-12)
    if found.unreachable == 0:
        assert found.range == pytest.approx(mean_distance, rel=1e-9)
    assert found.shares.sum() == pytest.approx(1)


def test_a_data_object_brings_its_weights_and_keeps_its_edges() -> None:
    torch.manual_seed(0)
    x, edge_index = features(), sparse_graph()
    weight = torch.rand(edge_index.size(1), dtype=torch.float64) + 0.5
    data = Data(x=x, edge_index=edge_index, edge_weight=weight, y=torch.zeros(SIZE))
    model = GCN(WIDTH, 4, 2, 2).double().eval()
    found = influence(model, data, nodes=[3, 30])
    jacobian = torch.autograd.functional.jacobian(lambda x: model(x, edge_index, weight)[30], x)
    pairs = jacobian.abs().sum((0, 2))
    mine = found.table[found.table["node"] == 30]["influence"].sum()
    assert mine == pytest.approx(float(pairs.sum()), rel=1e-9)
    assert data.x is x
    assert not x.requires_grad
    assert data.edge_index is edge_index


def test_distances_follow_the_direction_of_messages() -> None:
    chain = torch.tensor([[0, 1, 2], [1, 2, 3]])
    assert distances_to(3, edges_of(chain, 4)).tolist() == [3, 2, 1, 0]
    assert distances_to(0, edges_of(chain, 4)).tolist() == [0, -1, -1, -1]
    assert distances_to(3, edges_of(chain, 4), limit=1).tolist() == [-1, -1, 1, 0]


@pytest.mark.parametrize("outer", ["none", "in", "both"])
def test_a_neighbourhood_keeps_degrees_with_few_nodes(outer: str) -> None:
    edge_index = erdos_renyi_graph(200, 0.1)
    edges = edges_of(edge_index, 200)
    part = neighbourhood(7, edges, 1, outer)
    inside = part.distance >= 0
    assert set(part.nodes[inside]) == {7, *edge_index[0][edge_index[1] == 7].tolist()}
    assert len(np.unique(part.ends, axis=1).T) == len(part.ends.T), "no edge is there twice"
    degree = np.bincount(part.ends[1], minlength=part.nodes.size)[inside]
    whole = torch.bincount(edge_index[1], minlength=200)[part.nodes[inside]].numpy()
    assert (degree == whole).all() == (outer != "none")
    assert (~inside).sum() <= whole.max()
    if outer == "both":
        eamp.Graph(torch.from_numpy(part.ends))  # undirected, or it would be an error


def test_random_sums_estimate_the_same_without_bias() -> None:
    torch.manual_seed(0)
    x, edge_index = features(), sparse_graph()
    model = GCN(WIDTH, 8, 2, 24).double().eval()
    exact = influence(model, (x, edge_index), nodes=20, projections=None)
    nodes = exact.table["node"].unique()
    many = [
        influence(model, (x, edge_index), nodes=nodes, projections=4, seed=seed)
        for seed in range(20)
    ]
    assert exact.exact
    assert not any(estimate.exact for estimate in many)
    assert np.mean([m.by_distance for m in many], 0) == pytest.approx(exact.by_distance, rel=0.2)
    assert np.mean([m.range for m in many]) == pytest.approx(exact.range, rel=0.05)


def test_a_model_that_sees_nothing_has_no_range() -> None:
    model = GCN(WIDTH, 4, 2, 2)
    for parameter in model.parameters():
        torch.nn.init.zeros_(parameter)
    found = influence(model, (features().float(), sparse_graph()), nodes=5)
    assert np.isnan(found.range)
    assert "gradients are zero" in str(found)


def test_the_result_says_and_shows_how_far() -> None:
    torch.manual_seed(0)
    model = GCN(WIDTH, 4, 2, 2)
    training = model.training
    found = influence(model, (features().float(), sparse_graph()), nodes=10)
    assert isinstance(found, Influence)
    assert model.training == training
    assert all(parameter.grad is None for parameter in model.parameters())
    assert "steps away on average" in str(found)
    assert "mean over 10 nodes" in found._repr_html_()
    assert repr(found).startswith("Influence(range=")
    spec = found.plot().to_dict()
    bars = spec["datasets"][spec["layer"][0]["data"]["name"]]
    assert [row["distance"] for row in bars] == [0, 1, 2]


def test_mistakes_are_answered_with_a_sentence() -> None:
    model, x, edge_index = GCN(WIDTH, 4, 2, 2), features().float(), sparse_graph()
    with pytest.raises(ValueError, match="at least 3"):
        influence(model, (x, edge_index), projections=2)
    with pytest.raises(ValueError, match="from 0 to 59"):
        influence(model, (x, edge_index), nodes=[60])
    with pytest.raises(eamp.GraphError, match="dense float"):
        influence(model, (x.long(), edge_index))
    with pytest.raises(ValueError, match="one output row per node"):
        influence(model, (x, edge_index), run=lambda model, data: model(*data).mean(0))


def test_gradients_that_are_not_finite_are_told() -> None:
    conv = GCNConv(2, 2)
    torch.nn.init.constant_(conv.lin.weight, float("nan"))
    data = Data(x=torch.ones(3, 2), edge_index=undirected((0, 1), (1, 2)))
    with pytest.raises(ValueError, match="gradients of node 0's output are not finite"):
        influence(conv, data)


@pytest.mark.parametrize("nodes", [0, -1])
def test_a_number_of_nodes_below_1_is_refused(nodes: int) -> None:
    data = Data(x=torch.ones(3, 2), edge_index=undirected((0, 1), (1, 2)))
    with pytest.raises(ValueError, match=f"nodes must be at least 1.*but is {nodes}"):
        influence(GCNConv(2, 2), data, nodes=nodes)
