import pytest
import torch
from torch_geometric.nn import APPNP

from eamp.nn import MODELS
from eamp.nn.models.linear_propagation import LinearPropagation
from problems import normalised_adjacency, random_graph


@pytest.mark.parametrize("layers", [0, 1, 2, 10])
def test_alpha_0_is_a_power_of_the_adjacency(layers: int) -> None:
    torch.manual_seed(0)
    graph, x = random_graph(15, 30), torch.randn(15, 5, dtype=torch.float64)
    model = LinearPropagation(5, 8, 3, num_layers=layers, alpha=0.0).double()
    expected = torch.linalg.matrix_power(normalised_adjacency(graph), layers) @ model.mlp(x)
    torch.testing.assert_close(model(x, graph), expected)


@pytest.mark.parametrize("name", ["linear", "appnp"])
def test_is_appnp(name: str) -> None:
    torch.manual_seed(0)
    graph, x = random_graph(15, 30), torch.randn(15, 5, dtype=torch.float64)
    model = MODELS[name](5, 8, 3, num_layers=10, alpha=0.2).double()
    torch.testing.assert_close(
        model(x, graph), APPNP(K=10, alpha=0.2)(model.mlp(x), graph.edge_index)
    )


def test_one_layer_of_perceptron_is_a_linear_map() -> None:
    model = LinearPropagation(5, 8, 3, num_layers=2, mlp_layers=1)
    assert [tuple(parameter.shape) for parameter in model.parameters()] == [(3, 5), (3,)]


def test_input_dropout_is_that_of_the_features_alone() -> None:
    torch.manual_seed(0)
    graph, x = random_graph(15, 30), torch.ones(15, 5)
    model, seen = LinearPropagation(5, 8, 3, num_layers=2, dropout=0.0, input_dropout=0.5), []
    model.mlp.register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    model(x, graph)
    assert set(seen[0].unique().tolist()) == {0.0, 2.0}
    assert model.mlp.dropout == [0.0, 0.0]
    assert torch.equal(model.eval()(x, graph), model(x, graph))
    assert LinearPropagation(5, 8, 3, num_layers=2, dropout=0.3).input_dropout == 0.3
