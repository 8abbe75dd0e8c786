"""Parameter groups with different weight decay for convolutions and dense layers."""

from typing import Any

from torch.nn import Module

from eamp.nn.entropy_aware import EntropyAware
from eamp.nn.wrapping import message_passing_layers


def parameter_groups(
    model: Module, conv_decay: float = 0.01, dense_decay: float = 5e-4
) -> list[dict[str, Any]]:
    """Return parameter groups for a torch optimizer, each with its own weight decay.

    Args:
        model: Any model.
        conv_decay: Weight decay of the message-passing layers.
        dense_decay: Weight decay of all other layers.

    Returns:
        Up to three groups, without empty ones: the learned weights, temperatures and schedules of
        entropy steps, which never decay; the message-passing layers; all other parameters.

    Example:
        >>> import torch
        >>> from eamp.nn import GCNII
        >>> groups = parameter_groups(GCNII(16, 64, 7, num_layers=3), conv_decay=0.01)
        >>> [(len(group["params"]), group["weight_decay"]) for group in groups]
        [(3, 0.01), (4, 0.0005)]
        >>> optimizer = torch.optim.Adam(groups, lr=0.01)
    """
    wrappers = [module for module in model.modules() if isinstance(module, EntropyAware)]
    wrapped = {parameter for wrapper in wrappers for parameter in wrapper.conv.parameters()}
    learned = [p for wrapper in wrappers for p in wrapper.parameters() if p not in wrapped]
    convs = [p for _, layer in message_passing_layers(model) for p in layer.parameters()]
    groups, seen = [], set[Any]()
    candidates = ((learned, 0.0), (convs, conv_decay), (model.parameters(), dense_decay))
    for parameters, decay in candidates:
        members = [p for p in dict.fromkeys(parameters) if p not in seen]
        seen.update(members)
        if members:
            groups.append({"params": members, "weight_decay": decay})
    return groups
