"""Transforms of torch.func, forward-mode AD, threads, inference mode, tensors without contents."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, func
from torch.autograd import forward_ad

import eamp
from eamp.graph import Rows
from eamp.nn.conv.gcn_conv import gcn_propagate
from eamp.ops import channel_squares, entropy_step, inner_differences, weighted_differences
from eamp.ops.backends import choose
from eamp.ops.edge_products import attended_sums, edge_products
from problems import irregular_graph, undirected

PATH = undirected((0, 1), (1, 2), (2, 3))
GRAPH = eamp.Graph(PATH, 4)
CPU = torch.device("cpu")


def features(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("backend", ["numba", "torch"])
def test_every_transform_of_the_entropy_is_its_derivative(backend: str, normalize: bool) -> None:
    def entropy(x: Tensor, edge_index: Tensor = PATH) -> Tensor:
        return eamp.entropy(x, edge_index, 1.0, normalize=normalize)

    x, v, many = features(4, 3), features(4, 3).flip(0), features(5, 4, 3)
    with eamp.backend(backend):
        expected = eamp.entropy_gradient(x, PATH, 1.0, normalize=normalize)
        along = (expected * v).sum()
        for found in (
            func.grad(entropy)(x),
            func.grad(entropy)(x, PATH.clone()),  # the graph is an argument of the transform
            func.jacrev(entropy)(x),
            func.jacfwd(entropy)(x),
        ):
            torch.testing.assert_close(found, expected)
        torch.testing.assert_close(func.jvp(entropy, (x,), (v,))[1], along)
        torch.testing.assert_close(
            func.hessian(entropy)(x), torch.autograd.functional.hessian(entropy, x)
        )
        torch.testing.assert_close(
            func.vmap(entropy)(many), torch.stack([entropy(one) for one in many])
        )
        with forward_ad.dual_level():
            out = entropy(forward_ad.make_dual(x, v))
            torch.testing.assert_close(forward_ad.unpack_dual(out).tangent, along)
    eamp.dirichlet_energy(x, PATH)  # nothing that a transform has wrapped is kept


def test_vmap_over_temperatures_checks_each() -> None:
    x, temperatures = features(4, 3), torch.tensor([0.5, 1.0, 2.0])
    found = func.vmap(lambda t: eamp.entropy(x, PATH, t))(temperatures)
    torch.testing.assert_close(found, torch.stack([eamp.entropy(x, PATH, t) for t in temperatures]))
    with pytest.raises(ValueError, match=r"temperature must be > 0, but is -2\.0"):
        func.vmap(lambda t: eamp.entropy(x, PATH, t))(-temperatures)


def test_vmap_over_graphs_is_refused() -> None:
    x = features(4, 3)
    with pytest.raises(eamp.GraphError, match="cannot map over graphs"):
        func.vmap(lambda edges: eamp.entropy(x, edges))(torch.stack([PATH, PATH]))


# torch says of the attention in "gps" that it maps over samples in a loop.
@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.parametrize("name", eamp.nn.MODELS)
def test_gradients_per_sample_of_every_model(name: str) -> None:
    torch.manual_seed(0)
    model = eamp.nn.MODELS[name](3, 4, 2, 2).double().eval()
    parameters = {key: value.detach() for key, value in model.named_parameters()}

    def loss(parameters: dict[str, Tensor], x: Tensor) -> Tensor:
        return func.functional_call(model, parameters, (x, PATH)).square().sum()

    many = features(2, 4, 3)
    found = func.vmap(func.grad(loss), in_dims=(None, 0))(parameters, many)
    for sample, x in enumerate(many):
        model.zero_grad()
        model(x, PATH).square().sum().backward()
        for key, parameter in model.named_parameters():
            if parameter.grad is not None:
                torch.testing.assert_close(found[key][sample], parameter.grad)


SUMS: dict[str, Callable[[Tensor], Tensor]] = {
    "energy": lambda x: eamp.dirichlet_energy(x, PATH),
    "products": lambda x: inner_differences(x, x.sin(), GRAPH),
    "differences": lambda x: weighted_differences(x.sum(1).exp(), x, GRAPH),
    "neighbours": lambda x: gcn_propagate(x, GRAPH, x.cos(), 0.2, x.sum(0)),
    "channels": lambda x: channel_squares(x, GRAPH),
    "attention": lambda x: attended_sums(edge_products(x, x.sin(), GRAPH), x, GRAPH),
    "step": lambda x: entropy_step(x, GRAPH, 1.0)[0],
    "energy of a step": lambda x: entropy_step(x, GRAPH, 1.0)[1],
    "step at a learned temperature": lambda x: entropy_step(x, GRAPH, x.square().sum())[0],
    "normalised step": lambda x: entropy_step(x, GRAPH, 1.0, normalize=True)[0],
    "dropout": lambda x: eamp.ops.dropout(x, 0.3),
    "layer": lambda x: eamp.EntropyAware(eamp.nn.DeepConv(3, 1, 1), 0.5, 1.0)(x, x, PATH),
}


@pytest.mark.parametrize("name", SUMS)
def test_batched_gradients_are_the_gradients_one_by_one(name: str) -> None:
    def computed(x: Tensor) -> Tensor:
        torch.manual_seed(0)
        return SUMS[name](x)

    x = features(4, 3).requires_grad_()
    out = computed(x)
    many = features(5, *out.shape)
    expected = [torch.autograd.grad(out, x, one, retain_graph=True)[0] for one in many]
    found = torch.autograd.grad(out, x, many, is_grads_batched=True, retain_graph=True)[0]
    torch.testing.assert_close(found, torch.stack(expected))
    mapped = func.vmap(lambda one: torch.autograd.grad(out, x, one, retain_graph=True)[0])(many)
    torch.testing.assert_close(mapped, torch.stack(expected))
    jacobian = torch.autograd.functional.jacobian
    torch.testing.assert_close(jacobian(computed, x, vectorize=True), jacobian(computed, x))


@pytest.mark.parametrize("name", ["step", "energy", "neighbours"])
def test_batched_gradients_can_be_differentiated_again(name: str) -> None:
    x, many = features(4, 3).requires_grad_(), features(2, *SUMS[name](features(4, 3)).shape)
    slopes = []
    for at_once in (True, False):
        out = SUMS[name](x).square()
        (first,) = (
            torch.autograd.grad(out, x, many, is_grads_batched=True, create_graph=True)
            if at_once
            else [
                torch.stack(
                    [torch.autograd.grad(out, x, one, create_graph=True)[0] for one in many]
                )
            ]
        )
        slopes.append(torch.autograd.grad(first.square().sum(), x)[0])
    torch.testing.assert_close(*slopes)


def test_dropout_under_a_transform_drops_the_same_elements() -> None:
    x = torch.ones(50, 4)

    def total(x: Tensor) -> Tensor:
        torch.manual_seed(3)
        return eamp.ops.dropout(x, 0.5).sum()

    leaf = x.clone().requires_grad_()
    total(leaf).backward()
    assert torch.equal(func.grad(total)(x), leaf.grad)


def in_thread(act: Callable[[], Any]) -> Any:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(act()))
    thread.start()
    thread.join()
    return found[0]


def test_a_forced_backend_holds_for_its_thread_alone() -> None:
    with eamp.backend("reference"):
        assert choose(CPU) == "reference"
        assert in_thread(lambda: choose(CPU)) == "numba"


def test_threads_that_overlap_leave_nothing_forced() -> None:
    entered, leave = threading.Event(), threading.Event()

    def other() -> None:
        with eamp.backend("reference"):
            entered.set()
            leave.wait()

    thread = threading.Thread(target=other)
    with eamp.backend("torch"):
        thread.start()
        entered.wait()
    assert choose(CPU) == "numba"
    leave.set()
    thread.join()
    assert choose(CPU) == "numba"
    compiled = torch.compile(lambda x: x + (choose(x.device) == "numba"), backend="eager")
    assert compiled(torch.zeros(())) == 1
    with eamp.backend("torch"), eamp.backend("reference"), eamp.backend("torch"):
        assert compiled(torch.zeros(())) == 0
    assert compiled(torch.zeros(())) == 1


def test_checkpoints_compute_again_on_the_backend_of_the_forward_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from eamp.ops.backends.torch_csr import TorchBackend

    calls: list[str] = []
    sums = TorchBackend.neighbour_sums

    def counted(self: TorchBackend, *given: Any) -> Tensor:
        calls.append("torch")
        return sums(self, *given)

    monkeypatch.setattr(TorchBackend, "neighbour_sums", counted)
    model = eamp.nn.GCN(4, 3, 2, num_layers=4, checkpoint=True)
    with eamp.backend("torch"):
        out = model(torch.randn(4, 4), PATH)
    forward = len(calls)
    out.sum().backward()
    backward, again = 5, 2  # one sum per layer, and the first segment a second time
    assert len(calls) == forward + backward + again


@pytest.mark.parametrize("entropy", [{}, {"detach": False, "normalize": True}])
def test_a_graph_made_in_inference_mode_can_be_trained_on(entropy: dict[str, Any]) -> None:
    x = torch.randn(4, 3)
    with torch.inference_mode():
        edges = PATH.clone()
        batch = torch.zeros(4, dtype=torch.int64)
        weights = torch.full((6,), 2.0)
        graphs = [
            eamp.Graph(edges),
            eamp.Graph(PATH, batch=batch),
            eamp.Graph(PATH, edge_weight=weights),
            eamp.Graph(PATH).to("cpu"),
            edges,
        ]
        model = eamp.nn.GCN(3, 3, 2, num_layers=2, entropy=entropy)
        for graph in graphs:
            model(x, graph)
    model = eamp.nn.GCN(3, 3, 2, num_layers=2, entropy=entropy)
    for graph in graphs:
        model(x, graph).sum().backward()
        assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)


@pytest.mark.parametrize("backend", ["numba", "torch", "reference"])
def test_tensors_without_contents_have_shapes(backend: str) -> None:
    graph = irregular_graph().to("meta")
    x = torch.empty(10, 4, device="meta")
    with eamp.backend(backend):
        assert eamp.dirichlet_energy(x, graph).shape == (10,)
        assert eamp.entropy_gradient(x, graph, 1.0).shape == (10, 4)
        for options in ({}, {"weight": 1.0}):  # the default λ comes from the contents of the graph
            layer = eamp.EntropyAware(eamp.nn.GCNConv(4, 4).to("meta"), **options)
            assert layer(x, graph).shape == (10, 4)


@pytest.mark.parametrize("step", ["number", "threshold", "permuted", "none"])
@pytest.mark.parametrize("name", ["gcn", "ggcm", "egnn", "deep-gcn"])
def test_another_default_device_changes_nothing(name: str, step: str) -> None:
    """On "meta" every tensor without contents that is made on the way is an error."""
    options: dict[str, Any] = {
        "number": {"weight": 0.5, "detach": False},
        "threshold": {"weight": {"schedule": "gain", "of": 1.2}},
        "permuted": {"weight": 0.5, "variant": "permuted"},
        "none": None,
    }
    results = []
    for device in ("cpu", "meta"):
        torch.manual_seed(0)
        model = eamp.nn.MODELS[name](3, 4, 2, 2, dropout=0.3, entropy=options[step])
        x, edge_index = features(4, 3).float(), PATH.clone()
        with torch.device(device):
            out = model(x, edge_index)
            loss = out.sum()
            if name == "egnn":
                loss = loss + model.auxiliary_loss()
            loss.backward()
        results.append([out, *(p.grad for p in model.parameters() if p.grad is not None)])
    assert all(torch.equal(a, b) for a, b in zip(*results, strict=True))


@pytest.mark.parametrize("rows", [None, Rows(torch.arange(4) * 2)])
def test_dropout_under_another_default_device(rows: Rows | None) -> None:
    x, found = features(4, 3), []
    for device in ("cpu", "meta"):
        torch.manual_seed(0)
        with torch.device(device):
            found.append(eamp.ops.dropout(x, 0.5, rows=rows))
    assert torch.equal(*found)


def test_kernels_refuse_tensors_that_they_cannot_read() -> None:
    from eamp.ops.backends import load

    graph = irregular_graph().to("meta")
    with pytest.raises(ValueError, match="'numba' needs features and graph on the CPU"):
        load("numba").squared_differences(torch.randn(10, 4), graph.csr)


def test_a_negative_temperature_does_not_pass_under_compilation() -> None:
    entropy = torch.compile(lambda x, t: eamp.entropy(x, PATH, t), backend="aot_eager")
    x = torch.randn(4, 3)
    torch.testing.assert_close(entropy(x, torch.tensor(2.0)), eamp.entropy(x, PATH, 2.0))
    with pytest.raises(RuntimeError, match="temperature must be > 0"):
        entropy(x, torch.tensor(-2.0))
    with pytest.raises(ValueError, match="temperature must be > 0"):
        entropy(x, -2.0)
