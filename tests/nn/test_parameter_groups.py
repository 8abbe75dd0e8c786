import torch
import torch_geometric.nn as pyg

import eamp
from eamp.nn import GCNII, parameter_groups

LEARNED = {"weight": 1.0, "learn_weight": True, "learn_temperature": True}


def test_convolutions_and_dense_layers_decay_apart_and_the_step_not_at_all() -> None:
    model = GCNII(5, 8, 3, num_layers=4, entropy=LEARNED)
    names = {parameter: name for name, parameter in model.named_parameters()}
    groups = [
        ({names[parameter] for parameter in group["params"]}, group["weight_decay"])
        for group in parameter_groups(model, conv_decay=0.3, dense_decay=0.2)
    ]
    step = {f"convs.{i}.{name}" for i in range(4) for name in ("weight", "log_temperature")}
    convs = {f"convs.{i}.conv.weight1" for i in range(4)}
    dense = {f"{part}.{name}" for part in ("encoder", "decoder") for name in ("weight", "bias")}
    assert groups == [(step, 0.0), (convs, 0.3), (dense, 0.2)]
    assert len(parameter_groups(GCNII(5, 8, 3, num_layers=4))) == 2


def test_every_parameter_is_in_one_group_even_where_layers_are_shared() -> None:
    for model in (
        eamp.wrap(pyg.GCN(4, 8, num_layers=3), weight=1.0, learn_weight=True),
        eamp.nn.G2(4, 8, 3, num_layers=5),
    ):
        members = [parameter for group in parameter_groups(model) for parameter in group["params"]]
        assert len(members) == len({id(parameter) for parameter in members})
        assert {id(parameter) for parameter in members} == {
            id(parameter) for parameter in model.parameters()
        }
        torch.optim.Adam(parameter_groups(model))
