"""Training of a node classifier: one loop, its protocols and its checkpoints."""

from eamp.training.checkpoints import CheckpointError, TrainingWarning
from eamp.training.loop import Result, train
from eamp.training.protocols import PROTOCOLS, Epoch, Protocol, selected

__all__ = [
    "PROTOCOLS",
    "CheckpointError",
    "Epoch",
    "Protocol",
    "Result",
    "TrainingWarning",
    "selected",
    "train",
]
