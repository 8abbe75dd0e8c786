import pytest
import torch
from torch import Tensor

import eamp
from eamp.nn.models.ggcm import GGCM, negative_graph
from problems import normalised_adjacency, random_graph, undirected


def inverse_operator(graph: eamp.Graph) -> Tensor:
    """(D + 2I)^(−1/2) (2I − A) (D + 2I)^(−1/2), as a dense matrix."""
    a = torch.zeros(graph.num_nodes, graph.num_nodes, dtype=torch.float64)
    a[tuple(graph.edge_index)] = 1.0
    scale = (a.sum(1) + 2).rsqrt()
    return scale.unsqueeze(1) * (2 * torch.eye(graph.num_nodes) - a) * scale


def test_propagated_features_and_a_linear_classifier_give_the_same() -> None:
    """The published order: propagate the features of the nodes, then classify."""
    torch.manual_seed(0)
    graph, x = random_graph(60, 90), torch.randn(60, 5, dtype=torch.float64)
    options = {"alpha": 0.2, "decline": 0.9, "decline_negative": 0.5, "negatives": 4}
    model = GGCM(5, 8, 3, num_layers=3, **options).double()
    smooth, total, identity = x, torch.zeros_like(x), torch.eye(60, dtype=torch.float64)
    for t in range(3):
        negative = negative_graph(graph, 4, int(model.seed) + t)
        lazy = 0.9**t * normalised_adjacency(graph) + (1 - 0.9**t) * identity
        inverse = 0.5**t * inverse_operator(negative) + (1 - 0.5**t) * identity
        total = total + (lazy @ smooth + inverse @ smooth) / 2
        smooth = lazy @ smooth
    expected = model.lin(0.2 * x + 0.8 * total / 3)
    torch.testing.assert_close(model(x, graph), expected)


def test_the_random_graphs_are_nearly_regular_and_differ_by_seed() -> None:
    graph = random_graph(500, 1000)
    one, same, other = (negative_graph(graph, 5, seed) for seed in (1, 1, 2))
    assert one is same  # drawn once
    degree = 2 * -(-int(5 * 2 * graph.num_edges / 500) // 2)  # even
    assert one.degree.max() <= degree
    assert degree - 1 < one.degree.mean() <= degree
    assert not torch.equal(one.edge_index, other.edge_index)
    assert not (one.edge_index[0] == one.edge_index[1]).any()


def test_the_seed_of_the_random_graphs_is_kept_with_the_weights() -> None:
    torch.manual_seed(0)
    graph, x = random_graph(200, 300), torch.randn(200, 5)
    model, other = GGCM(5, 8, 3, num_layers=2, negatives=3), GGCM(5, 8, 3, 2, negatives=3)
    assert int(model.seed) != int(other.seed)
    assert torch.equal(model(x, graph), model(x, graph))
    other.lin.load_state_dict(model.lin.state_dict())
    assert not torch.equal(model(x, graph), other(x, graph))
    other.load_state_dict(model.state_dict())
    assert torch.equal(model(x, graph), other(x, graph))


def test_random_graphs_do_not_join_the_graphs_of_a_batch() -> None:
    graph = eamp.Graph(undirected((0, 1), (2, 3)), batch=torch.tensor([0, 0, 1, 1]))
    with pytest.raises(ValueError, match="would join the 2 graphs of a batch; pass negatives=0"):
        GGCM(5, 8, 3, num_layers=2)(torch.randn(4, 5), graph)
    model, x = GGCM(5, 8, 3, num_layers=2, negatives=0), torch.randn(4, 5)
    alone = [model(x[:2], undirected((0, 1))), model(x[2:], undirected((0, 1)))]
    torch.testing.assert_close(model(x, graph), torch.cat(alone))


def test_without_negatives_it_is_a_mean_over_the_hops() -> None:
    graph, x = random_graph(15, 30), torch.randn(15, 5, dtype=torch.float64)
    model = GGCM(5, 8, 3, num_layers=4, alpha=0.0, negatives=0).double()
    powers = [torch.linalg.matrix_power(normalised_adjacency(graph), k) for k in range(1, 5)]
    torch.testing.assert_close(model(x, graph), model.lin(torch.stack(powers).mean(0) @ x))


def test_shares_and_ratios_are_checked() -> None:
    with pytest.raises(ValueError, match="decline must be a number between 0 and 1"):
        GGCM(5, 8, 3, 4, decline=1.5)
    with pytest.raises(ValueError, match="negatives must be a number >= 0, but is -1"):
        GGCM(5, 8, 3, 4, negatives=-1)
