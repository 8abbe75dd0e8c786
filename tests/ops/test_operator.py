"""Both ways to an operator lead to the same result."""

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from eamp import ops
from eamp.ops.operator import Operator, like_first
from problems import random_graph

GRAPH = random_graph(9, 14)
SCALE = torch.rand(9)


def propagated(x: Tensor, mixed_in: Tensor | None = None) -> Tensor:
    return ops.neighbour_sums(
        SCALE, x, SCALE.flip(0), GRAPH, self_loops=True, mixed_in=mixed_in, share=0.3
    )


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ways that were taken."""
    taken: list[str] = []
    operator = ops.sums._neighbours
    for way in ("compute", "registered"):
        original = getattr(operator, way)

        def spied(*given: object, way: str = way, original: object = original) -> object:
            taken.append(way)
            return original(*given)  # type: ignore[operator]

        monkeypatch.setattr(operator, way, spied)
    return taken


def test_outside_of_tracing_the_function_itself_is_called(calls: list[str]) -> None:
    with torch.no_grad():
        propagated(torch.randn(9, 4))
    assert calls == ["compute"]


def test_tensors_without_contents_see_the_operator(calls: list[str]) -> None:
    with FakeTensorMode(allow_non_fake_inputs=True):
        assert propagated(torch.empty(9, 4)).shape == (9, 4)
    assert calls == ["registered"]


def test_a_compiled_call_gives_the_same() -> None:
    x, y = torch.randn(9, 4), torch.randn(9, 4)
    torch.testing.assert_close(
        torch.compile(propagated, backend="aot_eager", fullgraph=True)(x, y), propagated(x, y)
    )


def test_what_is_mixed_in_is_differentiated() -> None:
    x, y = (torch.randn(9, 4, dtype=torch.float64, requires_grad=True) for _ in range(2))
    torch.testing.assert_close(propagated(x, y), 0.7 * propagated(x) + 0.3 * y)
    assert torch.autograd.gradcheck(propagated, (x, y))
    assert torch.autograd.gradgradcheck(propagated, (x, y))


def test_an_operator_without_a_derivative_has_none() -> None:
    def doubled(x: Tensor) -> Tensor:
        return 2 * x.detach()

    operator = Operator("eamp_tests::doubled", doubled, like_first, plain=doubled)
    x = torch.ones(2, requires_grad=True)
    assert not operator(x).requires_grad
    torch.library.opcheck(operator.registered, (torch.ones(2),))
