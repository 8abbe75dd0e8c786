import pytest
import torch
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GCN

import eamp
from eamp.diagnostics import measure_by_graph
from problems import random_graph


@pytest.mark.parametrize("wrapped", [False, True])
def test_the_table_is_that_of_every_graph_alone(wrapped: bool) -> None:
    torch.manual_seed(0)
    graphs = [
        Data(x=torch.randn(n, 5).double(), edge_index=random_graph(n, 2 * n).edge_index)
        for n in (6, 9, 14)
    ]
    model = GCN(5, 8, num_layers=3, dropout=0.5).double()
    if wrapped:
        eamp.wrap(model, scale_free=True)
    table = measure_by_graph(model, Batch.from_data_list(graphs))
    assert len(table) == 9
    assert model.training
    model.eval()
    for number, graph in enumerate(graphs):
        with eamp.probe(model) as p:
            model(graph.x, graph.edge_index)
        found = table[table["graph"] == number].drop(columns="graph").reset_index(drop=True)
        alone = p.table()[found.columns]
        assert found[["layer", "name", "type", "nodes"]].equals(
            alone[["layer", "name", "type", "nodes"]]
        )
        numbers = found.select_dtypes("float")
        torch.testing.assert_close(
            torch.tensor(numbers.to_numpy()),
            torch.tensor(alone[numbers.columns].to_numpy()),
            rtol=1e-7,
            atol=1e-7,
            equal_nan=True,
        )


def test_one_graph_is_no_batch() -> None:
    graph = random_graph(5, 6)
    with pytest.raises(ValueError, match="from_data_list"):
        measure_by_graph(GCN(2, 2, 1), Data(x=torch.ones(5, 2), edge_index=graph.edge_index))
