import math

import pytest
import torch
from torch_geometric.nn import GCN2Conv

import eamp
from eamp.nn.models.gcnii import GCNII, GCNIIConv
from problems import irregular_graph, random_graph


@pytest.mark.parametrize("layer", [1, 2, 64])
@pytest.mark.parametrize("weighted", [False, True])
def test_layer_equals_pygs(layer: int, weighted: bool) -> None:
    torch.manual_seed(0)
    graph = random_graph(20, 40, weighted=weighted)
    x, x_0 = torch.randn(2, 20, 6, dtype=torch.float64)
    ours = GCNIIConv(6, alpha=0.2, theta=0.7, layer=layer).double()
    theirs = GCN2Conv(6, alpha=0.2, theta=0.7, layer=layer, shared_weights=True).double()
    theirs.load_state_dict(ours.state_dict())
    weight = None if graph.edge_weight is None else graph.edge_weight.double()
    torch.testing.assert_close(ours(x, x_0, graph), theirs(x, x_0, graph.edge_index, weight))


def test_identity_mapping_grows_with_depth() -> None:
    model = GCNII(5, 8, 3, num_layers=3, theta=0.5)
    assert [conv.beta for conv in model.convs] == [math.log(0.5 / layer + 1) for layer in (1, 2, 3)]


def test_alpha_1_forgets_the_graph() -> None:
    torch.manual_seed(0)
    model, x = GCNII(5, 8, 3, num_layers=4, alpha=1.0), torch.randn(10, 5)
    no_edges = eamp.Graph(torch.empty(2, 0, dtype=torch.int64), 10)
    torch.testing.assert_close(model(x, irregular_graph()), model(x, no_edges))
