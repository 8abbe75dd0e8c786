import pytest
import torch
from torch import func

from eamp.ops import added


def test_the_sum_takes_the_memory_of_the_first_summand() -> None:
    x = torch.ones(3, 2)
    assert added(x, torch.tensor([1.0, 2.0])) is x
    assert x.tolist() == [[2.0, 3.0]] * 3


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_summands_of_another_dtype_are_promoted(dtype: torch.dtype) -> None:
    x, y = torch.ones(3, 2), torch.full((2,), 0.5, dtype=dtype)
    assert added(x, y).dtype == torch.promote_types(torch.float32, dtype)
    assert added(x, y).tolist() == [[1.5, 1.5]] * 3
    assert x.tolist() == [[1.0, 1.0]] * 3


def test_vmap_may_map_over_the_second_summand() -> None:
    many = torch.arange(8.0).reshape(4, 2)
    found = func.vmap(lambda y: added(torch.ones(3, 2), y))(many)
    torch.testing.assert_close(found, 1 + many.unsqueeze(1).expand(4, 3, 2))
