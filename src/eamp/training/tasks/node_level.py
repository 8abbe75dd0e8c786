"""``NodeTask``: labels of the nodes of one graph."""

import copy
from collections.abc import Callable, Iterable
from functools import cached_property, partial

import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric.data import Data

from eamp.graph import Graph
from eamp.graph.ordering import nearer
from eamp.nn.models.traits import traits
from eamp.training.digests import data_digest
from eamp.training.inputs import check_data, check_masked_labels, first_output
from eamp.training.objectives import consistency_loss, pseudo_label_loss
from eamp.training.process import SingleProcess
from eamp.training.protocols import Figures, Protocol
from eamp.training.sparse_features import sparse_features
from eamp.training.targets import resolved, target_of
from eamp.training.tasks.task import Part, Task, call_on, copy_of_state


class NodeTask(Task):
    """The nodes of one graph, with masks: an epoch is one step on all training nodes.

    Args:
        data: features, ``edge_index``, labels, the three masks and, optionally, ``edge_weight``.
        protocol: the settings of the run.
    """

    name = "nodes"

    def __init__(self, data: Data, protocol: Protocol) -> None:
        check_data(data)
        self.target = target_of(data.y, protocol)
        self.protocol = resolved(protocol, self.target)
        check_masked_labels(data, self.target)
        self.given, self.num_features = data, data.num_features

    @cached_property
    def digest(self) -> str:
        """The digest of the graph, its labels and masks."""
        return data_digest(self.given)

    def start(self, model: Module, process: SingleProcess, seed: int) -> None:
        """Take the model, and the part of the graph that this process trains on."""
        self.model, self.process, self.told = model, process, traits(model)
        data = copy.copy(nearer(self.given))  # the labels of the caller stay as they are
        data.y = self.target.column(data.y)
        x = sparse_features(data.x) if self.told.takes_sparse_features else data.x
        whole = Graph(data.edge_index, data.num_nodes, edge_weight=data.edge_weight)
        self.x, self.data, self.graph = process.share(model, x, data, whole)
        self.run = call_on(model, self.graph)
        differs = torch.tensor(not same_in_training(model, self.checked_example)).double()
        self.one_pass = process.sum(differs).item() == 0 and self.protocol.consistency is None
        self.out: Tensor | None = None  # of the last pass, which may serve the next epoch

    def batches(self, epoch: int) -> Iterable[int]:
        """Return the number of the epoch, which stands for its one batch of all training nodes."""
        return (epoch,)

    def loss(self, batch: int) -> Tensor:
        """Return the loss over all training nodes, with the auxiliary loss of the model."""
        one_pass = partial(self.loss_of_pass, epoch=batch)
        if (options := self.protocol.consistency) is not None:
            return consistency_loss(options, self.run, self.x, self.graph, one_pass, epoch=batch)
        if self.out is None or not self.one_pass:
            self.out = self.example()
        return one_pass(self.out)

    def loss_of_pass(self, out: Tensor, epoch: int) -> Tensor:
        """Return the loss of the outputs of one pass in an epoch."""
        mask = self.data.train_mask
        loss = self.target.loss(out[mask], self.data.y[mask], self.protocol, self.process)
        if (options := self.protocol.pseudo_labels) is not None:
            loss = loss + pseudo_label_loss(options, out, mask, self.graph, epoch)
        return loss if self.told.auxiliary_loss is None else loss + self.told.auxiliary_loss()

    def figures(self, losses: list[Tensor]) -> Figures:
        """Return the figures of an epoch, over the nodes of all processes."""
        with torch.set_grad_enabled(self.one_pass):  # this pass is then the first of the next epoch
            self.model.train(self.one_pass)
            self.out = self.example()
        out, data, target = self.out.detach(), self.data, self.target
        (loss,), val = losses, data.val_mask
        found = [
            float(self.process.sum(part.double()).to(part.dtype))
            for part in (loss, target.validation_loss(out[val], data.y[val], self.process))
        ]
        if target.kind == "classes":  # accuracies are sums over nodes, so two numbers are sent
            found += self.accuracies(out)
        for metric, part in target.measured:
            if metric != "accuracy":
                mask = data[f"{part}_mask"]
                read = target.reads(metric, out[mask])
                gathered = self.process.gather(read), self.process.gather(data.y[mask])
                found.append(target.value(metric, *gathered))
        return target.epoch(found)

    def accuracies(self, logits: Tensor) -> list[float]:
        """Return the accuracies on validation and test nodes."""
        correct = logits.argmax(1) == self.data.y
        masked = (correct[self.data.val_mask], correct[self.data.test_mask])
        counts = torch.tensor([(int(each.sum()), each.numel()) for each in masked])
        return [float(right / count) for right, count in self.process.sum(counts).float()]

    def outputs(self, part: Part) -> tuple[Tensor, Tensor]:
        """Return the outputs and labels of validation or test nodes, in the order of the data."""
        data = self.given
        graph = Graph(data.edge_index, data.num_nodes, edge_weight=data.edge_weight)
        with torch.no_grad():
            out = call_on(self.model.eval(), graph)(data.x)
        mask = data[f"{part}_mask"]
        return out[mask], self.target.column(data.y)[mask]

    def example(self) -> Tensor:
        """Call the model on all nodes."""
        return self.run(self.x)

    def checked_example(self) -> Tensor:
        """Call the model, and raise an error if its sizes do not fit the data."""
        out = first_output(self.example, self.num_features)
        self.target.check_outputs(out)
        return out


@torch.no_grad()
def same_in_training(model: Module, call: Callable[[], Tensor]) -> bool:
    """Return whether the model computes the same in training as in evaluation, by trying.

    Without dropout and noise it does. The pass that measures an epoch is then also the first of the
    next epoch, which saves a quarter of the time.

    Initial weights may hide dropout: behind a gate or an output layer that starts at zero, and in
    networks so deep that their activations are rounded to zero. So other weights are tried, and a
    pass that draws random numbers counts as different. Weights and random state are restored.
    """
    before, random_state = copy_of_state(model), torch.get_rng_state()
    for parameter in model.parameters():
        if parameter.is_floating_point():
            parameter.add_(torch.randn_like(parameter), alpha=0.01)
    expected = torch.get_rng_state()
    model.train()
    trained = call()
    draws = not torch.equal(torch.get_rng_state(), expected)
    again = call()  # all passes are made: the processes of a partitioned graph wait for each other
    model.eval()
    evaluated = call()
    model.load_state_dict(before)  # running means and calibrated temperatures have changed, too
    torch.set_rng_state(random_state)
    return not draws and torch.equal(trained, again) and torch.equal(trained, evaluated)
