"""GraphLevel: a readout over nodes, one graph at a time and in batches, for every kind of model."""

from typing import Any

import pytest
import torch
from torch_geometric import nn as pyg
from torch_geometric.data import Batch

import eamp
from eamp.nn import EGNN, G2, GCN, MODELS, GraphLevel, NoisyNodes
from eamp.nn.models.traits import traits
from problems import two_graphs


@pytest.mark.parametrize("readout", ["mean", "sum", "max"])
@pytest.mark.parametrize("name", ["gcn", "entropic-gcn", "gcnii", "gin", "pairnorm", "deep-gcn"])
def test_a_batch_gives_the_readouts_of_its_graphs(name: str, readout: str) -> None:
    torch.manual_seed(0)
    node_model, batch = MODELS[name](5, 8, 3, 2).eval(), two_graphs()
    model = GraphLevel(node_model, readout)  # type: ignore[arg-type]  # one of three
    out = model(batch.x, batch.edge_index, batch.batch)
    for row, data in zip(out, batch.to_data_list(), strict=True):
        nodes = node_model(data.x, data.edge_index)
        expected = nodes.amax(0) if readout == "max" else getattr(nodes, readout)(0)
        assert torch.allclose(row, expected, atol=1e-5)
        assert torch.allclose(model(data.x, data.edge_index)[0], expected, atol=1e-5)
    assert torch.allclose(model(batch.x, eamp.Graph(batch)), out, atol=1e-6)


def test_a_model_of_pyg_gets_its_edge_index() -> None:
    torch.manual_seed(0)
    inner, batch = pyg.GCN(5, 8, 2, 3), two_graphs()
    out = GraphLevel(inner)(batch.x, batch.edge_index, batch.batch)
    expected = pyg.global_mean_pool(inner(batch.x, batch.edge_index), batch.batch)
    assert torch.allclose(out, expected)


def alone(model: GraphLevel, batch: Batch) -> torch.Tensor:
    return torch.cat([model(data.x, data.edge_index) for data in batch.to_data_list()])


@pytest.mark.parametrize("bare", [None, "last", "all"])
@pytest.mark.parametrize("step", [{}, {"normalize": True}])
def test_graphs_do_not_mix_whatever_layers_of_pyg_are_bare(
    bare: str | None, step: dict[str, Any]
) -> None:
    torch.manual_seed(0)
    inner, batch = pyg.GCN(5, 8, 2, 3, norm="GraphNorm"), two_graphs()
    if bare != "all":
        inner = eamp.wrap(inner, skip=bare, **step)
    model = GraphLevel(inner).eval()
    out = model(batch.x, batch.edge_index, batch.batch)
    torch.testing.assert_close(out, alone(model, batch))


def test_layers_of_a_model_without_a_batch_know_the_graphs() -> None:
    class Bare(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = eamp.EntropyAware(pyg.GCNConv(5, 8), normalize=True)
            self.last = pyg.GCNConv(8, 3)

        def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
            return self.last(self.first(x, edge_index), edge_index)

    torch.manual_seed(0)
    model, batch = GraphLevel(Bare()).eval(), two_graphs()
    out = model(batch.x, batch.edge_index, batch.batch)
    torch.testing.assert_close(out, alone(model, batch))


def test_traits_are_those_of_the_model() -> None:
    assert traits(GraphLevel(GCN(5, 8, 3, 2))).probed_layers is None
    assert traits(GraphLevel(GCN(5, 8, 3, 2))).auxiliary_loss is None
    shared = GraphLevel(G2(5, 8, 3, num_layers=2))
    named = traits(shared).probed_layers
    assert named is None or set(named) <= {name for name, _ in shared.named_modules()}
    assert traits(GraphLevel(EGNN(5, 8, 3, 2))).auxiliary_loss is not None
    noisy = GraphLevel(NoisyNodes(GCN(5, 8, 8, 2), 3)).train()
    batch = two_graphs()
    noisy(batch.x, batch.edge_index, batch.batch)
    assert noisy.auxiliary_loss is not None
    assert noisy.auxiliary_loss().item() > 0


def test_resetting_draws_new_weights_and_another_readout_is_an_error() -> None:
    model = GraphLevel(GCN(5, 8, 3, 2))
    before = model.model.output.lin.weight.clone()
    model.reset_parameters()
    assert not torch.equal(model.model.output.lin.weight, before)
    with pytest.raises(ValueError, match="readout must be one of 'mean', 'sum', 'max', but is 'a'"):
        GraphLevel(GCN(5, 8, 3, 2), "a")  # type: ignore[arg-type]  # a mistake
