import pytest
import torch

from eamp.nn.models.gcnii import GCNII
from eamp.nn.models.gcniii import GCNIII
from problems import normalised_adjacency, random_graph


def test_gamma_mixes_gcnii_with_a_propagated_linear_model() -> None:
    torch.manual_seed(0)
    graph, x = random_graph(15, 30), torch.randn(15, 5, dtype=torch.float64)
    model = GCNIII(5, 8, 3, num_layers=4, gamma=0.3).double()
    deep = GCNII(5, 8, 3, num_layers=4).double()
    deep.load_state_dict(model.state_dict(), strict=False)
    linear = x @ model.wide.weight.T
    normalised = (linear - linear.mean(0)) / (linear.var(0, unbiased=False) + 1e-5).sqrt()
    wide = normalised_adjacency(graph) @ normalised
    torch.testing.assert_close(model(x, graph), 0.7 * deep(x, graph) + 0.3 * wide)


def test_every_technique_can_be_left_out() -> None:
    torch.manual_seed(0)
    graph, x = random_graph(15, 30), torch.randn(15, 5)
    model = GCNIII(5, 8, 3, 4, gamma=1.0, intersect_memory=False, batch_norm=False)
    torch.testing.assert_close(model(x, graph), model.wide(x))
    model = GCNIII(5, 8, 3, num_layers=4, gamma=0.0)
    deep = GCNII(5, 8, 3, num_layers=4)
    deep.load_state_dict(model.state_dict(), strict=False)
    assert torch.equal(model(x, graph), deep(x, graph))


def test_the_normalisation_has_nothing_to_learn() -> None:
    model = GCNIII(5, 8, 3, num_layers=1)
    assert not list(model.norm.parameters())
    assert model.wide.bias is None


@pytest.mark.parametrize("gamma", [-0.1, 1.5, "half"])
def test_gamma_is_a_share(gamma: float) -> None:
    with pytest.raises(ValueError, match="gamma must be a number between 0 and 1"):
        GCNIII(5, 8, 3, 4, gamma=gamma)
