"""A cell: one network on one dataset, trained once."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch.nn import Module
from torch_geometric.data import Data
from torch_geometric.transforms import NormalizeFeatures

from eamp.data import graph_digest, load
from eamp.data.harder import CHANGES, split_name
from eamp.data.loading import GENERATORS
from eamp.data.sources import SIZES
from eamp.experiments.schema import (
    JSON_COLUMNS,
    TEXT_COLUMNS,
    Job,
    Settings,
    same_cell,
    upgraded,
)
from eamp.nn.models import MODELS
from eamp.nn.models.description import describe
from eamp.nn.step.options import PAPER
from eamp.spelling import did_you_mean
from eamp.training import Protocol, Result, train
from eamp.training.protocols import check_range, protocol_of

EXAMPLES = {
    "entropy": '{"weight": 3}',
    "options": '{"theta": 0.5}',
    "changes": '{"epochs": 200}',
}

Stamp: TypeAlias = tuple[int, int, int]
GraphSettings: TypeAlias = tuple[str, bool, int, int]

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
            raise ValueError(
                f"no model named {self.model!r}; there are {', '.join(MODELS)}."
                f"{did_you_mean(self.model, MODELS)}"
            )
        for name, least in {"depth": 0, "width": 1}.items():
            check_range(name, getattr(self, name), int, least)
        check_range("dropout", self.dropout, float, 0, 1)
        check_range("seed", self.seed, int, -(2**63), 2**64 - 1)  # those that torch takes
        for name, example in EXAMPLES.items():
            value = getattr(self, name)
            if value is not None and not isinstance(value, dict):
                raise ValueError(f"{name} must be a mapping, as in {example}, but is {value!r}.")
        _ = self.rules  # raises an error for values that the protocol cannot take
        object.__setattr__(self, "name", self.name or self.model)
        if not str(self.name).isprintable():  # it could clear the terminal that shows it
            raise ValueError(f"name must be text of one line, but is {self.name!r}.")

    @classmethod
    def from_job(cls, job: Job) -> "Cell":
        """Return the cell of a job in a store, which an earlier version may have written."""
        others = ("schema", "try", "graph")
        return cls(**{name: value for name, value in upgraded(job).items() if name not in others})

    def check_graph(self, job: Job) -> None:
        """Raise an error if a job was queued for another graph than the one that is here."""
        if job.get("graph", self.graph_digest) != self.graph_digest:
            raise ValueError(
                f"{self.data} holds another graph than when this job was queued; bring the file "
                "back, or run the same command again to train on the new one."
            )

    @property
    def graph_digest(self) -> str | None:
        """The digest of a graph that is read from a file; ``None`` if its name says which it is."""
        stamp = file_stamp(self.data)
        return None if stamp is None else digest_of_file(*self.graph_settings, stamp)

    @property
    def job(self) -> Job:
        """All settings as a JSON object, and the digest of a graph that is read from a file."""
        found = self.graph_digest
        return super().job if found is None else {**super().job, "graph": found}

    @property
    def rules(self) -> Protocol:
        """The protocol with its changes."""
        return protocol_of(self.protocol).with_changes(**(self.changes or {}))

    @property
    def graph_settings(self) -> GraphSettings:
        """The arguments of :func:`load_graph`; only harder versions of data depend on the seed."""
        seed = self.seed % 2**64 if is_harder(self.data) else 0  # as torch reads negative seeds
        return self.data, self.normalize_features, self.split, seed

    @property
    def graph(self) -> Data:
        """The dataset, with the masks of the cell's split."""
        return load_graph(*self.graph_settings)

    def build(self) -> Module:
        """Return the untrained network, initialised under the cell's seed."""
        graph, options = self.graph, self.options or {}
        # Options of the step that are left out are the paper's, also in stores written before
        # `EntropyStep` had other defaults.
        entropy = None if self.entropy is None else {**PAPER, **self.entropy}
        torch.manual_seed(self.seed)
        sizes = graph.num_features, self.width, graph.num_classes, self.depth
        try:
            return MODELS[self.model](*sizes, dropout=self.dropout, entropy=entropy, **options)
        except TypeError as error:  # an option that the model does not have
            given, own = options or self.entropy, describe(self.model).options
            known = f" It has the options {', '.join(own)}." if own else ""
            guess = "".join(did_you_mean(name, own) for name in options if name not in own)
            raise ValueError(
                f"{self.model} cannot be made with {given}: {error}.{known}{guess}"
            ) from error

    def train(self, checkpoint: str | Path | None = None, **options: Any) -> Result:
        """Build the network and train it, or continue from ``checkpoint`` if that file exists.

        Args:
            checkpoint: a file that this or an earlier version of eamp wrote for the same cell.
            options: further arguments of :func:`eamp.training.train`.
        """
        options |= {"seed": self.seed, "about": self.key, "same_run": same_cell}
        return train(self.build(), self.graph, self.rules, checkpoint=checkpoint, **options)


def is_harder(name: str) -> bool:
    """Return whether a name asks for a harder version of data, as in ``missing_features:cora``."""
    return any(prefix in CHANGES for prefix, _ in split_name(name)[0])


def load_graph(name: str, normalize_features: bool = False, split: int = 0, seed: int = 0) -> Data:
    """Return a dataset with the masks of a split; data without masks have one, drawn at random."""
    return loaded(name, normalize_features, split, seed, file_stamp(name))


@lru_cache(maxsize=4)
def loaded(name: str, normalize_features: bool, split: int, seed: int, stamp: Stamp | None) -> Data:
    """Load a dataset; another ``stamp`` means that its file has been written since."""
    graph = load(name, split=split or None, seed=seed)
    return NormalizeFeatures()(graph) if normalize_features else graph


@lru_cache(maxsize=1024)
def digest_of_file(name: str, normalize_features: bool, split: int, seed: int, stamp: Stamp) -> str:
    """Return the digest of the graph in a file."""
    return graph_digest(loaded(name, normalize_features, split, seed, stamp))


def file_stamp(name: str) -> Stamp | None:
    """Return what tells a version of a data file from another, or ``None`` if it is no file.

    The names of datasets and of generated graphs say which graph they are; a path does not.
    """
    text = split_name(name)[1]
    kind = text.partition(":")[0]
    if text.lower() in SIZES or kind.lower() in GENERATORS or kind == "pyg":
        return None
    try:
        found = Path(text).expanduser().stat()
    except OSError:
        return None  # loading it says why
    return found.st_mtime_ns, found.st_size, found.st_ino
