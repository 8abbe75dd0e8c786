"""``Task``: the parts of training that differ between nodes, graphs and links."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor
from torch.nn import Module

from eamp.graph import Graph
from eamp.nn.conv.from_pyg import with_weights
from eamp.nn.wrapping import has_bare_layers
from eamp.training.process import SingleProcess
from eamp.training.protocols import Figures, Protocol
from eamp.training.targets import Target

Part = Literal["val", "test"]
PARTS = ("train", "val", "test")


class Task(ABC):
    """Data with a loss and figures; the training loop asks it for everything that it needs.

    A task is made of data and a protocol, which it checks, and is then started with a model.
    """

    name: ClassVar[str]
    """Its name in recipes."""
    protocol: Protocol
    """The protocol, with the metric of the task."""
    target: Target
    num_features: int
    """Number of features of a node."""
    process = SingleProcess()

    @property
    @abstractmethod
    def digest(self) -> str:
        """The digest of everything that training reads from the data."""

    @abstractmethod
    def start(self, model: Module, process: SingleProcess, seed: int) -> None:
        """Take the model, and raise an error if its sizes do not fit the data."""

    @abstractmethod
    def batches(self, epoch: int) -> Iterable[Any]:
        """Return the mini-batches of an epoch, which depend on the seed and the epoch alone."""

    @abstractmethod
    def loss(self, batch: Any) -> Tensor:
        """Return the training loss of a mini-batch."""

    @abstractmethod
    def outputs(self, part: Part) -> tuple[Tensor, Tensor]:
        """Return the outputs of the model in evaluation mode, and the labels, of a part."""

    @abstractmethod
    def example(self) -> Tensor:
        """Call the model on the rows on which the energies of its layers are measured."""

    def figures(self, losses: list[Tensor]) -> Figures:
        """Return the figures of an epoch, given the losses of its mini-batches."""
        (val, val_y), test = self.outputs("val"), self.outputs("test")
        val_loss = self.target.validation_loss(val, val_y, self.process)
        train_loss = torch.stack(losses).mean()
        return self.target.figures((float(train_loss), float(val_loss)), (val, val_y), test)


def call_on(model: Module, graph: Graph) -> Callable[[Tensor], Tensor]:
    """Return a function of the features that calls the model on all of the graph.

    A model with bare layers of PyG gets an ``edge_index``, and the weights if it takes any.
    """
    if not has_bare_layers(model):
        return lambda x: model(x, graph)
    edge_index, weights = graph.edge_index, with_weights(model, graph, {})
    return lambda x: model(x, edge_index, **weights)


def copy_of_state(model: Module) -> dict[str, Tensor]:
    """Return a copy of the model's parameters and buffers."""
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def require_one_process(process: SingleProcess, what: str) -> None:
    """Raise a ValueError if the graph is spread over several processes."""
    if process.size > 1:
        raise ValueError(
            f"{what} runs in one process, but there are {process.size}; start it without torchrun "
            "and --partition."
        )
