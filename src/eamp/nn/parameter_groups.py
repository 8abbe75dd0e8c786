"""Weight decay that differs between the convolutions and the dense layers of a model."""

from __future__ import annotations

from typing import Any

from torch.nn import Module, Parameter

from eamp.nn.entropy_aware import EntropyAware
from eamp.nn.wrapping import message_passing_layers


def parameter_groups(
    model: Module, conv_decay: float = 0.01, dense_decay: float = 5e-4
) -> list[dict[str, Any]]:
    """Groups for a torch optimizer: message-passing layers, everything else, and what the entropy step learns, which never decays.

    Example:
        >>> import torch
        >>> from eamp.nn import GCNII
        >>> groups = parameter_groups(GCNII(16, 64, 7, num_layers=3), conv_decay=0.01, dense_decay=5e-4)
        >>> [(len(group["params"]), group["weight_decay"]) for group in groups]
        [(3, 0.01), (4, 0.0005)]
        >>> optimizer = torch.optim.Adam(groups, lr=0.01)
    """
    learned = [
        parameter
        for module in model.modules()
        if isinstance(module, EntropyAware)
        for parameter in step_parameters(module)
    ]
    convs = [
        parameter for _, layer in message_passing_layers(model) for parameter in layer.parameters()
    ]
    groups, seen = [], set[int]()
    for parameters, decay in (
        (learned, 0.0),
        (convs, conv_decay),
        (list(model.parameters()), dense_decay),
    ):
        members = [parameter for parameter in parameters if id(parameter) not in seen]
        members = list({id(parameter): parameter for parameter in members}.values())
        seen |= {id(parameter) for parameter in members}
        if members:
            groups.append({"params": members, "weight_decay": decay})
    return groups


def step_parameters(layer: EntropyAware) -> list[Parameter]:
    """The parameters of the step itself: a learned weight, temperature or schedule."""
    of_layer = {id(parameter) for parameter in layer.conv.parameters()}
    return [parameter for parameter in layer.parameters() if id(parameter) not in of_layer]
