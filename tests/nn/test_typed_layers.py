"""The step of layers over several types of nodes, against the definition of the entropy."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import Module, ModuleList
from torch_geometric.nn import (
    GATConv,
    GCNConv,
    GraphConv,
    HANConv,
    HeteroConv,
    HGTConv,
    SAGEConv,
    to_hetero,
    to_hetero_with_bases,
)

import eamp
from eamp.graph import TypedGraph
from eamp.nn import collapse_threshold
from typed_problems import (
    CITED,
    CITES,
    READ,
    READS,
    RELATIONS,
    WRITES,
    WRITTEN,
    Typed,
    literal_entropy,
    literal_gradient,
    typed_graphs,
)

EDGES = {
    WRITES: torch.tensor([[0, 0, 1, 2], [0, 1, 1, 3]]),
    WRITTEN: torch.tensor([[0, 1, 1, 3], [0, 0, 1, 2]]),
    CITES: torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]),
}
METADATA = (["author", "paper"], list(EDGES))


class Fixed(Module):
    """A layer that returns its features, so that the step is the definition's."""

    def forward(self, x: dict[str, Tensor], edge_index: Any) -> dict[str, Tensor]:
        return {kind: 1.0 * each for kind, each in x.items()}


def features(seed: int = 0, author: int = 5, paper: int = 6) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return {
        "author": torch.randn(3, author, generator=generator),
        "paper": torch.randn(5, paper, generator=generator),
    }


def hetero(make: Callable[[], Module] = lambda: SAGEConv((-1, -1), 8), **options: Any) -> Any:
    torch.manual_seed(0)
    conv = HeteroConv({edge_type: make() for edge_type in EDGES}, **options)
    conv(features(), EDGES)  # lazy layers learn their widths
    return conv


class Network(Module):
    def __init__(self, layers: int = 3) -> None:
        super().__init__()
        self.convs = ModuleList(hetero() for _ in range(1))
        self.convs.extend(
            HeteroConv({edge_type: GraphConv((8, 8), 8) for edge_type in EDGES})
            for _ in range(layers - 1)
        )

    def forward(self, x: dict[str, Tensor], edge_index: Any) -> Tensor:
        for conv in self.convs:
            x = {kind: each.relu() for kind, each in conv(x, edge_index).items()}
        return x["paper"]


@given(
    typed_graphs(),
    st.floats(0.2, 5.0),
    st.floats(-2, 2).filter(bool),
    st.lists(st.floats(0, 3), min_size=3, max_size=3),
)
def test_the_step_is_that_of_the_definition(
    typed: Typed, temperature: float, weight: float, of_relations: list[float]
) -> None:
    weights = dict(zip(RELATIONS, of_relations, strict=True))
    layer = eamp.EntropyAware(Fixed(), weight, temperature, relations=weights)
    found = layer(typed.x, typed.edges)
    for kind, gradient in literal_gradient(typed, temperature, weights).items():
        expected = typed.x[kind] + weight * temperature * gradient
        assert torch.allclose(found[kind], expected, rtol=0, atol=1e-9)


@given(typed_graphs(width=2), st.floats(0.5, 2.0))
def test_derivatives_go_through_the_step(typed: Typed, temperature: float) -> None:
    """∂/∂x and ∂/∂T of ⟨v, step⟩, against autograd twice through the definition."""
    v = {kind: torch.randn_like(x) for kind, x in typed.x.items()}
    layer = eamp.EntropyAware(Fixed(), 0.7, temperature, learn_temperature=True).double()
    x = {kind: each.clone().requires_grad_() for kind, each in typed.x.items()}
    value = sum((v[kind] * each).sum() for kind, each in layer(x, typed.edges).items())
    found = torch.autograd.grad(value, [*x.values(), layer.log_temperature], allow_unused=True)

    y = {kind: each.clone().requires_grad_() for kind, each in typed.x.items()}
    log_t = layer.log_temperature.detach().clone().requires_grad_()  # type: ignore[union-attr]
    entropy = literal_entropy(typed._replace(x=y), log_t.exp())  # type: ignore[arg-type]
    given_value = sum((v[kind] * each).sum() for kind, each in y.items())
    if entropy.requires_grad:
        slopes = torch.autograd.grad(
            entropy, list(y.values()), create_graph=True, materialize_grads=True
        )
        moved = zip(v.values(), slopes, strict=True)
        given_value = given_value + 0.7 * log_t.exp() * sum((a * b).sum() for a, b in moved)
    expected = torch.autograd.grad(given_value, [*y.values(), log_t], allow_unused=True)
    for one, other in zip(found, expected, strict=True):
        assert (one is None) == (other is None)
        assert one is None or torch.allclose(one, other, rtol=0, atol=1e-9)


def test_normalised_entropies_of_relations_are_added_up() -> None:
    x = {kind: each.double() for kind, each in features(author=6).items()}
    layer = eamp.EntropyAware(Fixed(), 1.0, 2.0, normalize=True)
    y = {kind: each.clone().requires_grad_() for kind, each in x.items()}
    total = torch.zeros((), dtype=torch.float64)
    g = TypedGraph(EDGES, {"author": 3, "paper": 5})
    for relation in g.relations:
        total = total + eamp.entropy(g.rows(y, relation), g[relation], 2.0, normalize=True)
    slopes = torch.autograd.grad(total, list(y.values()))
    for found, at, slope in zip(layer(x, EDGES).values(), x.values(), slopes, strict=True):
        assert torch.allclose(found, at + 2.0 * slope, rtol=0, atol=1e-9)


def test_the_default_weight_is_twice_the_threshold_of_every_relation() -> None:
    x = {kind: each.double() for kind, each in features(author=6).items()}
    g = TypedGraph(EDGES, {"author": 3, "paper": 5})
    expected = dict(x)
    for relation in g.relations:
        weight = 2 * float(collapse_threshold(g[relation], 6))
        step = weight * eamp.entropy_gradient(g.rows(x, relation), g[relation], 1.0)
        alone = TypedGraph(EDGES, g.num_nodes, relations=[relation]).unstack(step)
        expected |= {kind: expected[kind] + each for kind, each in alone.items()}
    for kind, found in eamp.EntropyAware(Fixed())(x, EDGES).items():
        assert torch.allclose(found, expected[kind], rtol=0, atol=1e-9)


def test_an_automatic_temperature_is_the_mean_over_all_relations() -> None:
    x = features(author=6)
    layer = eamp.EntropyAware(Fixed(), 1.0, "auto")
    layer(x, EDGES)
    g = TypedGraph(EDGES, {"author": 3, "paper": 5})
    mean = eamp.dirichlet_energy(g.stack(x), g.graph).mean()
    assert float(layer.calibrated) == pytest.approx(float(mean), rel=1e-6)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "make",
    [lambda: SAGEConv((-1, -1), 8), lambda: GATConv((-1, -1), 4, 2, add_self_loops=False)],
)
def test_weight_zero_is_the_layer_itself_bit_for_bit(make: Callable[[], Module]) -> None:
    conv = hetero(make)
    bare, wrapped = conv(features(), EDGES), eamp.EntropyAware(conv, 0.0)(features(), EDGES)
    assert bare.keys() == wrapped.keys()
    assert all(torch.equal(bare[kind], wrapped[kind]) for kind in bare)


def test_one_type_gives_what_the_homogeneous_layer_gives() -> None:
    conv, x = GCNConv(6, 6), features()["paper"]
    alone = eamp.EntropyAware(conv, 0.5, 2.0)(x, EDGES[CITES])
    typed = eamp.EntropyAware(HeteroConv({CITES: conv}), 0.5, 2.0)
    assert torch.equal(typed({"paper": x}, {CITES: EDGES[CITES]})["paper"], alone)


@pytest.mark.parametrize("kind", [HGTConv, HANConv])
def test_layers_that_take_dictionaries_themselves(kind: Any) -> None:
    torch.manual_seed(0)
    conv = kind({"author": 5, "paper": 6}, 8, METADATA, heads=2).eval()
    bare = conv(features(), EDGES)
    wrapped = eamp.wrap(conv, weight=1.0, temperature=1.0)
    g = TypedGraph(EDGES, {"author": 3, "paper": 5})
    steps = g.unstack(eamp.entropy_gradient(g.stack(bare), g.graph, 1.0))
    for name, found in wrapped(features(), EDGES).items():
        assert torch.allclose(found, bare[name] + steps[name], atol=1e-6)


def test_wrap_takes_a_heteroconv_for_one_layer_and_numbers_it() -> None:
    model = eamp.wrap(Network(), weight=0.1, temperature=1.0)
    layers = [module for module in model.modules() if isinstance(module, eamp.EntropyAware)]
    assert [layer.position for layer in layers] == [(1, 3), (2, 3), (3, 3)]
    assert all(isinstance(layer.conv, HeteroConv) for layer in layers)
    eamp.wrap(model, weight=0.1, temperature=1.0)
    assert model(features(), EDGES).shape == (5, 8)
    bare = eamp.unwrap(model)
    assert not any(isinstance(module, eamp.EntropyAware) for module in bare.modules())
    inner = eamp.wrap(Network(1), only=["convs.0.convs.<paper___cites___paper>"], weight=0.1)
    layers = [module for module in inner.modules() if isinstance(module, eamp.EntropyAware)]
    assert [type(layer.conv) for layer in layers] == [SAGEConv]
    assert inner(features(), EDGES).shape == (5, 8)
    skipped = eamp.wrap(Network(), skip="last", weight=0.1)
    assert isinstance(skipped.convs[2], HeteroConv)  # type: ignore[index]


def test_a_training_step_changes_every_parameter() -> None:
    torch.manual_seed(0)
    model = eamp.wrap(Network(), weight=0.1, learn_weight=True, temperature=1.0)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    target = torch.arange(5) % 3
    losses = []
    for _ in range(30):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(features(), EDGES)[:, :3], target)
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < losses[0]
    assert float(model.convs[0].weight.detach()) != pytest.approx(0.1)  # type: ignore[index, union-attr]


def test_relations_without_edges_or_left_out_add_nothing() -> None:
    conv = hetero()
    layer = eamp.EntropyAware(conv, 1.0, 1.0)
    empty = EDGES | {CITES: EDGES[CITES][:, :0]}
    chosen = eamp.EntropyAware(conv, 1.0, 1.0, relations=[WRITES])
    for kind, found in layer(features(), empty).items():
        assert torch.equal(found, chosen(features(), empty)[kind])
    nothing = {edge_type: index[:, :0] for edge_type, index in EDGES.items()}
    bare = conv(features(), nothing)
    assert all(torch.equal(bare[k], each) for k, each in layer(features(), nothing).items())
    # An edge type that the layer has no convolution for is none of its relations.
    more = EDGES | {READS: EDGES[WRITES], READ: EDGES[WRITTEN]}
    for kind, found in layer(features(), more).items():
        assert torch.equal(found, layer(features(), EDGES)[kind])


def test_layers_without_a_shared_space_are_refused_before_they_run() -> None:
    widths = {WRITES: 8, WRITTEN: 4, CITES: 8}
    conv = HeteroConv({e: SAGEConv((-1, -1), width) for e, width in widths.items()})
    with pytest.raises(eamp.GraphError, match=r"4 features of 'author' and 8 features of 'paper'"):
        eamp.wrap(conv)
    assert eamp.wrap(conv, relations=[CITES])(features(), EDGES)["paper"].shape == (5, 8)
    heads = HeteroConv(
        {e: GATConv((-1, -1), 8, 2, concat=e != WRITTEN, add_self_loops=False) for e in EDGES}
    )
    with pytest.raises(eamp.GraphError, match=r"8 features of 'author' and 16 features of 'paper'"):
        eamp.wrap(heads)
    with pytest.raises(eamp.GraphError, match=r"8 features of 'author' and 16 features of 'paper'"):
        eamp.wrap(hetero(aggr="cat"))
    with pytest.raises(ValueError, match="aggr='sum' or 'mean'"):
        eamp.wrap(hetero(aggr=None))
    with pytest.warns(UserWarning, match="do not get updated"):
        one_way = HeteroConv({WRITES: SAGEConv((-1, -1), 8)})
    with pytest.raises(ValueError, match=r"no embedding of 'author'.*ToUndirected"):
        eamp.wrap(one_way)
    with pytest.raises(eamp.GraphError, match="no relation 'author reads paper'"):
        eamp.wrap(hetero(), relations=[READS])
    for options in ({"placement": "input"}, {"residual": True}):
        with pytest.raises(ValueError, match="takes the step at its output"):
            eamp.wrap(hetero(), **options)  # type: ignore[arg-type]
    apart = {CITES: 8, ("user", "likes", "user"): 4}
    with pytest.raises(ValueError, match=r"share one width.*'user likes user' 4"):
        eamp.wrap(HeteroConv({e: GCNConv(-1, w, add_self_loops=False) for e, w in apart.items()}))


def test_widths_that_are_unknown_before_are_checked_when_the_layer_runs() -> None:
    class Wide(Module):
        def forward(self, x: dict[str, Tensor], edge_index: Any) -> dict[str, Tensor]:
            return x

    with pytest.raises(eamp.GraphError, match="5 features of 'author' and 6 features of 'paper'"):
        eamp.EntropyAware(Wide(), 1.0)(features(), EDGES)
    layer = eamp.EntropyAware(Fixed(), 1.0)
    layer.conv.register_forward_hook(lambda *_: torch.zeros(1))
    with pytest.raises(TypeError, match="returns a dictionary"):
        layer(features(), EDGES)
    with pytest.raises(TypeError, match=r"data\.edge_index_dict"):
        eamp.EntropyAware(Fixed(), 1.0)(features(author=6), EDGES[CITES])


def test_models_of_to_hetero_and_bipartite_layers_are_refused_with_the_way_out() -> None:
    class Two(Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = SAGEConv((-1, -1), 8)

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return self.conv(x, edge_index).relu()

    with pytest.raises(TypeError, match=r"to_hetero.*HeteroConv"):
        eamp.wrap(to_hetero(Two(), METADATA))
    with pytest.raises(TypeError, match=r"to_hetero_with_bases.*HeteroConv"):
        eamp.wrap(to_hetero_with_bases(Two(), METADATA, num_bases=2))
    with pytest.raises(TypeError, match=r"between two types of nodes.*HeteroConv"):
        eamp.wrap(ModuleList([SAGEConv((5, 6), 8)]))
    with pytest.raises(TypeError, match=r"between two types of nodes, with 5 and 6 features"):
        eamp.EntropyAware(SAGEConv((5, 6), 8))
    both = ModuleList([SAGEConv((5, 6), 8), GCNConv(8, 8)])
    assert isinstance(eamp.wrap(both, skip=SAGEConv)[0], SAGEConv)  # type: ignore[index]
    x = features()
    with pytest.raises(TypeError, match="HeteroConv"):
        eamp.wrap(SAGEConv((-1, -1), 8), weight=1.0)((x["author"], x["paper"]), EDGES[WRITES])


def test_of_the_layers_inside_a_hetero_conv_only_those_of_one_type_are_wrapped() -> None:
    with pytest.raises(TypeError, match=r"two types of nodes, 'author' and 'paper'.*wrap that"):
        eamp.wrap(hetero(), only=SAGEConv)
    layers = {e: SAGEConv((-1, -1), 8) for e in (WRITES, WRITTEN)}
    model = eamp.wrap(HeteroConv({**layers, CITES: GCNConv(-1, 8)}), only=GCNConv, weight=1.0)
    assert model(features(), EDGES)["paper"].shape == (5, 8)


def test_a_model_that_is_refused_stays_as_it_is() -> None:
    model = ModuleList([hetero(), hetero(aggr=None)])
    with pytest.raises(ValueError, match="one embedding per node"):
        eamp.wrap(model)
    assert not any(isinstance(module, eamp.EntropyAware) for module in model.modules())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")  # torch.compile, of itself
def test_a_compiled_model_gives_the_same() -> None:
    model = eamp.wrap(Network(), weight=0.1, temperature=1.0)
    compiled = torch.compile(model, backend="eager")
    assert torch.allclose(compiled(features(), EDGES), model(features(), EDGES))


def test_a_directed_relation_of_one_type_needs_symmetrize() -> None:
    one_way = EDGES | {CITES: EDGES[CITES][:, :1]}
    with pytest.raises(eamp.GraphError, match="'paper cites paper': the graph is directed"):
        eamp.wrap(hetero(), weight=1.0)(features(), one_way)
    layer = eamp.wrap(hetero(), weight=1.0, symmetrize=True)
    assert layer(features(), one_way)["paper"].shape == (5, 8)
    assert CITED not in one_way
