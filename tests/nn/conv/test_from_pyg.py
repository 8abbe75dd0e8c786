from functools import partial

import pytest
import torch
from torch.nn import Module
from torch_geometric.nn import GAT, GATConv, GCNConv

import eamp
from eamp.graph import graph as graph_module
from eamp.nn.conv.from_pyg import FromPyG
from eamp.nn.models.registry import from_pyg
from problems import irregular_graph, random_graph


def test_a_graph_is_its_edge_list() -> None:
    conv, x, graph = FromPyG(GATConv(4, 3)), torch.randn(10, 4), irregular_graph()
    assert torch.equal(conv(x, graph), conv.conv(x, graph.edge_index))
    assert torch.equal(conv(x, graph.edge_index), conv.conv(x, graph.edge_index))


def test_is_recognised_as_one_layer() -> None:
    layer = eamp.wrap(FromPyG(GATConv(4, 3)), weight=1.0)
    assert isinstance(layer, eamp.EntropyAware)
    assert isinstance(layer.conv, FromPyG)


def test_pygs_model_computes_what_it_computes_in_pyg() -> None:
    graph, x = random_graph(12, 20), torch.randn(12, 4)
    torch.manual_seed(0)
    theirs = GAT(4, 8, 3, 5, heads=2)
    torch.manual_seed(0)
    ours = from_pyg(
        GAT, 4, 8, 5, 2, heads=2
    )  # two hidden layers and the output layer: three of PyG's
    torch.testing.assert_close(ours(x, graph), theirs(x, graph.edge_index))


def test_the_step_sees_the_weights_of_a_graph() -> None:
    torch.manual_seed(0)
    weighted, x = random_graph(12, 20, weighted=True), torch.randn(12, 4)
    bare = eamp.Graph(weighted.edge_index, 12)
    with_step, without = (
        from_pyg(GAT, 4, 8, 5, 2, entropy=entropy)
        for entropy in ({"weight": 1.0, "temperature": 1.0}, None)
    )
    assert not torch.equal(with_step(x, weighted), with_step(x, bare))
    assert torch.equal(without(x, weighted), without(x, bare))


@pytest.mark.parametrize("given", ["position", "name"])
@pytest.mark.parametrize(
    "wrapped",
    [lambda conv: eamp.EntropyAware(conv, 0.7, temperature=10.0), FromPyG],
    ids=["EntropyAware", "FromPyG"],
)
def test_weights_of_a_graph_reach_layers_that_take_them(wrapped: type[Module], given: str) -> None:
    weighted, x, conv = random_graph(12, 20, weighted=True), torch.randn(12, 4), GCNConv(4, 4)
    out = (
        wrapped(conv)(x, weighted) if given == "position" else wrapped(conv)(x, edge_index=weighted)
    )
    expected = conv(x, weighted.edge_index, weighted.edge_weight)
    if wrapped is not FromPyG:
        expected = expected + 0.7 * 10.0 * eamp.entropy_gradient(expected, weighted)
    torch.testing.assert_close(out, expected)


def test_rows_of_edges_beside_a_graph_are_refused() -> None:
    """The graph sorts its edges, so that they would belong to other ones."""
    graph, x = random_graph(12, 20), torch.randn(12, 4)
    rows = torch.rand(graph.edge_index.size(1))
    with_weight, with_attributes = GCNConv(4, 4), GATConv(4, 4, edge_dim=1)
    wrapped = partial(eamp.EntropyAware, weight=0.0)
    for call in (
        lambda: wrapped(with_weight)(x, graph, rows),
        lambda: wrapped(with_weight)(x, graph, edge_weight=rows),
        lambda: wrapped(with_attributes)(x, graph, rows),
        lambda: FromPyG(with_attributes)(x, graph, edge_attr=rows),
    ):
        with pytest.raises(ValueError, match=r"has a row per edge.*pass graph\.edge_index"):
            call()
    out = wrapped(with_weight)(x, graph.edge_index, rows)
    torch.testing.assert_close(out, with_weight(x, graph.edge_index, rows))
    wrapped(with_attributes)(x, graph, None)


@pytest.mark.parametrize("entropy", [None, {"weight": 1.0, "temperature": 1.0}])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_edges_of_a_graph_are_listed_once(
    monkeypatch: pytest.MonkeyPatch, entropy: dict[str, float] | None, weighted: bool
) -> None:
    listed: list[int] = []
    rows_of_entries = graph_module.rows_of_entries
    monkeypatch.setattr(
        graph_module, "rows_of_entries", lambda csr: listed.append(1) or rows_of_entries(csr)
    )
    graph, x = random_graph(12, 20, weighted=weighted), torch.randn(12, 4)
    model = from_pyg(GAT, 4, 8, 5, 2, entropy=entropy)
    for _ in range(3):
        model(x, graph).sum().backward()
    assert len(listed) == 1
