"""The training of a node classifier: one loop, readable from top to bottom."""

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from operator import eq
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric.data import Data
from torch_geometric.nn import MessagePassing
from tqdm import tqdm

from eamp.diagnostics import probe
from eamp.graph import Graph
from eamp.graph.ordering import nearer
from eamp.nn.checks import check_module
from eamp.nn.conv.from_pyg import with_weights
from eamp.nn.models.traits import traits
from eamp.nn.parameter_groups import parameter_groups
from eamp.nn.wrapping import message_passing_layers
from eamp.training.checkpoints import (
    DamagedCheckpointError,
    TrainingWarning,
    load_checkpoint,
    prepare_checkpoint,
    save_checkpoint,
    set_aside,
)
from eamp.training.digests import data_digest, model_digest
from eamp.training.inputs import check_data, check_metric, check_run, first_output
from eamp.training.metrics import METRICS
from eamp.training.objectives import consistency_loss
from eamp.training.process import SingleProcess
from eamp.training.protocols import (
    Figures,
    Protocol,
    advice_on_divergence,
    as_epoch,
    diverged,
    is_over,
    learning_rate,
    protocol_of,
    selected,
)
from eamp.training.result import Result
from eamp.training.sparse_features import sparse_features


@contextmanager
def denormals_flushed() -> Iterator[None]:
    """Round numbers below 1e-38 to zero.

    Activations of deep networks get there, and the processor computes a hundred times slower.
    """
    already = bool(torch.tensor(1e-39) * 1 == 0)
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(already)


@denormals_flushed()
def train(
    model: Module,
    data: Data,
    protocol: Protocol | str,
    *,
    seed: int = 0,
    checkpoint: str | Path | None = None,
    checkpoint_every: int = 50,
    progress: bool = False,
    on_epoch: Callable[[int, Figures], None] | None = None,
    on_resume: Callable[[list[Figures]], None] | None = None,
    process: SingleProcess | None = None,
    about: str = "",
    same_run: Callable[[str, str], bool] = eq,
) -> Result:
    """Train ``model`` on ``data``, and leave it with the weights of the selected epoch.

    Args:
        model: called with ``(x, graph)``, or with ``(x, edge_index)`` if it has bare layers of PyG.
            The result of its ``auxiliary_loss()``, if it has one, is added to the loss.
        data: features, ``edge_index``, labels, the three masks and, optionally, ``edge_weight``.
        protocol: the name of one of :data:`PROTOCOLS`, or your own :class:`Protocol`.
        seed: seed of dropout and noise. Make the model under ``torch.manual_seed(seed)``, too.
        checkpoint: a file to save to, and to continue from if it exists. A continued run ends with
            the same result, bit for bit. A damaged file is set aside, with a warning.
        checkpoint_every: epochs between two checkpoints.
        progress: show a progress bar.
        on_epoch: called with the number and figures of every epoch; may raise an exception to stop.
        on_resume: called with the epochs of a checkpoint that the run continues from.
        process: an :class:`eamp.scale.process_group.ProcessGroup` if the graph is spread over
            several processes, which must all call this function with the same arguments.
        about: a description of model and data. A checkpoint with another one is refused.
        same_run: called with the description in a checkpoint and ``about``; returns whether they
            mean the same.

    Raises:
        ValueError: if ``data`` lacks something that training or the metric needs.
        CheckpointError: if the checkpoint belongs to another run, or to other data.
        OSError: if the checkpoint cannot be written, before training.

    Example:
        >>> import torch, eamp
        >>> from eamp.training import PROTOCOLS, train
        >>> _ = torch.manual_seed(0)
        >>> data = eamp.data.load("csbm:nodes=60,features=8")
        >>> model = eamp.nn.GCN(8, 16, data.num_classes, num_layers=2)
        >>> len(train(model, data, PROTOCOLS["paper"].with_changes(epochs=5)).history)
        5
    """
    check_module(model, "train")
    protocol, process, told = protocol_of(protocol), process or SingleProcess(), traits(model)
    check_data(data)
    check_metric(protocol.metric, data)
    check_run(seed, checkpoint, checkpoint_every, on_epoch)
    identity = {**asdict(protocol), "seed": seed, "about": about, "graph": data_digest(data)}
    process.agree({**identity, "model": model_digest(model)})
    checkpoint = None if checkpoint is None else Path(checkpoint)
    if checkpoint is not None and process.leads:
        prepare_checkpoint(checkpoint)
    data = nearer(data)
    x = sparse_features(data.x) if told.takes_sparse_features else data.x
    whole = Graph(data.edge_index, data.num_nodes, edge_weight=data.edge_weight)
    x, data, graph = process.share(model, x, data, whole)
    run = call_on(model, graph)
    call = partial(run, x)
    checked_call = partial(first_output, call, data, protocol.metric)
    differs = torch.tensor(not same_in_training(model, checked_call)).double()
    one_pass = process.sum(differs).item() == 0 and protocol.consistency is None
    torch.manual_seed(seed)
    decay = protocol.weight_decay
    conv_decay = decay if protocol.conv_decay is None else protocol.conv_decay
    groups = parameter_groups(model, conv_decay, decay)
    optimizer = torch.optim.Adam(groups, lr=protocol.learning_rate)
    best, history = copy_of_state(model), list[Figures]()
    if checkpoint is not None and (saved := process.read(checkpoint)) is not None:
        try:
            rows = load_checkpoint(saved, checkpoint, model, optimizer, best, identity, same_run)
            history = [as_epoch(row) for row in rows]
        except DamagedCheckpointError as error:  # on all processes, which got the same bytes
            if process.leads:
                set_aside(checkpoint, error)
    if history and on_resume is not None:
        on_resume(history)

    hidden = None if progress and process.leads else True  # None shows the bar on a terminal only
    start, end = len(history), protocol.epochs
    bar = tqdm(range(start, end), initial=start, total=end, disable=hidden, leave=False)
    mask, options = data.train_mask, (protocol.reduction, protocol.label_smoothing)

    def supervised(logits: Tensor) -> Tensor:
        loss = process.cross_entropy(logits[mask], data.y[mask], *options)
        return loss if told.auxiliary_loss is None else loss + told.auxiliary_loss()

    logits: Tensor | None = None
    for epoch in bar:
        if is_over(history, protocol):
            break
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(protocol, epoch)
        optimizer.zero_grad()
        model.train()
        if protocol.consistency is not None:
            loss = consistency_loss(protocol.consistency, run, x, graph, supervised)
        else:
            if logits is None or not one_pass:
                logits = call()
            loss = supervised(logits)
        loss.backward()
        process.add_gradients(model)
        optimizer.step()

        with torch.set_grad_enabled(one_pass):  # this pass is then the first of the next epoch
            model.train(one_pass)
            logits = call()
        history.append(measure(logits.detach(), data, loss, protocol.metric, process))
        if selected(history, protocol) == epoch:
            best = copy_of_state(model)
        figures = history[-1]
        bar.set_postfix_str(f"loss {figures.train_loss:.3g}, val {figures.val_metric:.3f}")
        if checkpoint is not None and process.leads and (epoch + 1) % checkpoint_every == 0:
            save_checkpoint(checkpoint, model, optimizer, best, history, identity)
        if on_epoch is not None:
            on_epoch(epoch, figures)

    if checkpoint is not None and process.leads:  # so that a finished run is not repeated
        save_checkpoint(checkpoint, model, optimizer, best, history, identity)
    final_energy = layer_energies(model, call, told.probed_layers)
    model.load_state_dict(best)
    epoch = selected(history, protocol)
    chosen = history[epoch]
    if (first := diverged(history)) is not None and process.leads:
        meaningful = math.isfinite(chosen.val_loss)
        warnings.warn(advice_on_divergence(first, meaningful), TrainingWarning, stacklevel=3)
    return Result(
        best_val_accuracy=max(row.val_accuracy for row in history),
        test_accuracy=chosen.test_accuracy,
        val_accuracy=chosen.val_accuracy,
        val_loss=chosen.val_loss,
        metric=protocol.metric,
        best_val_metric=max(
            (row.val_metric for row in history), key=METRICS[protocol.metric].merit
        ),
        test_metric=chosen.test_metric,
        val_metric=chosen.val_metric,
        epoch=epoch,
        energy=layer_energies(model, call, told.probed_layers),
        final_energy=final_energy,
        history=history,
    )


def measure(
    logits: Tensor, data: Data, train_loss: Tensor, metric: str, process: SingleProcess
) -> Figures:
    """Return the losses, accuracies and metric of an epoch, over the nodes of all processes."""
    correct, mask = logits.argmax(1) == data.y, data.val_mask
    losses = train_loss.detach(), process.cross_entropy(logits[mask], data.y[mask])
    counts = [(int(c.sum()), c.numel()) for c in (correct[mask], correct[data.test_mask])]
    figures = [process.sum(loss.double()).to(loss.dtype) for loss in losses]
    figures += [right / count for right, count in process.sum(torch.tensor(counts)).float()]
    found = [float(figure) for figure in figures]
    if metric != "accuracy":  # no sum over nodes, so one number per node is sent
        numbers, of = METRICS[metric].reads(logits), METRICS[metric].of
        for mask in (data.val_mask, data.test_mask):
            found.append(of(process.gather(numbers[mask]), process.gather(data.y[mask])))
    return as_epoch(found)


def call_on(model: Module, graph: Graph) -> Callable[[Tensor], Tensor]:
    """Return a function of the features that calls the model on all of the graph.

    A model with bare layers of PyG gets an ``edge_index``, and the weights if it takes any.
    """
    if not any(isinstance(layer, MessagePassing) for _, layer in message_passing_layers(model)):
        return lambda x: model(x, graph)
    edge_index, weights = graph.edge_index, with_weights(model, graph, {})
    return lambda x: model(x, edge_index, **weights)


@torch.no_grad()
def same_in_training(model: Module, call: Callable[[], Tensor]) -> bool:
    """Return whether the model computes the same in training as in evaluation, by trying.

    Without dropout and noise it does. The pass that measures an epoch is then also the first of the
    next epoch, which saves a quarter of the time.
    """
    before = copy_of_state(model)
    model.train()
    trained = call()
    same = torch.equal(trained, call())
    model.eval()
    same = same and torch.equal(trained, call())
    model.load_state_dict(before)  # running means and calibrated temperatures have changed
    return same


def copy_of_state(model: Module) -> dict[str, Tensor]:
    """Return a copy of the model's parameters and buffers."""
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def layer_energies(model: Module, call: Callable[[], Tensor], layers: Any) -> list[float]:
    """Return the mean Dirichlet energy after each of ``layers``, by default all convolutions."""
    with torch.no_grad(), probe(model.eval(), measures=["energy"], layers=layers) as recorded:
        call()
    return [float(value) for value in recorded.energy]
