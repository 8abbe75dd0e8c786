"""A small graph, a network with dropout and a short protocol, for the tests of training."""

import torch
from torch.nn import Module
from torch_geometric.data import Data

import eamp
from eamp.nn import GCNII
from eamp.training import Protocol

SHORT = Protocol("val_loss", epochs=12, learning_rate=0.01, weight_decay=5e-4, schedule="cosine")


def graph() -> Data:
    return eamp.data.load("csbm:nodes=80,features=8,classes=3,seed=1")


def network(seed: int = 0, **options: object) -> Module:
    torch.manual_seed(seed)
    data, given = graph(), {"num_layers": 3, "dropout": 0.5, **options}
    return GCNII(data.num_features, 8, data.num_classes, **given)  # type: ignore[arg-type]  # of many types
