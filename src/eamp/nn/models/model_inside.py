"""The base class of modules around a model, whose layers and loss are those of the model."""

from collections.abc import Callable

from torch import Tensor
from torch.nn import Module
from torch_geometric.nn.inits import reset

from eamp.nn.models.traits import layers_inside, traits


class ModelInside(Module):
    """A module that runs its child ``model``."""

    model: Module

    @property
    def probed_layers(self) -> list[str] | None:
        """The layers of the model that a probe measures, by their names in this module."""
        return layers_inside("model", self.model)

    @property
    def auxiliary_loss(self) -> Callable[[], Tensor] | None:
        """The auxiliary loss of the model, if it has one."""
        return traits(self.model).auxiliary_loss

    def reset_parameters(self) -> None:
        """Reset the model."""
        reset(self.model)
