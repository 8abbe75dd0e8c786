import pytest
import torch
import torch_geometric.nn
from torch import Tensor

import eamp
from eamp.nn.conv.pair_norm import PairNorm
from problems import irregular_graph

individually = pytest.mark.parametrize("scale_individually", [False, True])


@pytest.fixture
def x() -> Tensor:
    return 3.0 + torch.randn(10, 4, dtype=torch.float64)


@individually
def test_is_the_equation(x: Tensor, scale_individually: bool) -> None:
    centred = x - x.mean(0)
    norm = centred.norm(dim=1, keepdim=True)
    norm = norm if scale_individually else norm.square().mean().sqrt()
    for graph in (irregular_graph(), irregular_graph().edge_index):
        out = PairNorm(3.0, scale_individually)(x, graph)
        torch.testing.assert_close(out, 3.0 * centred / norm, rtol=1e-4, atol=0)


@individually
def test_is_pygs_norm(x: Tensor, scale_individually: bool) -> None:
    batch = torch.arange(2).repeat_interleave(5)
    edge_index = torch.tensor([[0, 1, 5, 6], [1, 0, 6, 5]])
    theirs = torch_geometric.nn.PairNorm(2.0, scale_individually)
    ours = PairNorm(2.0, scale_individually)
    assert torch.equal(ours(x, eamp.Graph(edge_index, 10)), theirs(x))
    batched = eamp.Graph(edge_index, 10, batch=batch)
    assert torch.equal(ours(x, batched), theirs(x, batch, 2))
    torch.testing.assert_close(ours(x, batched)[:5], theirs(x[:5]))


@individually
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_rounds_the_result_alone(
    dtype: torch.dtype, scale_individually: bool
) -> None:
    """The squares of these features, and their sum over channels, overflow float16."""
    x = (1000 + 300 * torch.randn(10, 64)).to(dtype)
    norm = PairNorm(1.0, scale_individually)
    found, expected = norm(x, irregular_graph()), norm(x.float(), irregular_graph())
    assert found.dtype == dtype
    torch.testing.assert_close(found, expected.to(dtype))
