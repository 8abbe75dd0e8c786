import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck, gradgradcheck

import eamp
from eamp.functional import Variant
from eamp.ops import reference
from problems import PROBLEMS, Problem, irregular_graph, problems, random_graph, undirected

BACKENDS = ["numba", "torch", "reference"]
temperatures = st.floats(0.2, 5.0)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_energies_worked_out_by_hand(problem: Problem, backend: str) -> None:
    with eamp.backend(backend):
        energy = eamp.dirichlet_energy(problem.x, problem.edge_index)
    torch.testing.assert_close(energy, torch.tensor(problem.energy))


def test_the_gradient_on_a_path_worked_out_by_hand() -> None:
    path = PROBLEMS["path"]
    c = [1.0, 1 / math.sqrt(2), 1.0]
    q = [c[i] * math.exp(-path.energy[i]) * (1 - path.energy[i]) for i in range(3)]
    expected = [
        (q[0] + q[1]) * (0 - 1),
        (q[1] + q[0]) * (1 - 0) + (q[1] + q[2]) * (1 - 3),
        (q[2] + q[1]) * (3 - 1),
    ]
    gradient = eamp.entropy_gradient(path.x, path.edge_index, temperature=1.0)
    torch.testing.assert_close(gradient.squeeze(1), torch.tensor(expected))


@pytest.mark.parametrize("backend", BACKENDS)
@given(problem=problems(), temperature=temperatures, normalize=st.booleans())
def test_the_gradient_is_autograd_of_the_reference_entropy(
    problem: tuple[torch.Tensor, eamp.Graph], temperature: float, normalize: bool, backend: str
) -> None:
    x, g = problem
    x.requires_grad_()
    entropy = reference.entropy(reference.dirichlet_energy(x, g.csr), temperature, normalize)
    (expected,) = torch.autograd.grad(
        entropy + 0 * x.sum(), x
    )  # without edges the entropy does not know x
    with eamp.backend(backend):
        torch.testing.assert_close(
            eamp.entropy(x, g, temperature, normalize=normalize), entropy, rtol=1e-9, atol=1e-9
        )
        gradient = eamp.entropy_gradient(x, g, temperature, normalize=normalize)
    torch.testing.assert_close(gradient, expected, rtol=1e-9, atol=1e-9)
    literal = reference.entropy_gradient(x, g.csr, temperature, normalize=normalize)
    torch.testing.assert_close(gradient, literal, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("backend", BACKENDS)
@given(problem=problems(), temperature=temperatures, normalize=st.booleans())
def test_the_papers_formula_is_kept_as_published(
    problem: tuple[torch.Tensor, eamp.Graph], temperature: float, normalize: bool, backend: str
) -> None:
    x, g = problem
    with eamp.backend(backend):
        gradient = eamp.entropy_gradient(x, g, temperature, variant="paper", normalize=normalize)
    expected = reference.entropy_gradient(
        x, g.csr, temperature, variant="paper", normalize=normalize
    )
    torch.testing.assert_close(gradient, expected, rtol=1e-9, atol=1e-9)


def test_the_papers_formula_is_wrong_on_irregular_graphs_only() -> None:
    x = torch.randn(10, 4)
    exact, paper = (
        eamp.entropy_gradient(x, irregular_graph(), 1.0, variant=v) for v in ("exact", "paper")
    )
    assert (exact - paper).norm() > 0.05 * exact.norm()
    ring = eamp.Graph(undirected(*((i, (i + 1) % 10) for i in range(10))))
    exact, paper = (eamp.entropy_gradient(x, ring, 1.0, variant=v) for v in ("exact", "paper"))
    torch.testing.assert_close(exact, paper)


@given(problem=problems(), temperature=temperatures)
def test_boltzmann_weights_are_exponentials_and_sum_to_one_when_normalised(
    problem: tuple[torch.Tensor, eamp.Graph], temperature: float
) -> None:
    x, g = problem
    energy = eamp.dirichlet_energy(x, g)
    torch.testing.assert_close(eamp.boltzmann(x, g, temperature), torch.exp(-energy / temperature))
    torch.testing.assert_close(
        eamp.boltzmann(x, g, temperature, normalize=True).sum(),
        torch.tensor(1.0, dtype=torch.float64),
    )


def test_the_summand_of_a_node_is_largest_where_its_energy_is_the_temperature() -> None:
    edge_index = undirected((0, 1))
    distances = torch.linspace(0.1, 4, 200)
    entropies = torch.stack(
        [eamp.entropy(torch.tensor([[0.0], [d]]), edge_index, temperature=2.0) for d in distances]
    )
    energy = distances[int(entropies.argmax())] ** 2 / 2
    assert float(energy) == pytest.approx(2.0, abs=0.05)
    assert float(entropies.max()) == pytest.approx(2 / math.e, abs=1e-3)


# --- Properties -----------------------------------------------------------------------------


@given(problem=problems(), seed=st.integers(0, 1000), normalize=st.booleans())
def test_permuting_nodes_permutes_everything(
    problem: tuple[torch.Tensor, eamp.Graph], seed: int, normalize: bool
) -> None:
    x, g = problem
    order = torch.randperm(g.num_nodes, generator=torch.Generator().manual_seed(seed))
    permuted = eamp.Graph(
        torch.argsort(order)[g.edge_index], g.num_nodes, edge_weight=g.edge_weight
    )
    torch.testing.assert_close(
        eamp.dirichlet_energy(x[order], permuted), eamp.dirichlet_energy(x, g)[order]
    )
    torch.testing.assert_close(
        eamp.entropy_gradient(x[order], permuted, 1.0, normalize=normalize),
        eamp.entropy_gradient(x, g, 1.0, normalize=normalize)[order],
    )


@given(problem=problems(), seed=st.integers(0, 1000))
def test_energy_is_unchanged_by_translation_and_rotation_and_the_gradient_rotates_along(
    problem: tuple[torch.Tensor, eamp.Graph], seed: int
) -> None:
    x, g = problem
    generator = torch.Generator().manual_seed(seed)
    rotation, _ = torch.linalg.qr(
        torch.randn(x.size(1), x.size(1), dtype=x.dtype, generator=generator)
    )
    moved = x @ rotation + torch.randn(x.size(1), dtype=x.dtype, generator=generator)
    torch.testing.assert_close(eamp.dirichlet_energy(moved, g), eamp.dirichlet_energy(x, g))
    torch.testing.assert_close(
        eamp.entropy_gradient(moved, g, 1.0), eamp.entropy_gradient(x, g, 1.0) @ rotation
    )


@given(problem=problems())
def test_constant_embeddings_and_isolated_nodes_give_exactly_zero(
    problem: tuple[torch.Tensor, eamp.Graph],
) -> None:
    x, g = problem
    for backend in BACKENDS:
        with eamp.backend(backend):
            constant = x[:1].expand_as(x)
            assert not eamp.dirichlet_energy(constant, g).any()
            assert not eamp.entropy_gradient(constant, g, 1.0).any()
            isolated = g.degree == 0
            for normalize in (False, True):
                assert not eamp.entropy_gradient(x, g, 1.0, normalize=normalize)[isolated].any()
            assert not eamp.dirichlet_energy(x, g)[isolated].any()


@given(problem=problems(), temperature=temperatures, normalize=st.booleans())
def test_one_small_ascent_step_never_lowers_the_entropy(
    problem: tuple[torch.Tensor, eamp.Graph], temperature: float, normalize: bool
) -> None:
    x, g = problem
    before = eamp.entropy(x, g, temperature, normalize=normalize)
    after = eamp.entropy(
        x + 1e-4 * eamp.entropy_gradient(x, g, temperature, normalize=normalize),
        g,
        temperature,
        normalize=normalize,
    )
    assert after >= before - 1e-12


@given(problem=problems())
def test_scaling_features_and_temperature_together_changes_nothing_but_the_scale(
    problem: tuple[torch.Tensor, eamp.Graph],
) -> None:
    x, g = problem
    torch.testing.assert_close(eamp.entropy(3 * x, g, 9.0), eamp.entropy(x, g, 1.0))
    torch.testing.assert_close(
        eamp.entropy_gradient(3 * x, g, 9.0), eamp.entropy_gradient(x, g, 1.0) / 3
    )


# --- Derivatives ----------------------------------------------------------------------------


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("variant", ["exact", "paper"])
def test_the_gradient_can_be_differentiated_in_features_and_temperature(
    backend: str, weighted: bool, normalize: bool, variant: Variant
) -> None:
    g = random_graph(5, 6, weighted=weighted)  # small: second derivatives grow with the square
    x = torch.randn(5, 2, dtype=torch.float64, requires_grad=True)
    temperature = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)

    def gradient(x: torch.Tensor, temperature: torch.Tensor) -> torch.Tensor:
        with eamp.backend(backend):
            return eamp.entropy_gradient(x, g, temperature, variant=variant, normalize=normalize)

    def entropy(x: torch.Tensor, temperature: torch.Tensor) -> torch.Tensor:
        with eamp.backend(backend):
            return eamp.entropy(x, g, temperature, normalize=normalize)

    assert gradcheck(gradient, (x, temperature))
    assert gradcheck(entropy, (x, temperature))
    assert gradgradcheck(entropy, (x, temperature))
    assert gradgradcheck(gradient, (x, temperature))


@given(problem=problems())
def test_the_hessian_vector_product_is_the_formula(
    problem: tuple[torch.Tensor, eamp.Graph],
) -> None:
    x, g = problem
    v = torch.randn_like(x)
    x.requires_grad_()
    (product,) = torch.autograd.grad(2.0 * eamp.entropy_gradient(x, g, 2.0), x, v)
    torch.testing.assert_close(
        product, reference.hessian_vector(x.detach(), v, g.csr, 2.0), rtol=1e-9, atol=1e-9
    )


# --- Precision ------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["numba", "torch"])
@pytest.mark.parametrize("weighted", [False, True])
def test_float32_is_within_1e5_of_float64(backend: str, weighted: bool) -> None:
    g = random_graph(300, 1200, weighted=weighted)
    x = torch.randn(300, 64, dtype=torch.float64)
    for function in (eamp.dirichlet_energy, eamp.entropy_gradient):
        exact = function(x, g)
        with eamp.backend(backend):
            close = function(x.float(), g)
        assert close.dtype == torch.float32
        assert (close.double() - exact).norm() <= 1e-5 * exact.norm()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("spread", [1e-3, 1e-4])
def test_energies_survive_collapse(backend: str, spread: float) -> None:
    g = random_graph(60, 200)
    x = (1 + spread * torch.randn(60, 16)).float()
    exact = eamp.dirichlet_energy(x.double(), g)
    with eamp.backend(backend):
        energy = eamp.dirichlet_energy(x, g)
        step = eamp.entropy_gradient(x, g, 1.0)
    assert (energy >= 0).all()
    assert ((energy.double() - exact).abs() <= 1e-3 * exact).all()
    torch.testing.assert_close(
        step.double(), eamp.entropy_gradient(x.double(), g, 1.0), rtol=1e-3, atol=1e-3 * spread
    )


@pytest.mark.parametrize("backend", ["numba", "torch"])
def test_energies_survive_collapse_onto_several_distant_points(backend: str) -> None:
    g = eamp.Graph(
        undirected(
            *(
                (i, j)
                for block in (0, 20)
                for i in range(block, block + 20)
                for j in range(block, i)
            )
        )
    )
    x = torch.cat([torch.full((20, 8), -50.0), torch.full((20, 8), 50.0)]) + 1e-3 * torch.randn(
        40, 8
    )
    exact = eamp.dirichlet_energy(x.double(), g)
    with eamp.backend(backend):
        energy = eamp.dirichlet_energy(x, g)
    assert ((energy.double() - exact).abs() <= 1e-3 * exact).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("backend", ["numba", "torch"])
def test_half_precision_is_summed_in_float32(dtype: torch.dtype, backend: str) -> None:
    g = random_graph(50, 200)
    x = torch.randn(50, 32).to(dtype)
    with eamp.backend(backend):
        energy, gradient = eamp.dirichlet_energy(x, g), eamp.entropy_gradient(x, g, 1.0)
    assert (energy.dtype, gradient.dtype) == (torch.float32, dtype)
    torch.testing.assert_close(energy, eamp.dirichlet_energy(x.float(), g))
    torch.testing.assert_close(gradient, eamp.entropy_gradient(x.float(), g, 1.0).to(dtype))


def test_energies_far_above_the_temperature_give_zeros_not_nans() -> None:
    x, edge_index = torch.tensor([[0.0], [1e4]]), undirected((0, 1))
    for normalize in (False, True):
        assert torch.isfinite(eamp.entropy(x, edge_index, 1e-3, normalize=normalize))
        assert torch.isfinite(eamp.entropy_gradient(x, edge_index, 1e-3, normalize=normalize)).all()


def test_nan_features_stay_nan() -> None:
    x = torch.tensor([[0.0], [float("nan")], [1.0]])
    assert torch.isnan(eamp.dirichlet_energy(x, PROBLEMS["path"].edge_index)).tolist() == [
        True,
        True,
        True,
    ]


# --- Batches, layouts and errors ------------------------------------------------------------


@pytest.mark.parametrize("normalize", [False, True])
def test_a_batch_of_copies_is_every_copy_alone(normalize: bool) -> None:
    g = irregular_graph()
    x, n = torch.randn(10, 3, dtype=torch.float64), g.num_nodes
    batch = eamp.Graph(
        torch.cat([g.edge_index, g.edge_index + n], 1),
        2 * n,
        batch=torch.arange(2).repeat_interleave(n),
    )
    alone = eamp.entropy_gradient(x, g, 1.0, normalize=normalize)
    torch.testing.assert_close(
        eamp.entropy_gradient(torch.cat([x, x]), batch, 1.0, normalize=normalize),
        torch.cat([alone, alone]),
    )
    double = eamp.entropy(torch.cat([x, x]), batch, 1.0, normalize=normalize)
    torch.testing.assert_close(double, 2 * eamp.entropy(x, g, 1.0, normalize=normalize))


def test_a_normalised_batch_can_be_differentiated() -> None:
    g = eamp.Graph(undirected((0, 1), (2, 3), (3, 4)), batch=torch.tensor([0, 0, 1, 1, 1]))
    x = torch.randn(5, 2, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda x: eamp.entropy_gradient(x, g, 1.0, normalize=True), (x,))
    (expected,) = torch.autograd.grad(eamp.entropy(x, g, 1.0, normalize=True), x)
    torch.testing.assert_close(eamp.entropy_gradient(x, g, 1.0, normalize=True), expected)


@pytest.mark.parametrize("backend", ["numba", "torch"])
def test_strided_features_give_the_same(backend: str) -> None:
    g = random_graph(20, 40)
    x = torch.randn(6, 20).t()
    assert not x.is_contiguous()
    with eamp.backend(backend):
        torch.testing.assert_close(
            eamp.entropy_gradient(x, g), eamp.entropy_gradient(x.contiguous(), g)
        )


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (1, 1)])
def test_degenerate_shapes(shape: tuple[int, int]) -> None:
    edge_index = torch.empty(2, 0, dtype=torch.int64) if shape[0] < 2 else undirected((0, 1))
    x = torch.ones(shape)
    for backend in BACKENDS:
        with eamp.backend(backend):
            assert eamp.dirichlet_energy(x, edge_index).tolist() == [0.0] * shape[0]
            assert eamp.entropy_gradient(x, edge_index).shape == shape


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (torch.zeros(3), r"got \[3\] of torch.float32. Pass x.unsqueeze\(1\)"),
        (torch.zeros(3, 1, dtype=torch.int64), r"real features .* of torch.int64"),
        (torch.zeros(1, 1), r">= num_nodes = 1"),
    ],
)
def test_features_that_do_not_fit_are_named(x: torch.Tensor, message: str) -> None:
    with pytest.raises(eamp.GraphError, match=message):
        eamp.dirichlet_energy(x, undirected((0, 1)))


def test_sizes_devices_and_non_finite_rows_are_named() -> None:
    g = eamp.Graph(undirected((0, 1)))
    with pytest.raises(eamp.GraphError, match="x has 3 rows but the graph has 2 nodes"):
        eamp.dirichlet_energy(torch.zeros(3, 1), g)
    with pytest.raises(
        eamp.GraphError, match=r"x is on cpu but the graph on meta; move one with .to\('cpu'\)"
    ):
        eamp.dirichlet_energy(torch.zeros(2, 1), g.to("meta"))
    bad = torch.tensor([[0.0], [math.inf]])
    for function in (eamp.dirichlet_energy, eamp.boltzmann, eamp.entropy, eamp.entropy_gradient):
        with pytest.raises(
            eamp.GraphError, match="NaN or infinity in 1 of 2 rows; the first is row 1"
        ):
            function(bad, g, check_finite=True)


@pytest.mark.parametrize("temperature", [0.0, -1.0, math.nan, torch.tensor(-1.0)])
def test_temperatures_must_be_positive(temperature: float) -> None:
    with pytest.raises(ValueError, match="temperature must be > 0"):
        eamp.entropy(torch.zeros(2, 1), undirected((0, 1)), temperature)
    with pytest.raises(ValueError, match="one number; got a tensor of shape"):
        eamp.entropy(torch.zeros(2, 1), undirected((0, 1)), torch.ones(2))


def test_unknown_backends_are_named_and_the_choice_is_undone() -> None:
    with (
        pytest.raises(
            ValueError, match="no backend named 'cuda'; there are 'numba', 'torch', 'reference'"
        ),
        eamp.backend("cuda"),
    ):
        pass
    with eamp.backend("torch"), eamp.backend("reference"):
        pass
    from eamp.ops.backends import choose

    assert choose(torch.device("cpu")) == "numba"
    assert choose(torch.device("meta")) == "torch"
