"""A typed graph against the definition of its energies, node by node."""

import copy

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data, HeteroData
from torch_geometric.transforms import ToUndirected

import eamp
from eamp.graph.relations import merge_directions
from eamp.graph.typed_graph_cache import typed_graph_for
from typed_problems import (
    CITED,
    CITES,
    READS,
    RELATIONS,
    WRITES,
    WRITTEN,
    Typed,
    literal_energies,
    literal_entropy,
    literal_gradient,
    typed_graphs,
)

FORTH = torch.tensor([[0, 0, 1], [0, 1, 1]])


def sizes(typed: Typed) -> dict[str, int]:
    return {kind: len(x) for kind, x in typed.x.items()}


@given(typed_graphs())
def test_energies_of_every_relation_are_those_of_the_definition(typed: Typed) -> None:
    g = eamp.TypedGraph(typed.edges, sizes(typed))
    assert g.relations == RELATIONS
    for relation in RELATIONS:
        found = eamp.dirichlet_energy(g.rows(typed.x, relation), g[relation])
        first = {relation[0]: 0, relation[2]: 0 if relation == CITES else len(typed.x["author"])}
        expected = torch.zeros_like(found)
        for (kind, i), energy in literal_energies(typed.x, relation, typed.pairs[relation]).items():
            expected[first[kind] + i] = energy
        assert torch.allclose(found, expected, rtol=0, atol=1e-9)


@given(typed_graphs(), st.floats(0.2, 5.0), st.lists(st.floats(0, 3), min_size=3, max_size=3))
def test_entropy_and_gradient_are_those_of_the_definition(
    typed: Typed, temperature: float, weights: list[float]
) -> None:
    by_relation = dict(zip(RELATIONS, weights, strict=True))
    g = eamp.TypedGraph(typed.edges, sizes(typed), relations=by_relation)
    whole = eamp.entropy(g.stack(typed.x), g.graph, temperature)
    assert abs(float(whole - literal_entropy(typed, temperature))) < 1e-9
    found = g.unstack(eamp.entropy_gradient(g.stack(typed.x), g.graph, temperature))
    for kind, expected in literal_gradient(typed, temperature, by_relation).items():
        assert torch.allclose(found[kind], expected, rtol=0, atol=1e-9)


@given(typed_graphs())
def test_a_direction_less_is_the_same_graph(typed: Typed) -> None:
    one_way = {relation: typed.edges[relation] for relation in (WRITES, READS)}
    g, both = eamp.TypedGraph(one_way, sizes(typed)), eamp.TypedGraph(typed.edges, sizes(typed))
    for relation in one_way:
        assert torch.equal(g[relation].edge_index, both[relation].edge_index)


def test_a_directed_relation_of_one_type_needs_symmetrize() -> None:
    edges = {CITES: torch.tensor([[0], [1]])}
    with pytest.raises(eamp.GraphError, match=r"relation 'paper cites paper': .*symmetrize=True"):
        eamp.TypedGraph(edges, {"paper": 2})
    assert eamp.TypedGraph(edges, {"paper": 2}, symmetrize=True).graph.num_edges == 1
    both = edges | {CITED: torch.tensor([[1], [0]])}
    assert eamp.TypedGraph(both, {"paper": 2}).graph.num_edges == 1


def test_heterodata_brings_sizes_and_weights_and_isolated_nodes() -> None:
    data = HeteroData()
    data["author"].x, data["paper"].num_nodes = torch.zeros(2, 3), 4
    data[WRITES].edge_index = FORTH
    data[WRITES].edge_weight = torch.tensor([1.0, 2.0, 3.0])
    g = eamp.TypedGraph(data)
    assert g[WRITES].num_nodes == 6
    assert g[WRITES].degree.tolist() == [3.0, 3.0, 1.0, 5.0, 0.0, 0.0]
    # PyG's own reverse carries the same weights, whose mean they are.
    undirected = eamp.TypedGraph(ToUndirected()(copy.copy(data)))
    assert undirected.relations == (WRITES,)
    assert torch.equal(undirected.graph.degree, g.graph.degree)


def test_weights_of_two_directions_are_averaged() -> None:
    edges = {WRITES: FORTH, WRITTEN: FORTH.flip(0)}
    weights = {WRITES: torch.tensor([1.0, 2.0, 3.0]), WRITTEN: torch.tensor([3.0, 2.0, 5.0])}
    g = eamp.TypedGraph(edges, {"author": 2, "paper": 2}, edge_weight=weights)
    assert g[WRITES].degree.tolist() == [4.0, 4.0, 2.0, 6.0]


def test_one_type_is_the_homogeneous_graph() -> None:
    edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    x = torch.randn(4, 3, dtype=torch.float64)
    data = HeteroData({"paper": {"x": x}})
    data[CITES].edge_index = edge_index
    g = eamp.TypedGraph(data)
    plain = eamp.entropy_gradient(x, Data(x=x, edge_index=edge_index), 2.0)
    found = g.unstack(eamp.entropy_gradient(g.stack({"paper": x}), g.graph, 2.0))
    assert torch.equal(found["paper"], plain)


@given(typed_graphs(), st.integers(0, 1000))
def test_numbering_nodes_of_a_type_otherwise_changes_nothing_else(typed: Typed, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    order = {kind: torch.randperm(len(x), generator=generator) for kind, x in typed.x.items()}
    x = {kind: each[order[kind]] for kind, each in typed.x.items()}
    place = {kind: each.argsort() for kind, each in order.items()}
    edges = {
        e: torch.stack([place[e[0]][index[0]], place[e[2]][index[1]]])
        for e, index in typed.edges.items()
    }
    g, other = eamp.TypedGraph(typed.edges, sizes(typed)), eamp.TypedGraph(edges, sizes(typed))
    found = other.unstack(eamp.entropy_gradient(other.stack(x), other.graph, 1.5))
    expected = g.unstack(eamp.entropy_gradient(g.stack(typed.x), g.graph, 1.5))
    for kind in x:
        assert torch.allclose(found[kind], expected[kind][order[kind]], rtol=0, atol=1e-12)


def test_directions_are_merged_by_name_or_where_there_is_no_choice() -> None:
    assert merge_directions([WRITTEN, WRITES]) == {WRITES: (WRITES, WRITTEN)}
    to = [("movie", "to", "actor"), ("actor", "to", "movie"), ("movie", "to", "director")]
    assert list(merge_directions(to)) == [to[0], to[2]]
    # With two relations between the types, names decide, and an unknown name stands alone.
    by = ("paper", "by", "author")
    assert merge_directions([WRITES, READS, by, WRITTEN]) == {
        WRITES: (WRITES, WRITTEN),
        READS: (READS,),
        by: (by,),
    }
    other = ("paper", "like", "paper")
    assert list(merge_directions([CITES, other, CITED])) == [CITES, other]


def test_relations_are_chosen_and_weighed() -> None:
    edges = {WRITES: FORTH, WRITTEN: FORTH.flip(0), READS: FORTH[:, :1]}
    nodes = {"author": 2, "paper": 2}
    assert eamp.TypedGraph(edges, nodes, relations=[WRITTEN]).relations == (WRITES,)
    g = eamp.TypedGraph(edges, nodes, relations={READS: 0.5})
    assert g.relation_weights == {READS: 0.5}
    assert "author reads paper" in repr(g)
    with pytest.raises(eamp.GraphError, match="no relation 'paper cites paper'; there are"):
        eamp.TypedGraph(edges, nodes, relations=[CITES])
    with pytest.raises(eamp.GraphError, match="name one of them"):
        eamp.TypedGraph(edges, nodes, relations=[WRITES, WRITTEN])
    for wrong in ("cites", [("paper", "cites")], {WRITES: -1.0}, {WRITES: "much"}, []):
        with pytest.raises(ValueError, match="relation"):
            eamp.TypedGraph(edges, nodes, relations=wrong)  # type: ignore[arg-type]


def test_mistakes_are_named_with_their_relation() -> None:
    nodes = {"author": 2, "paper": 2}
    with pytest.raises(eamp.GraphError, match=r"'author writes paper'.*node 2 of 'author'"):
        eamp.TypedGraph({WRITES: FORTH + torch.tensor([[1], [0]])}, nodes)
    with pytest.raises(eamp.GraphError, match="number of nodes of 'paper' is unknown"):
        eamp.TypedGraph({WRITES: FORTH}, {"author": 2})
    with pytest.raises(eamp.GraphError, match=r"an edge_index .* got torch.sparse_coo"):
        eamp.TypedGraph({WRITES: torch.eye(2).to_sparse()}, nodes)
    with pytest.raises(eamp.GraphError, match="at least one relation"):
        eamp.TypedGraph({}, nodes)
    with pytest.raises(eamp.GraphError, match="HeteroData"):
        eamp.TypedGraph(FORTH)
    g = eamp.TypedGraph({WRITES: FORTH}, nodes)
    with pytest.raises(eamp.GraphError, match="there is no relation"):
        _ = g[CITES]
    with pytest.raises(eamp.GraphError, match="3 features of 'author' and 4 features of 'paper'"):
        g.stack({"author": torch.zeros(2, 3), "paper": torch.zeros(2, 4)})
    with pytest.raises(eamp.GraphError, match="no features of 'paper'"):
        g.stack({"author": torch.zeros(2, 3)})
    with pytest.raises(eamp.GraphError, match="'paper' has 5 rows of features but 2 nodes"):
        g.stack({"author": torch.zeros(2, 3), "paper": torch.zeros(5, 3)})
    weight = torch.ones(3, requires_grad=True)
    with pytest.raises(eamp.GraphError, match="require a gradient"):
        eamp.TypedGraph({WRITES: FORTH}, nodes, edge_weight={WRITES: weight})


def test_a_dictionary_is_converted_once_and_again_when_a_tensor_changes() -> None:
    x = {"author": torch.zeros(2, 3), "paper": torch.zeros(2, 3)}
    edges = {WRITES: FORTH.clone(), CITES: torch.tensor([[0, 1], [1, 0]])}
    first = typed_graph_for(x, edges)
    assert typed_graph_for(x, dict(edges)) is first
    assert typed_graph_for(x, edges, relations=[CITES]) is not first
    assert typed_graph_for(x, edges) is first
    edges[CITES].zero_()  # in place: two self-loops, which are no edges
    changed = typed_graph_for(x, edges)
    assert changed is not None
    assert changed.graph.num_edges == 3
    assert typed_graph_for(x, {WRITES: FORTH[:, :0]}) is None


def test_weights_of_one_direction_are_those_of_the_relation() -> None:
    writes, written = ("a", "writes", "p"), ("p", "rev_writes", "a")
    edges = torch.tensor([[0, 1], [0, 1]])
    both = {writes: edges, written: edges.flip(0)}
    weight = {writes: torch.tensor([5.0, 7.0])}
    one, two = (
        eamp.TypedGraph(given, {"a": 2, "p": 2}, edge_weight=weight)[writes]
        for given in ({writes: edges}, both)
    )
    assert one.edge_weight is not None
    assert two.edge_weight is not None
    assert torch.equal(one.edge_weight, two.edge_weight)
    assert set(two.edge_weight.tolist()) == {5.0, 7.0}


def test_weights_of_an_unknown_edge_type_are_refused() -> None:
    edges = {("a", "writes", "p"): torch.tensor([[0, 1], [0, 1]])}
    with pytest.raises(eamp.GraphError, match=r"'write', 'p'.*has no edge_index; there are"):
        eamp.TypedGraph(edges, {"a": 2, "p": 2}, edge_weight={("a", "write", "p"): torch.ones(2)})
    with pytest.raises(eamp.GraphError, match="number of nodes of 'p' is unknown"):
        eamp.TypedGraph(edges, {"a": 2, "p": None})  # PyG's num_nodes_dict, without features
