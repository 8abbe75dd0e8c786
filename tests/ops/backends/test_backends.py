"""A backend is one class and one line: proved with one that is registered here."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from torch import Tensor

import eamp
from eamp import ops
from eamp.ops import backends, reference
from eamp.ops.backends.edges import EdgesBackend
from problems import problems


class EdgewiseBackend(EdgesBackend):
    """A backend of a user: the sums alone, without a fused step."""


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(backends.BACKENDS, "edgewise", EdgewiseBackend)


@given(problem=problems())
def test_a_backend_with_the_sums_alone_has_everything(problem: tuple[Tensor, eamp.Graph]) -> None:
    backends.BACKENDS["edgewise"] = EdgewiseBackend  # hypothesis runs within one fixture
    x, g = problem
    with eamp.backend("edgewise"):
        step, energy = ops.entropy_step(x, g, 0.8, 1.5)
        gradient = eamp.entropy_gradient(x, g, 0.8, normalize=True)
        mixed = ops.neighbour_sums(energy, x, energy, g, True, mixed_in=x, share=0.3, bias=x[0])
    torch.testing.assert_close(step, 1.5 * 0.8 * reference.entropy_gradient(x, g.csr, 0.8))
    torch.testing.assert_close(energy, reference.dirichlet_energy(x, g.csr))
    torch.testing.assert_close(gradient, reference.entropy_gradient(x, g.csr, 0.8, normalize=True))
    plain = reference.neighbour_sums(energy, x, energy, g.csr, True)
    torch.testing.assert_close(mixed, 0.7 * plain + 0.3 * x + x[0])


def test_layers_and_their_derivatives_run_on_it() -> None:
    edge_index = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
    x = torch.randn(4, 5, dtype=torch.float64, requires_grad=True)
    for detach in (True, False):
        model = eamp.nn.GCN(5, 5, 3, num_layers=2, entropy={"weight": 2.0, "detach": detach})
        model = model.double()
        found = []
        for name in ("edgewise", "numba"):
            with eamp.backend(name):
                out = model(x, edge_index)
                found.append((out, *torch.autograd.grad(out.square().sum(), x)))
        for ours, theirs in zip(*found, strict=True):
            torch.testing.assert_close(ours, theirs)


def test_an_unknown_backend_is_named_with_those_there_are() -> None:
    with pytest.raises(ValueError, match="no backend named 'nubma'; there are 'numba', 'torch'"):
        eamp.backend("nubma").__enter__()


@pytest.mark.parametrize(
    ("device", "expected"),
    [("cpu", "numba"), ("cuda", "torch"), ("cuda:1", "torch"), ("mps", "torch"), ("meta", "torch")],
)
def test_the_device_chooses_the_backend_and_never_one_that_is_untested(
    device: str, expected: str
) -> None:
    assert backends.choose(torch.device(device)) == expected
    with eamp.backend("triton"):
        assert backends.choose(torch.device(device)) == "triton"
