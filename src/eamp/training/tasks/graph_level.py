"""``GraphTask``: labels of many graphs, in mini-batches."""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric.data import Batch, Data
from torch_geometric.loader import DataLoader

from eamp.data.seeding import generator
from eamp.graph import Graph
from eamp.nn.conv.from_pyg import with_weights
from eamp.nn.models.node_classifier import NodeClassifier
from eamp.nn.models.traits import traits
from eamp.nn.wrapping import has_bare_layers
from eamp.training.digests import data_digest, joint_digest
from eamp.training.inputs import check_labels, first_output
from eamp.training.process import SingleProcess
from eamp.training.protocols import Protocol
from eamp.training.targets import resolved, target_of
from eamp.training.tasks.task import PARTS, Part, Task, copy_of_state, require_one_process


class Examples(NamedTuple):
    """A mini-batch: the call of the model on its graphs, and their labels."""

    call: Callable[[], Tensor]
    y: Tensor


class GraphTask(Task):
    """Many graphs with one row of labels each: an epoch has a step for every mini-batch.

    A class below 0, or a label that is NaN or below 0, is missing and does not count.

    Args:
        parts: training, validation and test graphs, as sequences or datasets of PyG.
        protocol: the settings of the run; ``batch_size`` is the number of graphs per step.
    """

    name = "graphs"

    def __init__(self, parts: Sequence[Sequence[Data]], protocol: Protocol) -> None:
        given = dict(zip(PARTS, map(list, parts), strict=True))
        for name, graphs in given.items():
            check_graphs(name, graphs, like=given["train"])
        self.parts = {name: list(map(fields_read, graphs)) for name, graphs in given.items()}
        self.num_features = self.parts["train"][0].num_features
        labels = {
            name: torch.cat([graph.y for graph in graphs])
            for name, graphs in self.parts.items()
            if graphs
        }
        self.target = target_of(torch.cat(list(labels.values())), protocol)
        self.protocol = resolved(protocol, self.target)
        for name in ("consistency", "pseudo_labels"):
            if getattr(self.protocol, name) is not None:
                raise ValueError(f"{name} is for the nodes of one graph; leave it out.")
        columns = {f"the {name} part": self.target.column(y) for name, y in labels.items()}
        known = {name: y[self.labelled(y)] for name, y in columns.items()}
        check_labels(known, self.target, "graphs", "choose another split")
        # A mini-batch without any label would have no loss.
        rows = self.labelled(self.target.column(labels["train"])).tolist()
        self.learned = [g for g, has in zip(self.parts["train"], rows, strict=True) if has]

    @cached_property
    def digest(self) -> str:
        """The digest of all graphs."""
        parts = self.parts.items()
        return joint_digest({name: "".join(map(data_digest, graphs)) for name, graphs in parts})

    def labelled(self, y: Tensor) -> Tensor:
        """Return which rows of the target's column have a label, ``[n]``."""
        return y >= 0 if self.target.kind == "classes" else ~y.isnan().all(1)

    def start(self, model: Module, process: SingleProcess, seed: int) -> None:
        """Take the model, and join validation and test graphs to mini-batches once."""
        require_one_process(process, "training on many graphs")
        if isinstance(model, NodeClassifier):
            raise ValueError(
                f"{type(model).__name__} has outputs for nodes, but the labels are those of "
                "graphs; pass eamp.nn.GraphLevel(model, readout='mean')."
            )
        self.model, self.process, self.seed, self.told = model, process, seed, traits(model)
        self.edge_index_only = has_bare_layers(model)
        size = self.protocol.batch_size
        self.evaluated = {
            part: [self.examples(batch) for batch in DataLoader(self.parts[part], size)]
            for part in PARTS[1:]
        }
        before = copy_of_state(model)
        with torch.no_grad():
            out = first_output(self.example, self.num_features)
        model.load_state_dict(before)  # calibrated temperatures may have changed
        if out.dim() != 2 or out.size(0) != len(self.evaluated["val"][0].y):
            raise ValueError(
                f"the model returns shape {list(out.shape)} for {len(self.evaluated['val'][0].y)} "
                "graphs, but one row per graph is needed; pass eamp.nn.GraphLevel(model)."
            )
        self.target.check_outputs(out)

    def examples(self, batch: Batch) -> Examples:
        """Return the call of the model on a batch of graphs, and their labels."""
        graph, model, x, index = Graph(batch), self.model, batch.x, batch.batch
        y = self.target.column(batch.y)
        if not self.edge_index_only:
            return Examples(lambda: model(x, graph, index), y)
        weights = with_weights(model, graph, {})
        return Examples(lambda: model(x, graph.edge_index, index, **weights), y)

    def batches(self, epoch: int) -> Iterable[Examples]:
        """Return mini-batches of labelled training graphs, in an order of this epoch's own."""
        order = generator(self.seed, epoch)
        size = self.protocol.batch_size
        loader = DataLoader(self.learned, size, shuffle=True, generator=order)
        return map(self.examples, loader)

    def loss(self, batch: Examples) -> Tensor:
        """Return the loss over the graphs of a batch, with the auxiliary loss of the model."""
        loss = self.target.loss(batch.call(), batch.y, self.protocol, self.process)
        return loss if self.told.auxiliary_loss is None else loss + self.told.auxiliary_loss()

    @torch.no_grad()
    def outputs(self, part: Part) -> tuple[Tensor, Tensor]:
        """Return the outputs and labels of the validation or test graphs that have a label."""
        self.model.eval()
        out, y = [torch.empty(0, self.target.outputs)], [self.parts["train"][0].y[:0]]
        if batches := self.evaluated[part]:
            out, y = [batch.call() for batch in batches], [batch.y for batch in batches]
        column = self.target.column(torch.cat(y))
        rows = self.labelled(column)
        return torch.cat(out)[rows], column[rows]

    def example(self) -> Tensor:
        """Call the model on the first mini-batch of validation graphs."""
        self.model.eval()
        return self.evaluated["val"][0].call()


def check_graphs(name: str, graphs: Sequence[object], like: Sequence[Any]) -> None:
    """Raise a ValueError unless every graph has features, edges and one row of labels.

    The first graph of ``like`` says how many features and labels there are.
    """
    if not graphs and name != "test":
        raise ValueError(f"the {name} part has no graph; training and selection need at least one.")
    for number, graph in enumerate(graphs):
        if not isinstance(graph, Data):
            raise ValueError(
                f"graph {number} of the {name} part must be a torch_geometric.data.Data, but is "
                f"{type(graph).__name__}."
            )
        needed = ("x", "edge_index", "y")
        if missing := [each for each in needed if not isinstance(graph.get(each), Tensor)]:
            advice = (
                " torch_geometric.transforms.Constant()(graph) gives every node the feature 1."
                if missing == ["x"]
                else ""
            )
            raise ValueError(
                f"graph {number} of the {name} part has no {', '.join(missing)}; training needs "
                f"{', '.join(needed)}.{advice}"
            )
        if graph.x.size(0) == 0:
            raise ValueError(f"graph {number} of the {name} part has no nodes; leave it out.")
        if graph.y.dim() not in (0, 1, 2) or (graph.y.dim() > 0 and graph.y.size(0) != 1):
            raise ValueError(
                f"y of graph {number} of the {name} part must have shape [1], or [1, targets], but "
                f"has {list(graph.y.shape)}; of several targets pass graph.y.view(1, -1)."
            )
        if (found := shapes(graph)) != (expected := shapes(like[0])):
            raise ValueError(
                f"graph {number} of the {name} part has {found}, but the first training graph has "
                f"{expected}; give all graphs the same."
            )


def shapes(graph: Data) -> str:
    """Return what the graphs of a dataset must have in common, in words."""
    weights = "no edge_weight" if graph.edge_weight is None else "an edge_weight"
    return f"{graph.num_features} features, {weights} and {graph.y.numel()} {graph.y.dtype} in y"


def fields_read(graph: Data) -> Data:
    """Return what training reads from a graph: PyG joins graphs with the same attributes only."""
    names = ("x", "edge_index", "edge_weight")
    kept = {name: graph[name] for name in names if graph.get(name) is not None}
    return Data(**kept, y=graph.y if graph.y.dim() else graph.y.view(1))
