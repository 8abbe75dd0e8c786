import math
from typing import Any

import pytest
import torch
from torch_geometric.nn import GCN2Conv

import eamp
from eamp.nn.conv.deep_conv import GCNIIConv
from eamp.nn.models.gcnii import GCNII
from eamp.ops.dropout import dropout
from problems import irregular_graph

STEP = {"weight": 0.3, "temperature": 1.0}


def test_is_a_stack_of_pygs_convolutions() -> None:
    graph, x = irregular_graph(), torch.randn(10, 5)
    model = GCNII(5, 8, 3, num_layers=4, alpha=0.2, theta=0.7)
    h = x_0 = model.encoder(x).relu()
    for layer, ours in enumerate(model.convs, start=1):
        theirs = GCN2Conv(8, alpha=0.2, theta=0.7, layer=layer, shared_weights=True)
        theirs.load_state_dict(ours.state_dict())
        h = theirs(h, x_0, graph.edge_index).relu()
    torch.testing.assert_close(model(x, graph), model.decoder(h))


@pytest.mark.parametrize("placement", [None, "output", "input"])
def test_dropout_comes_before_the_layer_and_its_step(placement: str | None) -> None:
    graph, x = irregular_graph(), torch.randn(10, 5)
    entropy: dict[str, Any] = STEP if placement is None else {**STEP, "placement": placement}
    model = GCNII(5, 8, 3, num_layers=3, dropout=0.4, entropy=entropy)
    torch.manual_seed(1)
    h = x_0 = model.encoder(dropout(x, 0.4)).relu()
    for layer in model.convs:
        h = dropout(h, 0.4)
        out = layer.conv(h, x_0, graph)
        at = h if placement == "input" else out
        h = (out + 0.3 * eamp.entropy_gradient(at, graph, 1.0)).relu()
    expected = model.decoder(dropout(h, 0.4))
    torch.manual_seed(1)
    torch.testing.assert_close(model(x, graph), expected)


def test_names_in_state_dicts_are_those_of_earlier_versions_and_of_pyg() -> None:
    """Checkpoints of all versions are read by all versions."""
    ends = ["encoder.weight", "encoder.bias"], ["decoder.weight", "decoder.bias"]
    for entropy, name in ((None, "convs.{}.weight1"), (STEP, "convs.{}.conv.weight1")):
        model = GCNII(5, 8, 3, num_layers=3, entropy=entropy)
        assert list(model.state_dict()) == [*ends[0], *map(name.format, range(3)), *ends[1]]


def test_identity_mapping_grows_with_depth() -> None:
    model = GCNII(5, 8, 3, num_layers=3, theta=0.5)
    assert all(isinstance(conv, GCNIIConv) for conv in model.convs)
    assert [conv.beta for conv in model.convs] == [math.log(0.5 / layer + 1) for layer in (1, 2, 3)]


def test_alpha_1_forgets_the_graph() -> None:
    torch.manual_seed(0)
    model, x = GCNII(5, 8, 3, num_layers=4, alpha=1.0), torch.randn(10, 5)
    no_edges = eamp.Graph(torch.empty(2, 0, dtype=torch.int64), 10)
    torch.testing.assert_close(model(x, irregular_graph()), model(x, no_edges))
