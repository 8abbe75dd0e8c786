import pytest
import torch

from eamp.nn.models.random_propagation import RandomPropagation
from problems import normalised_adjacency, random_graph


def test_is_a_perceptron_on_the_mean_of_the_hops() -> None:
    torch.manual_seed(0)
    graph, x = random_graph(15, 30), torch.randn(15, 5, dtype=torch.float64)
    model = RandomPropagation(5, 8, 3, num_layers=4).double().eval()
    powers = [torch.linalg.matrix_power(normalised_adjacency(graph), k) for k in range(5)]
    mean = torch.stack(powers).mean(0) @ x
    torch.testing.assert_close(model(x, graph), model.decoder(model.encoder(mean).relu()))


def test_whole_rows_are_dropped_in_training_alone() -> None:
    torch.manual_seed(0)
    graph, x = random_graph(300, 600), torch.ones(300, 4)
    model = RandomPropagation(4, 4, 3, num_layers=0, drop_rows=0.5)  # no hops: rows stay apart
    model.encoder.weight.data, model.encoder.bias.data = torch.eye(4), torch.zeros(4)
    seen: list[torch.Tensor] = []
    model.decoder.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    model(x, graph)
    model.eval()(x, graph)
    rows = set(map(tuple, seen[0].tolist()))
    assert rows == {(0.0,) * 4, (2.0,) * 4}
    assert 100 < int((seen[0][:, 0] > 0).sum()) < 200
    assert torch.equal(seen[1], x)


def test_the_first_linear_map_comes_before_the_hops_only_where_they_commute() -> None:
    torch.manual_seed(0)
    graph, x = random_graph(15, 30), torch.randn(15, 5, dtype=torch.float64)
    options = {"dropout": 0.0, "input_dropout": 1e-12, "drop_rows": 0.0}
    model = RandomPropagation(5, 8, 3, num_layers=4, **options).double()
    widths: list[int] = []
    model.steps[-1].register_forward_hook(lambda *given: widths.append(given[-1].size(1)))
    expected = model(x, graph)  # in training, dropout stands between them
    torch.testing.assert_close(model.eval()(x, graph), expected)
    torch.testing.assert_close(model(x.to_sparse_csr(), graph), expected)
    assert widths == [5, 8, 8]
    stepped = RandomPropagation(5, 8, 3, num_layers=4, entropy={"weight": 0.5}).double().eval()
    normed = RandomPropagation(5, 8, 3, num_layers=4, batch_norm=True).double().eval()
    assert not stepped.commutes()
    assert not normed.commutes()


def test_without_dropout_and_dropped_rows_nothing_is_random() -> None:
    graph, x = random_graph(15, 30), torch.randn(15, 5)
    model = RandomPropagation(5, 8, 3, num_layers=2, drop_rows=0)
    assert torch.equal(model(x, graph), model(x, graph))


def test_dropouts_and_norms_are_where_the_paper_has_them() -> None:
    torch.manual_seed(0)
    graph, x = random_graph(400, 900), torch.rand(400, 6) + 1
    options = {"dropout": 0.8, "input_dropout": 0.25, "drop_rows": 0.0, "batch_norm": True}
    model = RandomPropagation(6, 32, 3, num_layers=2, **options)
    seen: list[torch.Tensor] = []
    for layer in (model.encoder, model.decoder):
        layer.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    model(x, graph)
    assert abs(float((seen[0] == 0).float().mean()) - 0.25) < 0.05
    assert abs(float((seen[1] == 0).float().mean()) - 0.8) < 0.05
    # Before dropout, inputs have mean 0 and variance 1 over the nodes.
    torch.testing.assert_close(0.75 * seen[0].square().mean(), torch.tensor(1.0), atol=0.1, rtol=0)


def test_a_walk_gives_every_node_a_mean_of_rows_with_norm_one() -> None:
    torch.manual_seed(0)
    graph, x = random_graph(15, 30), torch.rand(15, 5, dtype=torch.float64)
    options = {"walk": True, "normalize_rows": True, "mlp_layers": 1, "batch_norm": True}
    model = RandomPropagation(5, 8, 3, num_layers=4, **options).double().eval()
    model.input_norm.running_mean.copy_(torch.arange(5.0))
    loops = torch.eye(15, dtype=torch.float64)
    loops[tuple(graph.edge_index)] = 1
    walk = loops / loops.sum(1, keepdim=True)
    mean = torch.stack([torch.linalg.matrix_power(walk, k) for k in range(5)]).mean(0) @ x
    rows = mean / mean.norm(dim=1, keepdim=True)
    torch.testing.assert_close(model(x, graph), model.encoder(model.input_norm(rows)))


@pytest.mark.parametrize("layers", [1, 2])
def test_a_walk_commutes_with_the_linear_map(layers: int) -> None:
    torch.manual_seed(0)
    graph, x = random_graph(15, 30), torch.rand(15, 5, dtype=torch.float64)
    model = RandomPropagation(5, 8, 3, num_layers=4, walk=True, mlp_layers=layers).double().eval()
    assert model.commutes()
    late = model.encoder(model.propagated(x, graph))
    expected = late if layers == 1 else model.decoder(late.relu())
    torch.testing.assert_close(model(x, graph), expected)


def test_normalised_rows_do_not_commute_with_the_linear_map() -> None:
    assert not RandomPropagation(5, 8, 3, num_layers=4, normalize_rows=True).eval().commutes()


def test_another_number_of_layers_is_refused() -> None:
    with pytest.raises(ValueError, match="mlp_layers must be 1 or 2, but is 3"):
        RandomPropagation(5, 8, 3, num_layers=4, mlp_layers=3)


def test_with_a_restart_it_is_personalised_pagerank() -> None:
    torch.manual_seed(0)
    graph, x = random_graph(15, 30), torch.randn(15, 5, dtype=torch.float64)
    model = RandomPropagation(5, 8, 3, num_layers=4, restart=0.3, mlp_layers=1).double().eval()
    adjacency, h = normalised_adjacency(graph), x
    for _ in range(4):
        h = 0.7 * adjacency @ h + 0.3 * x
    torch.testing.assert_close(model(x, graph), model.encoder(h))
    with pytest.raises(ValueError, match="restart must be a number between 0 and 1, but is 2"):
        RandomPropagation(5, 8, 3, num_layers=4, restart=2)
