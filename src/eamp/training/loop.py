"""Training: one loop for every task, readable from top to bottom."""

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module
from torch.nn.parameter import is_lazy
from tqdm import tqdm

from eamp.diagnostics import probe
from eamp.diagnostics.watched_layers import NoLayerError
from eamp.nn.checks import check_module
from eamp.nn.models.traits import traits
from eamp.nn.parameter_groups import parameter_groups
from eamp.training.checkpoints import (
    DamagedCheckpointError,
    TrainingWarning,
    load_checkpoint,
    prepare_checkpoint,
    save_checkpoint,
    set_aside,
)
from eamp.training.digests import model_digest
from eamp.training.inputs import check_run
from eamp.training.process import SingleProcess
from eamp.training.protocols import (
    Figures,
    Protocol,
    Selection,
    advice_on_divergence,
    diverged,
    learning_rate,
    protocol_of,
)
from eamp.training.result import Result, result_of
from eamp.training.tasks import TrainingData, task_of
from eamp.training.tasks.task import Part, copy_of_state


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
    data: TrainingData,
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
) -> Result:
    """Train ``model`` on ``data``, and leave it with the weights of the selected epoch.

    Args:
        model: called with ``(x, graph)``, or with ``(x, edge_index)`` if it has bare layers of PyG;
            for labels of graphs with the vector ``batch`` as third argument
            (:class:`eamp.nn.GraphLevel`). Its outputs are logits, numbers, or for links an
            embedding. The result of its ``auxiliary_loss()``, if it has one, is added to the loss.
        data: for labels of nodes, a graph with features, ``edge_index``, labels, the three masks
            and, optionally, ``edge_weight``. For labels of graphs, three lists of graphs, as
            :func:`eamp.data.k_fold` returns. For links, the three graphs of
            :func:`eamp.data.link_split`.
        protocol: the name of one of :data:`PROTOCOLS`, or your own :class:`Protocol`.
        seed: seed of dropout, noise, mini-batches and drawn pairs. Make the model under
            ``torch.manual_seed(seed)``, too.
        checkpoint: a file to save to, and to continue from if it exists. A continued run ends with
            the same result, bit for bit. A damaged file is set aside, with a warning.
        checkpoint_every: epochs between two checkpoints.
        progress: show a progress bar.
        on_epoch: called with the number and figures of every epoch; may raise an exception to stop.
        on_resume: called with the epochs of a checkpoint that the run continues from.
        process: an :class:`eamp.scale.process_group.ProcessGroup` if the graph is spread over
            several processes, which must all call this function with the same arguments.
        about: a description of model and data. A checkpoint with another one is refused.

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
    if any(map(is_lazy, model.parameters())):
        raise ValueError(
            f"{type(model).__name__} has parameters whose sizes it takes from its first input; "
            "call it once, as in model(data.x, data.edge_index), before training."
        )
    process, told = process or SingleProcess(), traits(model)
    task = task_of(data, protocol_of(protocol))
    protocol = task.protocol
    check_run(seed, checkpoint, checkpoint_every, on_epoch)
    identity = {**asdict(protocol), "seed": seed, "about": about, "graph": task.digest}
    identity["model"] = model_digest(model)
    process.agree(identity)
    if about:  # a description is of the model, too
        identity["model"] = ""
    checkpoint = None if checkpoint is None else Path(checkpoint)
    if checkpoint is not None and process.leads:
        prepare_checkpoint(checkpoint)
    task.start(model, process, seed)
    torch.manual_seed(seed)
    decay = protocol.weight_decay
    conv_decay = decay if protocol.conv_decay is None else protocol.conv_decay
    groups = parameter_groups(model, conv_decay, decay)
    optimizer = torch.optim.Adam(groups, lr=protocol.learning_rate)
    best, history = copy_of_state(model), list[Figures]()
    if checkpoint is not None and (saved := process.read(checkpoint)) is not None:
        try:
            rows = load_checkpoint(saved, checkpoint, model, optimizer, best, identity)
            history = [task.target.epoch(row) for row in rows]
        except DamagedCheckpointError as error:  # on all processes, which got the same bytes
            if process.leads:
                set_aside(checkpoint, error)
    if history and on_resume is not None:
        on_resume(history)
    selection = Selection(protocol, history)

    hidden = None if progress and process.leads else True  # None shows the bar on a terminal only
    start, end = len(history), protocol.epochs
    bar = tqdm(range(start, end), initial=start, total=end, disable=hidden, leave=False)
    for epoch in bar:
        if selection.is_over:
            break
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(protocol, epoch)
        losses = []
        for batch in task.batches(epoch):
            optimizer.zero_grad()
            model.train()
            loss = task.loss(batch)
            loss.backward()
            process.add_gradients(model)
            optimizer.step()
            losses.append(loss.detach())
        figures = task.figures(losses)
        history.append(figures)
        if selection.add(figures):
            best = copy_of_state(model)
        bar.set_postfix_str(f"loss {figures.train_loss:.3g}, val {figures.val_metric:.3f}")
        if checkpoint is not None and process.leads and (epoch + 1) % checkpoint_every == 0:
            save_checkpoint(checkpoint, model, optimizer, best, history, identity)
        if on_epoch is not None:
            on_epoch(epoch, figures)

    if checkpoint is not None and process.leads:  # so that a finished run is not repeated
        save_checkpoint(checkpoint, model, optimizer, best, history, identity)
    final_energy = layer_energies(model, task.example, told.probed_layers)
    model.load_state_dict(best)
    epoch = selection.epoch
    if (first := diverged(history)) is not None and process.leads:
        meaningful = math.isfinite(history[epoch].val_loss)
        warnings.warn(advice_on_divergence(first, meaningful), TrainingWarning, stacklevel=3)
    energy = layer_energies(model, task.example, told.probed_layers)
    return result_of(history, epoch, task.target, energy=energy, final_energy=final_energy)


def predict(
    model: Module,
    data: TrainingData,
    part: Part = "test",
    *,
    protocol: Protocol | str = "standard",
) -> tuple[Tensor, Tensor]:
    """Return the outputs of a model for the test or validation part of data, and the labels.

    Args:
        model: a model as :func:`train` takes and leaves it.
        data: data as :func:`train` takes them.
        part: ``"test"`` or ``"val"``.
        protocol: the protocol of the training, whose metric may say what the labels are.

    Returns:
        Logits, or predicted numbers, with a row per node, graph or pair of nodes; and the labels.
        Graphs without a label are left out. Labels of regression, several targets and links have
        as many columns as the outputs.

    Example:
        >>> import eamp
        >>> data = eamp.data.load("csbm:nodes=60,features=8")
        >>> logits, labels = predict(eamp.nn.GCN(8, 16, data.num_classes, 2), data)
        >>> logits.shape, labels.shape
        (torch.Size([30, 5]), torch.Size([30]))
    """
    check_module(model, "predict")
    task = task_of(data, protocol_of(protocol))
    task.start(model, SingleProcess(), 0)
    return task.outputs(part)


def layer_energies(model: Module, call: Callable[[], Tensor], layers: Any) -> list[float]:
    """Return the mean Dirichlet energy after each of ``layers``, by default all convolutions.

    A network without any, such as a perceptron, has no energies.
    """
    try:
        recorder = probe(model.eval(), measures=["energy"], layers=layers)
    except NoLayerError:
        return []
    with torch.no_grad(), recorder as recorded:
        call()
    return [float(row["energy"]) for row in recorded.rows]
