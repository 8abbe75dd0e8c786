"""A cell: one network on one dataset, trained once."""

from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch.nn import Module
from torch_geometric.data import Data
from torch_geometric.transforms import NormalizeFeatures

from eamp.data import load
from eamp.experiments.schema import JSON_COLUMNS, TEXT_COLUMNS, Job, Settings, same_cell, upgraded
from eamp.nn.models import MODELS
from eamp.training import PROTOCOLS, Protocol, Result, train

__all__ = ["JSON_COLUMNS", "TEXT_COLUMNS", "Cell", "load_graph"]


@dataclass(frozen=True)
class Cell(Settings):
    """A model on a dataset, with its depth and seed and the protocol that trains it.

    The fields are those of :class:`~eamp.experiments.schema.Settings`.

    Example:
        >>> cell = Cell("gcn", "grid:4x4", depth=2, width=8, changes={"epochs": 3})
        >>> len(cell.train().history)
        3
    """

    def __post_init__(self) -> None:
        if self.model not in MODELS:
            raise ValueError(f"no model named {self.model!r}; there are {', '.join(MODELS)}.")
        if self.protocol not in PROTOCOLS:
            known = ", ".join(PROTOCOLS)
            raise ValueError(f"no protocol named {self.protocol!r}; there are {known}.")
        names = [field.name for field in fields(Protocol)]
        if unknown := sorted(set(self.changes or {}) - set(names)):
            raise ValueError(f"a protocol has no {', '.join(unknown)}; it has {', '.join(names)}.")
        _ = self.rules  # raises an error for values that the protocol cannot take
        object.__setattr__(self, "name", self.name or self.model)

    @classmethod
    def from_job(cls, job: Job) -> "Cell":
        """Return the cell of a job in a store, which an earlier version may have written."""
        return cls(**{k: v for k, v in upgraded(job).items() if k not in ("schema", "try")})

    @property
    def rules(self) -> Protocol:
        """The protocol with its changes."""
        return PROTOCOLS[self.protocol].with_changes(**(self.changes or {}))

    @property
    def graph(self) -> Data:
        """The dataset, with the masks of the cell's split."""
        return load_graph(self.data, self.normalize_features, self.split)

    def build(self) -> Module:
        """Return the untrained network, initialised under the cell's seed."""
        graph, options = self.graph, self.options or {}
        torch.manual_seed(self.seed)
        sizes = graph.num_features, self.width, graph.num_classes, self.depth
        try:
            return MODELS[self.model](*sizes, dropout=self.dropout, entropy=self.entropy, **options)
        except TypeError as error:  # an option that the model does not have
            given = options or self.entropy
            raise ValueError(f"{self.model} cannot be made with {given}: {error}.") from error

    def train(self, checkpoint: Path | None = None, **options: Any) -> Result:
        """Build the network and train it, or continue from ``checkpoint`` if that file exists.

        Args:
            checkpoint: a file that this or an earlier version of eamp wrote for the same cell.
            options: further arguments of :func:`eamp.training.train`.
        """
        options |= {"seed": self.seed, "about": self.key, "same_run": same_cell}
        return train(self.build(), self.graph, self.rules, checkpoint=checkpoint, **options)


@lru_cache(maxsize=4)
def load_graph(name: str, normalize_features: bool = False, split: int = 0) -> Data:
    """Return a dataset with the masks of a split; data without masks have one, drawn at random."""
    graph = load(name, split=split or None)
    return NormalizeFeatures()(graph) if normalize_features else graph
