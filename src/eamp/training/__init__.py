"""Training on nodes, graphs or links: one loop, its protocols and its checkpoints."""

from eamp.training.checkpoints import CheckpointError, TrainingWarning
from eamp.training.loop import predict, train
from eamp.training.metrics import METRICS
from eamp.training.protocols import PROTOCOLS, Epoch, Protocol, selected
from eamp.training.result import Result

__all__ = [
    "METRICS",
    "PROTOCOLS",
    "CheckpointError",
    "Epoch",
    "Protocol",
    "Result",
    "TrainingWarning",
    "predict",
    "selected",
    "train",
]
