"""Training a node classifier: one loop, its protocols and its checkpoints."""

from eamp.training.loop import PROTOCOLS, Epoch, Protocol, Result, selected, train

__all__ = ["PROTOCOLS", "Epoch", "Protocol", "Result", "selected", "train"]
