"""A cell: one network on one dataset, trained once."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch.nn import Module
from torch_geometric.data import Data, HeteroData
from torch_geometric.transforms import NormalizeFeatures

from eamp.data import DataError, graph_digest, k_fold, link_split, load
from eamp.data.catalogue import FETCHED
from eamp.data.harder import CHANGES, split_name
from eamp.data.loading import GENERATORS
from eamp.data.parts import FOLDS
from eamp.experiments.schema import Job, Settings, check_model
from eamp.nn.models import MODELS
from eamp.nn.models.description import describe
from eamp.nn.models.graph_level import GraphLevel
from eamp.nn.step.options import PAPER
from eamp.spelling import did_you_mean
from eamp.training import Protocol, Result, train
from eamp.training.digests import joint_digest
from eamp.training.protocols import protocol_of
from eamp.training.ranges import check_range
from eamp.training.tasks import GraphTask, LinkTask, Task, TrainingData, task_of

EXAMPLES = {
    "entropy": '{"weight": 3}',
    "options": '{"theta": 0.5}',
    "changes": '{"epochs": 200}',
}

TASKS = ("auto", "nodes", "graphs", "links")

Stamp: TypeAlias = tuple[int, int, int]
GraphSettings: TypeAlias = tuple[str, bool, int, int, str]


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
        check_model(self.model, MODELS)
        if self.task not in TASKS:
            raise ValueError(
                f"task must be one of {', '.join(TASKS)}, but is {self.task!r}."
                f"{did_you_mean(str(self.task), TASKS)}"
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
        """Return the cell of a job in a store."""
        others = ("schema", "try", "graph")
        return cls(**{name: value for name, value in job.items() if name not in others})

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
        return self.data, self.normalize_features, self.split, seed, self.task

    @property
    def graph(self) -> TrainingData:
        """The dataset as :func:`eamp.training.train` takes it: with masks, or in three parts."""
        return load_graph(*self.graph_settings)

    @property
    def problem(self) -> Task:
        """The task of the dataset and the protocol; an error if they do not fit."""
        return task_of(self.graph, self.rules)

    @property
    def metric(self) -> str:
        """The metric of the protocol, or that of the task if the protocol names none."""
        return self.rules.metric or self.problem.target.metric

    @property
    def num_splits(self) -> int:
        """The number of splits or folds that the data have."""
        if isinstance(graph := self.graph, Data):
            return int(graph.num_splits)
        return 1 if isinstance(graph[0], Data) else FOLDS

    def build(self) -> Module:
        """Return the untrained network, initialised under the cell's seed.

        A model of graphs has a readout, ``mean`` unless ``options`` has another ``readout``. A
        model of links has as many outputs as hidden channels.
        """
        problem, options = self.problem, {**(self.options or {})}
        readout = options.pop("readout", "mean") if isinstance(problem, GraphTask) else None
        # Options of the step that are left out are the paper's, not the defaults of `EntropyStep`.
        entropy = None if self.entropy is None else {**PAPER, **self.entropy}
        torch.manual_seed(self.seed)
        outputs = self.width if isinstance(problem, LinkTask) else problem.target.outputs
        sizes = problem.num_features, self.width, outputs, self.depth
        try:
            model = MODELS[self.model](*sizes, dropout=self.dropout, entropy=entropy, **options)
            return model if readout is None else GraphLevel(model, readout)
        except TypeError as error:  # an option that the model does not have
            given, own = options or self.entropy, describe(self.model).options
            known = f" It has the options {', '.join(own)}." if own else ""
            guess = "".join(did_you_mean(name, own) for name in options if name not in own)
            raise ValueError(
                f"{self.model} cannot be made with {given}: {error}.{known}{guess}"
            ) from error

    def train(
        self, checkpoint: str | Path | None = None, *, model: Module | None = None, **options: Any
    ) -> Result:
        """Build the network and train it, or continue from ``checkpoint`` if that file exists.

        Args:
            checkpoint: a file that an earlier run of the same cell wrote.
            model: what :meth:`build` returned, for callers that use the trained network.
            options: further arguments of :func:`eamp.training.train`.
        """
        options |= {"seed": self.seed, "about": self.key}
        model = self.build() if model is None else model
        return train(model, self.graph, self.rules, checkpoint=checkpoint, **options)


def is_harder(name: str) -> bool:
    """Return whether a name asks for a harder version of data, as in ``missing_features:cora``."""
    return any(prefix in CHANGES for prefix, _ in split_name(name)[0])


def load_graph(
    name: str, normalize_features: bool = False, split: int = 0, seed: int = 0, task: str = "auto"
) -> TrainingData:
    """Return a dataset with the masks of a split, or in the three parts of a split.

    Data without masks have one, drawn at random. Many graphs are cut into folds, and the links of a
    graph are drawn.
    """
    return loaded(name, normalize_features, split, seed, task, file_stamp(name))


@lru_cache(maxsize=4)
def loaded(
    name: str, normalize_features: bool, split: int, seed: int, task: str, stamp: Stamp | None
) -> TrainingData:
    """Load a dataset; another ``stamp`` means that its file has been written since."""
    own = split if task == "nodes" else 0  # which of the masks that come with the data
    found = load(name, split=own or None, seed=seed)
    if isinstance(found, HeteroData):
        raise DataError(
            f"{name} is a typed graph, which the models here do not take; train a model of "
            "torch_geometric.nn.HeteroConv with a loop of your own (docs/typed_graphs.md)."
        )
    one = isinstance(found, Data)
    if one and task == "auto" and split:
        found = load(name, split=split, seed=seed)
    if task in (("graphs",) if one else ("nodes", "links")):
        has, fitting = ("one graph", "nodes or links") if one else ("many graphs", "graphs")
        raise ValueError(f"task {task} does not fit {name}, which has {has}; use {fitting}.")
    if normalize_features:
        normalize = NormalizeFeatures()
        found = normalize(found) if one else [normalize(graph) for graph in found]
    if task == "links":
        return link_split(found, split)
    return found if one else k_fold(found, split)


@lru_cache(maxsize=1024)
def digest_of_file(
    name: str, normalize_features: bool, split: int, seed: int, task: str, stamp: Stamp
) -> str:
    """Return the digest of the graph in a file, or of all its graphs."""
    found = loaded(name, normalize_features, split, seed, task, stamp)
    if isinstance(found, Data):
        return graph_digest(found)
    parts = [[part] if isinstance(part, Data) else part for part in found]
    graphs = (graph for part in parts for graph in part)
    return joint_digest({str(number): graph_digest(each) for number, each in enumerate(graphs)})


def file_stamp(name: str) -> Stamp | None:
    """Return what tells a version of a data file from another, or ``None`` if it is no file.

    The names of datasets and of generated graphs say which graph they are; a path does not.
    """
    text = split_name(name)[1]
    kind = text.partition(":")[0]
    if text.lower() in FETCHED or kind.lower() in GENERATORS or kind == "pyg":
        return None
    try:
        found = Path(text).expanduser().stat()
    except OSError:
        return None  # loading it says why
    return found.st_mtime_ns, found.st_size, found.st_ino
