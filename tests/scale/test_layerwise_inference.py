"""Inference block by block gives the full batch, and no block holds more messages than allowed."""

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import BatchNorm1d, Linear, ReLU, Sequential
from torch_geometric import EdgeIndex
from torch_geometric.nn import (
    APPNP,
    GCN,
    ChebConv,
    DeepGCNLayer,
    EdgeCNN,
    EdgeConv,
    GATConv,
    GATv2Conv,
    GCN2Conv,
    GCNConv,
    GENConv,
    GINConv,
    GRUAggregation,
    MessagePassing,
    PNAConv,
    SAGEConv,
    TransformerConv,
)
from torch_geometric.utils import sort_edge_index

import eamp
from eamp.nn.models import MODELS
from eamp.scale.layerwise_inference import blocks
from problems import random_graph

GRAPH = random_graph(60, 200)  # some of 60 nodes are isolated, and some have a dozen neighbours
WEIGHTED = random_graph(60, 200, weighted=True)


class WithUpdate(MessagePassing):
    """A layer whose update reads the features of the nodes."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Any:
        return self.propagate(edge_index, x=x)

    def update(self, inputs: Tensor, x: Tensor) -> Tensor:
        return inputs + 2 * x


class OtherWay(MessagePassing):
    """Messages from the second row of ``edge_index`` to the first."""

    def __init__(self) -> None:
        super().__init__(aggr="max", flow="target_to_source")

    def forward(self, x: Tensor, edge_index: Tensor) -> Any:
        return self.propagate(edge_index, x=x)

    def message(self, x_i: Tensor, x_j: Tensor) -> Tensor:
        return x_i - 2 * x_j


LAYERS: dict[str, Any] = {
    "GCN": lambda: GCNConv(8, 8),
    "GraphSAGE": lambda: SAGEConv(8, 8),
    "GraphSAGE, three aggregations": lambda: SAGEConv(8, 8, aggr=["max", "softmax", "std"]),
    "GAT": lambda: GATConv(8, 4, heads=2),
    "GATv2": lambda: GATv2Conv(8, 4, heads=2),
    "GIN": lambda: GINConv(Sequential(Linear(8, 8), BatchNorm1d(8), ReLU(), Linear(8, 8))),
    "EdgeConv": lambda: EdgeConv(Linear(16, 8)),
    "GENConv": lambda: GENConv(8, 8, aggr="powermean", learn_p=True),
    "PNA": lambda: PNAConv(
        8,
        8,
        ["mean", "max", "std"],
        ["identity", "amplification"],
        deg=GRAPH.degree.long().bincount(),
    ),
    "Transformer": lambda: TransformerConv(8, 4, heads=2, beta=True),
    "three hops": lambda: ChebConv(8, 8, K=4),
    "ten hops": lambda: APPNP(10, 0.1),
    "an update of nodes": lambda: WithUpdate(),
    "the other way": lambda: OtherWay(),
}


def messages(model: torch.nn.Module) -> list[int]:
    """Return a list that gets the number of messages of every call to a layer of PyG."""
    counts: list[int] = []
    for module in model.modules():
        if isinstance(module, MessagePassing):
            module.register_message_forward_hook(
                lambda layer, given, out: counts.append(out.size(layer.node_dim))
            )
    return counts


@pytest.mark.parametrize("wrapped", [False, True], ids=["bare", "entropy-aware"])
@pytest.mark.parametrize("name", LAYERS)
def test_layers_of_pyg(name: str, wrapped: bool) -> None:
    x, model = torch.randn(60, 8), LAYERS[name]().eval()
    model = eamp.wrap(model, weight=2.0, temperature=1.0) if wrapped else model
    wanted = model(x, GRAPH.edge_index)
    counts = messages(model)
    found = eamp.inference(model, x, GRAPH.edge_index, edges_per_block=50)
    assert not found.requires_grad
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5)
    assert len(counts) > 4
    assert max(counts) <= 50


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    "entropy", [None, {"weight": 2.0, "temperature": 1.0}], ids=["bare", "entropy-aware"]
)
def test_models_of_ours(name: str, entropy: dict[str, Any] | None) -> None:
    x, model = torch.randn(60, 8), MODELS[name](8, 16, 3, 3, entropy=entropy, dropout=0.5)
    wanted = model.eval()(x, WEIGHTED)
    counts = messages(model)
    found = eamp.inference(model.train(), x, WEIGHTED, edges_per_block=50)
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5)
    assert max(counts, default=0) <= 50


GLOBAL: list[dict[str, Any]] = [
    {"normalize": True},
    {"scale_free": True, "energy": "propagation"},
    {"temperature": "auto"},
    {"weight": {"schedule": "feedback", "lowest": 0.0, "highest": 3.0}},
    {"weight": {"schedule": "gain", "of": 1.3}},
    {"weight": lambda energy, temperature: energy.mean() / temperature},
    {"placement": "input", "residual": True, "variant": "paper"},
]


@pytest.mark.parametrize("entropy", GLOBAL, ids=lambda options: ",".join(options))
def test_statistics_over_all_nodes_are_exact(entropy: dict[str, Any]) -> None:
    x = torch.randn(60, 8)
    model = eamp.wrap(GCN(8, 8, num_layers=3, norm="PairNorm"), **entropy).eval()
    torch.testing.assert_close(
        eamp.inference(model, x, GRAPH.edge_index, edges_per_block=37), model(x, GRAPH.edge_index)
    )


def test_weights_of_edges_and_a_second_input_are_cut_into_blocks() -> None:
    x, x_0, weight = torch.randn(60, 8), torch.randn(60, 8), WEIGHTED.edge_weight
    conv = GCN2Conv(8, alpha=0.3)
    wanted = conv(x, x_0, WEIGHTED.edge_index, edge_weight=weight)
    torch.testing.assert_close(
        eamp.inference(conv, x, x_0, WEIGHTED.edge_index, edge_weight=weight, edges_per_block=40),
        wanted,
    )


def test_as_many_edges_as_nodes() -> None:
    """Rows of nodes and rows of edges are told apart by name, not by number."""
    ring = torch.stack([torch.arange(60), torch.arange(1, 61) % 60])
    x, x_0, weight = torch.randn(60, 8), torch.randn(60, 8), torch.rand(60)
    conv = GCN2Conv(8, alpha=0.3, normalize=False)
    wanted = conv(x, x_0, ring, edge_weight=weight)
    torch.testing.assert_close(
        eamp.inference(conv, x, x_0, ring, edge_weight=weight, edges_per_block=7), wanted
    )
    again = WithUpdate()
    torch.testing.assert_close(eamp.inference(again, x, ring, edges_per_block=7), again(x, ring))


def test_two_sets_of_nodes() -> None:
    sources, targets = torch.randn(30, 8), torch.randn(20, 4)
    edge_index = torch.stack([torch.randint(30, (100,)), torch.randint(20, (100,))])
    for conv in (SAGEConv((8, 4), 5), GATConv((8, 4), 5, add_self_loops=False)):
        given = ((sources, targets), edge_index)
        torch.testing.assert_close(
            eamp.inference(conv, *given, edges_per_block=9), conv.eval()(*given)
        )
        given = ((sources, None), edge_index)
        torch.testing.assert_close(
            eamp.inference(conv, *given, size=(30, 20), edges_per_block=9),
            conv(*given, size=(30, 20)),
        )


def test_sparse_matrices_are_left_to_pyg() -> None:
    x, conv = torch.randn(60, 8), SAGEConv(8, 8)
    matrix = torch.sparse_coo_tensor(
        GRAPH.edge_index, torch.ones(GRAPH.edge_index.size(1)), (60, 60)
    ).to_sparse_csr()
    torch.testing.assert_close(
        eamp.inference(conv, x, matrix, edges_per_block=9), conv(x, GRAPH.edge_index)
    )


def test_an_edge_index_that_knows_its_order() -> None:
    x, edge_index = (
        torch.randn(60, 8),
        EdgeIndex(GRAPH.edge_index, sparse_size=(60, 60), sort_order="row", is_undirected=True),
    )
    for conv in (SAGEConv(8, 8), GATConv(8, 8)):
        counts, wanted = messages(conv), conv(x, GRAPH.edge_index)
        counts.clear()
        torch.testing.assert_close(eamp.inference(conv, x, edge_index, edges_per_block=50), wanted)
        assert max(counts) <= 50


class ByNumber(MessagePassing):
    """Messages that look up rows of nodes by number."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.propagate(edge_index, x=x, scale=torch.arange(x.size(0)).float())

    def message(self, x_j: Tensor, scale: Tensor, index: Tensor) -> Tensor:
        return x_j * scale[index].unsqueeze(1)


class ByPlace(ByNumber):
    """Messages that read numbers of nodes."""

    def message(self, x_j: Tensor, edge_index_i: Tensor) -> Tensor:
        return x_j * edge_index_i.unsqueeze(1)


class OfEdges(MessagePassing):
    """Messages without features of nodes; PyG reads the number of nodes off the edges."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.propagate(edge_index, weight=edge_index.sum(0).float().unsqueeze(1))

    def message(self, weight: Tensor) -> Tensor:
        return weight


@pytest.mark.parametrize(
    "layer", [ByNumber(), ByPlace(), OfEdges()], ids=lambda layer: type(layer).__name__
)
def test_messages_that_read_numbers_of_nodes(layer: MessagePassing) -> None:
    x = torch.randn(60, 4)
    torch.testing.assert_close(
        eamp.inference(layer, x, GRAPH.edge_index, edges_per_block=20), layer(x, GRAPH.edge_index)
    )


@pytest.mark.parametrize("norm", ["LayerNorm", "GraphNorm", "PairNorm", "BatchNorm", None])
def test_messages_through_a_norm(norm: str | None) -> None:
    torch.manual_seed(0)
    model, x = EdgeCNN(8, 16, num_layers=2, out_channels=4, norm=norm).eval(), torch.randn(60, 8)
    torch.testing.assert_close(
        eamp.inference(model, x, GRAPH.edge_index, edges_per_block=20), model(x, GRAPH.edge_index)
    )


@pytest.mark.parametrize("aggr", ["lstm", GRUAggregation(8, 8)])
def test_sequences_of_neighbours(aggr: Any) -> None:
    torch.manual_seed(0)
    layer, x = SAGEConv(8, 8, aggr=aggr).eval(), torch.randn(60, 8)
    edge_index = sort_edge_index(GRAPH.edge_index, sort_by_row=False)
    torch.testing.assert_close(
        eamp.inference(layer, x, edge_index, edges_per_block=20), layer(x, edge_index)
    )


def test_the_model_is_left_as_it_was() -> None:
    model = eamp.wrap(DeepGCNLayer(GATConv(8, 8), norm=BatchNorm1d(8), act=ReLU()))
    model.norm.eval()
    x = torch.randn(60, 8)

    def state() -> list[Any]:
        return [(sorted(vars(module)), module.training) for module in model.modules()]

    before = state()
    eamp.inference(model, x, GRAPH.edge_index, edges_per_block=9)
    assert state() == before
    with pytest.raises(RuntimeError, match="7 elements"):
        eamp.inference(model, x[:, :7], GRAPH.edge_index, edges_per_block=9)
    assert state() == before


def test_blocks_hold_at_least_an_edge() -> None:
    with pytest.raises(ValueError, match="at least 1, but is 0"):
        eamp.inference(GCNConv(8, 8), torch.randn(60, 8), GRAPH.edge_index, edges_per_block=0)


@given(receivers=st.lists(st.integers(0, 9), min_size=1, max_size=40), most=st.integers(1, 12))
def test_blocks_cover_all(receivers: list[int], most: int) -> None:
    receiver = torch.tensor(receivers)
    found = list(blocks(receiver, 12, most))
    assert [block.start for block in found] == [0, *(block.stop for block in found[:-1])]
    assert found[-1].stop == 12
    places = torch.cat([torch.arange(receiver.numel())[block.edges] for block in found])
    assert torch.equal(places, receiver.argsort(stable=True))
    for block in found:
        of_block = receiver[block.edges]
        assert ((of_block >= block.start) & (of_block < block.stop)).all()
        assert of_block.numel() <= most or block.stop - block.start == 1
