"""A graph has the same result alone and in any batch, with every option of the step."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import Linear, Module
from torch.utils.checkpoint import checkpoint
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GCN, DirGNNConv, GCNConv, GraphUNet, global_mean_pool
from torch_geometric.utils import add_self_loops

import eamp
from eamp.graph import GraphError
from eamp.graph.batches import in_a_call, set_batch
from eamp.graph.edge_index_cache import BatchWarning, as_graph
from eamp.nn import Cap, Feedback, Gain, Hops
from eamp.nn.step import known_thresholds, threshold
from eamp.ops import reference
from problems import undirected

WIDTH = 4
OPTIONS: dict[str, dict[str, Any]] = {
    "default": {},
    "number": {"weight": 2.0},
    "detached": {"weight": 2.0, "detach": True},
    "scale free": {"scale_free": True},
    "scale free, detached": {"weight": 1.5, "scale_free": True, "detach": True},
    "normalised": {"weight": 2.0, "normalize": True},
    "normalised, scale free": {"normalize": True, "scale_free": True},
    "paper": {"variant": "paper"},
    "permuted": {"variant": "permuted"},
    "propagation": {"energy": "propagation", "scale_free": True},
    "hops": {"weight": Hops(0.5), "energy": "propagation"},
    "hops of the paper's energy": {"weight": Hops(0.5)},
    "feedback": {"weight": Feedback(0.0, Gain(3.0), target=0.3)},
    "entropy feedback": {"weight": Feedback(0.0, 3.0, measure="entropy"), "normalize": True},
    "cap": {"weight": Cap(Gain(4.0), 0.3, per="graph")},
    "measured": {"temperature": "auto"},
    "measured, scale free": {"temperature": "auto", "scale_free": True, "weight": 2.0},
    "learned": {"learn_temperature": True, "learn_weight": True, "weight": 2.0},
    "function": {"weight": lambda energy, temperature: energy / (energy + temperature)},
}


def make_graph(nodes: int, edges: int, seed: int) -> Data:
    """Return a random graph, which may have isolated nodes or no edges."""
    generator = torch.Generator().manual_seed(seed)
    pairs = torch.randint(nodes, (2, edges), generator=generator)
    # PyG's layers count repeated edges, and a Graph merges them.
    edge_index = eamp.Graph(pairs, nodes, symmetrize=True).edge_index
    x = torch.randn(nodes, WIDTH, generator=generator, dtype=torch.float64)
    scale = 0.2 + 2 * torch.rand((), generator=generator, dtype=torch.float64)
    return Data(x=scale * x, edge_index=edge_index, num_nodes=nodes)


# From a single node without neighbours to graphs on which Lanczos' iteration stops early.
one_graph = st.builds(make_graph, st.integers(1, 9), st.integers(0, 16), st.integers(0, 2**20))
large_graph = st.builds(make_graph, st.just(60), st.just(150), st.integers(0, 2**20))
some_graphs = st.lists(one_graph | large_graph, min_size=1, max_size=6)


def step_of(options: dict[str, Any]) -> eamp.EntropyAware:
    torch.manual_seed(0)
    layer = eamp.EntropyAware(GCNConv(WIDTH, WIDTH), **options).double()
    return eamp.nn.number_layers(layer).eval()


def close(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
@settings(max_examples=8)
@given(graphs=some_graphs, data=st.data())
def test_a_batch_is_its_graphs_one_by_one_in_any_order(
    options: dict[str, Any], graphs: list[Data], data: st.DataObject
) -> None:
    known_thresholds._known.clear()
    layer, order = step_of(options), data.draw(st.permutations(range(len(graphs))))
    batch = Batch.from_data_list([graphs[number] for number in order])
    batch.x.requires_grad_()
    together = layer(batch.x, eamp.Graph(batch))
    (slope,) = torch.autograd.grad(together.square().sum(), batch.x)
    for place, number in enumerate(order):
        x, inside = graphs[number].x.clone().requires_grad_(), batch.batch == place
        alone = layer(x, graphs[number].edge_index)
        close(together[inside], alone)
        close(slope[inside], torch.autograd.grad(alone.square().sum(), x)[0])


@settings(max_examples=20)
@given(graphs=some_graphs, data=st.data())
def test_nodes_of_a_batch_may_stand_in_any_order(graphs: list[Data], data: st.DataObject) -> None:
    batch = Batch.from_data_list(graphs)
    place = torch.tensor(data.draw(st.permutations(range(batch.num_nodes))))
    order = place.argsort()
    shuffled = eamp.Graph(place[batch.edge_index], batch.num_nodes, batch=batch.batch[order])
    for options in ({"normalize": True, "weight": 2.0}, {"weight": Feedback(0.0, 3.0)}):
        layer = step_of(options)
        close(layer(batch.x[order], shuffled), layer(batch.x, eamp.Graph(batch))[order])


@pytest.mark.parametrize("normalize", [False, True])
@settings(max_examples=20)
@given(graphs=some_graphs)
def test_entropies_of_every_graph(normalize: bool, graphs: list[Data]) -> None:
    batch, options = Batch.from_data_list(graphs), {"temperature": 1.0, "normalize": normalize}
    together = eamp.entropy(batch.x, eamp.Graph(batch), by_graph=True, **options)
    alone = [eamp.entropy(graph.x, graph.edge_index, **options) for graph in graphs]
    close(together, torch.stack(alone))
    close(eamp.entropy(batch.x, eamp.Graph(batch), **options), torch.stack(alone).sum())


@pytest.mark.parametrize("normalize", [False, True])
@settings(max_examples=20, deadline=None)
@given(graphs=st.lists(one_graph, min_size=1, max_size=4))
def test_energies_and_gradients_of_every_graph_are_those_of_the_definition(
    normalize: bool, graphs: list[Data]
) -> None:
    batch = Batch.from_data_list(graphs)
    graph = eamp.Graph(batch)
    energy = eamp.dirichlet_energy(batch.x, graph)
    gradient = eamp.entropy_gradient(batch.x, graph, 0.7, normalize=normalize)
    for number, one in enumerate(graphs):
        x, inside = one.x.clone().requires_grad_(), batch.batch == number
        literal = reference.dirichlet_energy(x, eamp.Graph(one.edge_index, one.num_nodes).csr)
        close(energy[inside], literal.detach())
        entropy = reference.entropy(literal, 0.7, normalize) + 0 * x.sum()  # without edges, too
        close(gradient[inside], torch.autograd.grad(entropy, x)[0])


def test_a_measured_temperature_is_the_mean_over_the_first_training_batch() -> None:
    graphs = [make_graph(6, 9, seed) for seed in (1, 2)]
    batch, layer = Batch.from_data_list(graphs), step_of({"temperature": "auto", "weight": 1.0})
    layer.train()
    layer(batch.x, eamp.Graph(batch))
    energies = eamp.dirichlet_energy(layer.conv(batch.x, batch.edge_index), eamp.Graph(batch))
    close(layer.calibrated, energies.mean())
    layer.eval()
    alone = [layer(graph.x, graph.edge_index) for graph in graphs]
    close(layer(batch.x, eamp.Graph(batch)), torch.cat(alone))


def test_a_threshold_is_estimated_once_per_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    known_thresholds._known.clear()
    estimated: list[int] = []
    estimate = threshold.estimate
    monkeypatch.setattr(
        threshold, "estimate", lambda g: estimated.append(g.num_graphs) or estimate(g)
    )
    graphs = [make_graph(8, 12, seed) for seed in range(4)]
    first = eamp.nn.collapse_threshold(eamp.Graph(Batch.from_data_list(graphs[:3])), 64)
    later = eamp.nn.collapse_threshold(eamp.Graph(Batch.from_data_list(graphs[::-1])), 64)
    assert estimated == [3, 1]
    assert torch.equal(later[1:], first.flip(0))
    weighted = Batch.from_data_list(graphs[:1])
    weighted.edge_weight = torch.full((weighted.num_edges,), 2.0)
    eamp.nn.collapse_threshold(eamp.Graph(weighted), 64)
    assert estimated == [3, 1, 1]


def test_known_thresholds_are_forgotten_when_there_are_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known_thresholds._known.clear()
    monkeypatch.setattr(known_thresholds, "MOST", 3)
    graphs = [make_graph(8, 12, seed) for seed in range(4)]
    for pair in (graphs[:2], graphs[1:3], graphs[2:]):
        found = eamp.nn.collapse_threshold(eamp.Graph(Batch.from_data_list(pair)), 64)
        alone = [eamp.nn.collapse_threshold(eamp.Graph(graph), 64) for graph in pair]
        close(found, torch.cat(alone))
        assert len(known_thresholds._known) <= 3


class Classifier(Module):
    """A graph classifier whose layers never see the ``batch``."""

    def __init__(self) -> None:
        super().__init__()
        self.gnn, self.out = GCN(WIDTH, 8, num_layers=3), Linear(8, 2)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        return self.out(global_mean_pool(self.gnn(x, edge_index), batch))


class OnData(Classifier):
    """The same model, called with a PyG ``Data``."""

    def forward(self, data: Data) -> Tensor:  # type: ignore[override]
        return super().forward(data.x, data.edge_index, data.batch)


class WithOptions(OnData):
    """The same model, with an argument that may be left out."""

    def forward(self, data: Data, logits: bool = True, **more: Any) -> Tensor:  # type: ignore[override]
        out = super().forward(data)
        return out if logits else out.softmax(1)


@pytest.mark.parametrize("model", [Classifier, OnData, WithOptions])
@pytest.mark.parametrize("options", [{}, {"scale_free": True}, {"normalize": True}])
def test_a_wrapped_model_tells_its_layers_the_batch(
    model: type[Classifier], options: dict[str, Any]
) -> None:
    torch.manual_seed(0)
    network = eamp.wrap(model().double(), **options).eval()
    graphs = [make_graph(nodes, 2 * nodes, nodes) for nodes in (1, 5, 9, 60)]
    batch = Batch.from_data_list(graphs)

    def run(data: Data) -> Tensor:
        if model is WithOptions:
            return network(data, logits=False)
        if model is OnData:
            return network(data)
        return network(data.x, data.edge_index, batch=data.batch)

    close(run(batch), torch.cat([run(graph) for graph in graphs]))
    eamp.unwrap(network)
    assert not network._forward_pre_hooks
    assert not network._forward_pre_hooks_with_kwargs


def test_a_model_that_cannot_be_told_the_batch_leaves_it_as_it_is() -> None:
    class Inner(Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = GCNConv(WIDTH, WIDTH)

        def forward(self, x: Tensor, edge_index: Tensor | None = None) -> Tensor:
            return self.conv(x, edge_index)

    model, data = eamp.wrap(Inner().double()), Batch.from_data_list([make_graph(4, 6, 0)] * 2)
    set_batch(data.edge_index, data.batch)
    model(data.x, data.edge_index)
    assert as_graph(data.edge_index, 8).num_graphs == 2


def test_a_model_is_hooked_once() -> None:
    model = eamp.wrap(eamp.wrap(Classifier()))
    assert len(model._forward_pre_hooks) == len(model._forward_hooks) == 1
    assert not in_a_call()


def compared(model: Module, graphs: list[Data]) -> tuple[Tensor, Tensor]:
    """Return the outputs for a batch, and for its graphs one by one."""
    batches = [Batch.from_data_list(part) for part in (graphs, *([graph] for graph in graphs))]
    together, *alone = (model(b.x, b.edge_index, batch=b.batch) for b in batches)
    return together, torch.cat(alone)


def some(*sizes: int) -> list[Data]:
    return [make_graph(nodes, 2 * nodes, nodes) for nodes in sizes]


class OtherEdges(Module):
    """A model that makes an ``edge_index`` of its own in every call."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.both = GCNConv(WIDTH, WIDTH), DirGNNConv(GCNConv(WIDTH, WIDTH))

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        return self.both(self.conv(x, add_self_loops(edge_index)[0]), edge_index)


@pytest.mark.parametrize("options", [{}, {"scale_free": True}, {"normalize": True}])
def test_layers_on_edges_that_the_model_makes_know_the_batch(options: dict[str, Any]) -> None:
    torch.manual_seed(0)
    model = eamp.wrap(OtherEdges().double(), **options).eval()
    close(*compared(model, some(5, 9, 60)))
    assert not in_a_call()


def test_edges_that_a_model_keeps_have_the_batch_of_every_call() -> None:
    class Kept(Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = GCNConv(WIDTH, WIDTH)
            self.edges = undirected((0, 1), (2, 3), (3, 4), (4, 5))

        def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
            return self.conv(x, self.edges)

    torch.manual_seed(0)
    model, x = eamp.wrap(Kept().double(), normalize=True), torch.randn(6, WIDTH).double()
    for batch in (torch.tensor([0, 0, 1, 1, 1, 1]), torch.zeros(6).long(), None):
        graph = eamp.Graph(model.edges.clone(), batch=batch)
        close(model(x, model.edges.clone(), batch), model.conv(x, graph))


def test_a_checkpointed_segment_finds_the_batch_again() -> None:
    class Segmented(Classifier):
        def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
            out = checkpoint(self.gnn, x, edge_index, use_reentrant=False)
            return self.out(global_mean_pool(out, batch))

    data, gradients = Batch.from_data_list(some(5, 9, 60)), []
    for kind in (Classifier, Segmented):
        torch.manual_seed(0)
        model = eamp.wrap(kind().double(), normalize=True)
        model(data.x, data.edge_index, data.batch).square().sum().backward()
        gradients.append(torch.cat([p.grad.flatten() for p in model.parameters()]))
    close(*gradients)


@pytest.mark.parametrize("first", ["inner", "outer"])
def test_a_model_in_a_model_keeps_the_batch_of_the_whole(first: str) -> None:
    torch.manual_seed(0)
    model = Classifier().double().eval()
    parts = [model.gnn, model] if first == "inner" else [model, model.gnn]
    for part in parts:
        eamp.wrap(part)
    close(*compared(model, some(5, 9, 60)))


def test_an_error_inside_a_model_ends_its_call() -> None:
    model, data = eamp.wrap(Classifier().double()), Batch.from_data_list(some(5, 9))
    with pytest.raises((ValueError, RuntimeError)):
        model(data.x[:, :2], data.edge_index, data.batch)
    assert not in_a_call()


def test_pooled_graphs_are_told() -> None:
    model = eamp.wrap(GraphUNet(WIDTH, 8, WIDTH, depth=2).double())
    data = Batch.from_data_list(some(5, 9))
    with pytest.warns(BatchWarning, match="after pooling"):
        model(data.x, data.edge_index, data.batch)
    fixed = eamp.wrap(GraphUNet(WIDTH, 8, WIDTH, depth=2).double(), weight=1.0)
    fixed(data.x, data.edge_index, data.batch)


def test_the_graph_of_an_edge_index_knows_the_last_batch() -> None:
    edge_index, batch = undirected((0, 1), (2, 3)), torch.tensor([0, 0, 1, 1])
    assert as_graph(edge_index, 4).batch is None
    set_batch(edge_index, batch)
    graph = as_graph(edge_index, 4)
    assert graph.num_graphs == 2
    set_batch(edge_index, batch)
    assert as_graph(edge_index, 4) is graph
    batch[2:] = 3
    set_batch(edge_index, batch)
    assert as_graph(edge_index, 4).num_graphs == 4
    set_batch(edge_index, None)
    set_batch(edge_index, None)
    assert as_graph(edge_index, 4).batch is None


@pytest.mark.usefixtures("_pyg_compiles")
def test_a_compiled_model_with_a_batch_wants_a_graph() -> None:
    batch = Batch.from_data_list([make_graph(5, 8, 0), make_graph(6, 8, 1)])
    model = eamp.wrap(Classifier().double(), scale_free=True, weight=1.0)
    torch.compiler.reset()
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    with pytest.raises((GraphError, RuntimeError), match="batch"):
        compiled(batch.x, batch.edge_index, batch.batch)
    torch.compiler.reset()
    with pytest.raises(GraphError, match="which nodes form a graph"):  # with breaks in the graph
        torch.compile(model, backend="aot_eager")(batch.x, batch.edge_index, batch.batch)
    assert not in_a_call()
    fixed = eamp.wrap(Classifier().double(), weight=1.0)
    torch.compiler.reset()
    compiled = torch.compile(fixed, fullgraph=True, backend="aot_eager")
    close(
        compiled(batch.x, batch.edge_index, batch.batch),
        fixed(batch.x, batch.edge_index, batch.batch),
    )
