"""Attention, edge features, learned and signed edge weights under the step (docs/limits.md)."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import Module, ModuleList
from torch_geometric.data import Batch, HeteroData
from torch_geometric.nn import (
    GATConv,
    GATv2Conv,
    GCNConv,
    GPSConv,
    HeteroConv,
    SAGEConv,
    TransformerConv,
)

import eamp

EDGES = torch.tensor([[0, 1, 1, 2, 2, 3, 3, 0, 1, 3], [1, 0, 2, 1, 3, 2, 0, 3, 3, 1]])


def features(width: int = 6) -> Tensor:
    return torch.randn(5, width, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


class Blocks(Module):
    """Layers one after the other, as in the GPS and transformer examples of PyG."""

    def __init__(self, make: Callable[[], Module], layers: int = 3) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.convs = ModuleList(make() for _ in range(layers)).double()

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        for conv in self.convs:
            x = conv(x, edge_index)
        return x


@pytest.mark.parametrize(
    "conv",
    [
        GATConv(6, 3, heads=2, edge_dim=2),
        GATv2Conv(6, 3, heads=2, edge_dim=2),
        TransformerConv(6, 3, heads=2, edge_dim=2),
    ],
    ids=lambda conv: type(conv).__name__,
)
def test_attention_and_edge_features_are_the_layers_own(conv: Any) -> None:
    """The energy is that of the unweighted graph, at an output that attention has made."""
    conv, x = conv.double(), features()
    edge_attr = torch.rand(EDGES.size(1), 2, dtype=torch.float64)
    out = conv(x, EDGES, edge_attr=edge_attr)
    expected = out + 0.5 * 2.0 * eamp.entropy_gradient(out, EDGES, 2.0)
    found = eamp.EntropyAware(conv, 0.5, 2.0)(x, EDGES, edge_attr=edge_attr)
    assert torch.allclose(found, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("make", [lambda: GATConv(6, 6), lambda: TransformerConv(6, 6)])
def test_attention_layers_are_wrapped_probed_and_diagnosed(make: Callable[[], Module]) -> None:
    model = Blocks(make)
    with eamp.probe(model) as p:
        model(features(), EDGES)
    assert len(p.table()) == 3
    wrapped = eamp.wrap(model, weight=0.3)
    assert wrapped(features(), EDGES).shape == (5, 6)
    assert eamp.diagnose(wrapped, (features(), EDGES)).kind


def test_a_gps_block_takes_the_step_inside_or_at_its_output() -> None:
    def make() -> Module:
        return GPSConv(6, GCNConv(6, 6), heads=2, dropout=0.0)

    x = features()
    inside = eamp.wrap(Blocks(make), weight=0.5, temperature=2.0)
    layers = [module for module in inside.modules() if isinstance(module, eamp.EntropyAware)]
    assert [type(layer.conv) for layer in layers] == [GCNConv] * 3
    assert inside(x, EDGES).shape == (5, 6)
    whole = eamp.wrap(Blocks(make, 1), only=GPSConv, weight=0.5, temperature=2.0).eval()
    block: Any = whole.convs[0]  # type: ignore[index]
    out = block.conv(x, EDGES)
    expected = out + 0.5 * 2.0 * eamp.entropy_gradient(out, EDGES, 2.0)
    assert torch.allclose(whole(x, EDGES), expected, rtol=0, atol=1e-9)
    with eamp.probe(whole, layers=eamp.EntropyAware) as p:
        whole(x, EDGES)
    assert list(p.type) == ["EntropyAware(GPSConv)"]


def test_learned_edge_weights_reach_the_loss_through_the_layer_and_the_step() -> None:
    """Beside an ``edge_index`` they belong to the layer; the step follows its output exactly."""
    conv, x = GCNConv(6, 6).double(), features()
    layer = eamp.EntropyAware(conv, 0.5, 2.0)
    weight = torch.rand(EDGES.size(1), dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda w: layer(x, EDGES, w), (weight,))
    # Detached, the step passes no gradient on, and the layer alone does.
    detached = eamp.EntropyAware(conv, 0.5, 2.0, detach=True)(x, EDGES, weight).sum()
    (found,) = torch.autograd.grad(detached, weight)
    (alone,) = torch.autograd.grad(conv(x, EDGES, weight).sum(), weight)
    assert torch.allclose(found, alone)


def test_learned_weights_of_the_energy_are_refused_rather_than_lost() -> None:
    weight = torch.rand(EDGES.size(1), requires_grad=True)
    with pytest.raises(eamp.GraphError, match=r"edge_weight\.detach\(\)"):
        eamp.Graph(EDGES, 5, edge_weight=weight)
    adjacency = torch.sparse_coo_tensor(EDGES, weight, (5, 5))
    with pytest.raises(eamp.GraphError, match="require a gradient"):
        eamp.entropy(features(), adjacency)


def test_signed_weights_are_refused_by_the_energy_and_left_to_the_layer() -> None:
    weight = torch.ones(EDGES.size(1), dtype=torch.float64)
    weight[:2] = -1.0
    with pytest.raises(eamp.GraphError, match=r"finite and >= 0.*-1\.0"):
        eamp.Graph(EDGES, 5, edge_weight=weight)
    conv, x = GCNConv(6, 6, normalize=False).double(), features()
    out = conv(x, EDGES, weight)
    expected = out + 0.5 * 2.0 * eamp.entropy_gradient(out, EDGES, 2.0)
    found = eamp.EntropyAware(conv, 0.5, 2.0)(x, EDGES, weight)
    assert torch.allclose(found, expected, rtol=0, atol=1e-9)
    # Split by sign, each part is a graph.
    parts = [eamp.Graph(EDGES[:, keep], 5) for keep in (weight > 0, weight < 0)]
    assert [part.num_edges for part in parts] == [4, 1]


def test_typed_graphs_of_a_batch_share_the_means_of_their_types() -> None:
    """A typed graph keeps its step beside its copy, and not beside graphs with other means."""

    def typed(shift: float) -> HeteroData:
        data = HeteroData()
        for kind, rows in (("author", features()), ("paper", features().flip(0))):
            data[kind].x = rows.clone()
            data[kind].x[0] += shift
        data["author", "writes", "paper"].edge_index = EDGES
        data["paper", "rev_writes", "author"].edge_index = EDGES.flip(0)
        return data

    torch.manual_seed(0)
    convs = {edge_type: SAGEConv((6, 6), 3).double() for edge_type in typed(0.0).edge_types}
    model = eamp.wrap(HeteroConv(convs), weight=0.5, temperature=2.0)
    alone = model(typed(0.0).x_dict, typed(0.0).edge_index_dict)["paper"]
    for shift, same in ((0.0, True), (3.0, False)):
        batch = Batch.from_data_list([typed(0.0), typed(shift)])
        beside = model(batch.x_dict, batch.edge_index_dict)["paper"][:5]
        assert torch.allclose(beside, alone, rtol=0, atol=1e-9) == same
