"""Training of a node classifier: one loop, its protocols and its checkpoints."""

from eamp.training.loop import Result, train
from eamp.training.protocols import PROTOCOLS, Epoch, Protocol, selected

__all__ = ["PROTOCOLS", "Epoch", "Protocol", "Result", "selected", "train"]
