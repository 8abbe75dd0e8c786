"""``GraphTask``: labels of many graphs, in mini-batches."""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

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
from eamp.training.tasks.task import Part, Task, copy_of_state, require_one_process

PARTS = ("train", "val", "test")


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
        self.parts = dict(zip(PARTS, map(list, parts), strict=True))
        for name, graphs in self.parts.items():
            check_graphs(name, graphs)
        self.num_features = self.parts["train"][0].num_features
        labels = {name: labels_of(graphs) for name, graphs in self.parts.items() if graphs}
        self.target = target_of(torch.cat(list(labels.values())), protocol)
        self.protocol = resolved(protocol, self.target)
        if self.protocol.consistency is not None:
            raise ValueError("consistency is for the nodes of one graph; leave it out.")
        known = {name: self.known(self.target.column(y)) for name, y in labels.items()}
        named = {f"the {name} part": y for name, y in known.items()}
        check_labels(named, self.target, "graphs", "choose another split")

    @cached_property
    def digest(self) -> str:
        """The digest of all graphs."""
        parts = self.parts.items()
        return joint_digest({name: "".join(map(data_digest, graphs)) for name, graphs in parts})

    def known(self, y: Tensor) -> Tensor:
        """Return the labels without missing classes; other missing labels are NaN."""
        return y[y >= 0] if self.target.kind == "classes" else y

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
        """Return mini-batches of the training graphs, in an order of this epoch's own."""
        order = generator(self.seed, epoch)
        size = self.protocol.batch_size
        loader = DataLoader(self.parts["train"], size, shuffle=True, generator=order)
        return map(self.examples, loader)

    def loss(self, batch: Examples) -> Tensor:
        """Return the loss over the graphs of a batch, with the auxiliary loss of the model."""
        out, y = batch.call(), batch.y
        if self.target.kind == "classes":
            out, y = out[y >= 0], y[y >= 0]
        loss = self.target.loss(out, y, self.protocol, self.process)
        return loss if self.told.auxiliary_loss is None else loss + self.told.auxiliary_loss()

    @torch.no_grad()
    def outputs(self, part: Part) -> tuple[Tensor, Tensor]:
        """Return the outputs and labels of validation or test graphs."""
        self.model.eval()
        batches = self.evaluated[part]
        if not batches:
            outputs = self.target.outputs
            return torch.empty(0, outputs), self.target.column(torch.empty(0, outputs).long())
        out = torch.cat([batch.call() for batch in batches])
        y = torch.cat([batch.y for batch in batches])
        if self.target.kind == "classes":
            return out[y >= 0], y[y >= 0]
        return out, y

    def example(self) -> Tensor:
        """Call the model on the first mini-batch of validation graphs."""
        self.model.eval()
        return self.evaluated["val"][0].call()


def check_graphs(name: str, graphs: Sequence[object]) -> None:
    """Raise a ValueError unless every graph has features, edges and one row of labels."""
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
        if graph.y.dim() not in (0, 1, 2) or (graph.y.dim() > 0 and graph.y.size(0) != 1):
            raise ValueError(
                f"y of graph {number} of the {name} part must have shape [1], or [1, targets], but "
                f"has {list(graph.y.shape)}; of several targets pass graph.y.view(1, -1)."
            )


def labels_of(graphs: Sequence[Data]) -> Tensor:
    """Return the labels of all graphs as PyG joins them, ``[graphs]`` or ``[graphs, targets]``."""
    return torch.cat([graph.y if graph.y.dim() else graph.y.view(1) for graph in graphs])
