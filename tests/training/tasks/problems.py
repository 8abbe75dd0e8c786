"""Small graphs with labels, and the three parts of them, for the tests of tasks."""

import torch
from torch.nn import Module
from torch_geometric.data import Data
from torch_geometric.utils import erdos_renyi_graph, to_undirected

import eamp
from eamp.nn import GCN, GraphLevel
from eamp.training import Protocol

SHORT = Protocol("val_loss", epochs=6, learning_rate=0.02, batch_size=8)


def small_graphs(kind: str = "classes", count: int = 40) -> list[Data]:
    """Graphs with and without a hub; labels are their kind, a number, or two answers."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        graphs = []
        for number in range(count):
            nodes = 12 + number % 5
            random = erdos_renyi_graph(nodes, 4 / nodes)
            spokes = torch.stack([torch.zeros(nodes - 1).long(), torch.arange(1, nodes)])
            hub = torch.cat([random[:, : nodes // 2], spokes], 1)
            edges = to_undirected(hub if number % 2 else random, num_nodes=nodes)
            degree = torch.bincount(edges[0], minlength=nodes).float()
            x = torch.stack([degree / 4, torch.randn(nodes)], 1)
            y = torch.tensor([number % 2])
            if kind == "numbers":
                y = degree.var().view(1)
            elif kind == "labels":
                y = torch.tensor([[number % 2, -1 if number % 7 == 0 else (number // 2) % 2]])
            graphs.append(Data(x, edges, y=y, num_nodes=nodes))
    return graphs


def graph_model(outputs: int = 2, readout: str = "mean", **options: object) -> Module:
    torch.manual_seed(0)
    inner = GCN(2, 8, outputs, num_layers=2, **options)  # type: ignore[arg-type]  # of many types
    return GraphLevel(inner, readout)  # type: ignore[arg-type]  # one of three


def link_parts() -> tuple[Data, Data, Data]:
    return eamp.data.link_split(eamp.data.load("csbm:nodes=80,features=8,seed=1"), val=0.1)


def link_model(**options: object) -> Module:
    torch.manual_seed(0)
    return GCN(8, 8, 8, num_layers=2, **options)  # type: ignore[arg-type]  # of many types
