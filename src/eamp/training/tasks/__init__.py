"""Tasks: labels of nodes, of graphs, or links between nodes."""

from collections.abc import Sequence
from typing import Any, TypeAlias

from torch_geometric.data import Data, Dataset

from eamp.training.protocols import Protocol
from eamp.training.tasks.graph_level import GraphTask
from eamp.training.tasks.link_prediction import LinkTask
from eamp.training.tasks.node_level import NodeTask
from eamp.training.tasks.task import Task

TrainingData: TypeAlias = "Data | Sequence[Data] | Sequence[Sequence[Data]]"


def task_of(data: TrainingData, protocol: Protocol) -> Task:
    """Return the task that data ask for, after checking them.

    A ``Data`` with masks is a graph with labels of its nodes. Three ``Data`` with
    ``edge_label_index`` are the parts of ``RandomLinkSplit``. Three sequences of ``Data`` are the
    training, validation and test graphs of a task at graph level.
    """
    if isinstance(data, Data):
        return NodeTask(data, protocol)
    parts: list[Any] = list(data) if isinstance(data, list | tuple) and len(data) == 3 else []
    if parts and all(isinstance(part, Data) and "edge_label_index" in part for part in parts):
        return LinkTask(parts, protocol)
    if parts and all(isinstance(part, Sequence | Dataset) for part in parts):
        return GraphTask(parts, protocol)
    hint = ""
    if isinstance(data, list | tuple | Dataset):
        hint = (
            " Of many graphs with labels pass eamp.data.k_fold(graphs); of a dataset with one "
            "graph pass dataset[0]."
        )
    elif isinstance(data, str):
        hint = f" Load it: eamp.data.load({data!r})."
    raise ValueError(
        "data must be a torch_geometric.data.Data, the three graphs of "
        "eamp.data.link_split(data), or three lists of graphs, but is "
        f"{type(data).__name__}.{hint}"
    )


__all__ = ["GraphTask", "LinkTask", "NodeTask", "Task", "TrainingData", "task_of"]
