"""Training a node classifier: one loop, readable from top to bottom."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from operator import eq
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args, get_type_hints

import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric.data import Data
from torch_geometric.nn import MessagePassing
from tqdm import tqdm

from eamp.diagnostics import probe
from eamp.graph import Graph
from eamp.graph.ordering import nearer
from eamp.nn.parameter_groups import parameter_groups
from eamp.nn.wrapping import message_passing_layers
from eamp.scale.process_group import Alone
from eamp.training.checkpoints import load_checkpoint, save_checkpoint
from eamp.training.sparse_features import sparse_features


@dataclass(frozen=True)
class Protocol:
    """How a model is trained and which of its epochs counts.

    Attributes:
        select: the epoch that counts is the one of lowest validation loss, or of highest validation accuracy.
        reduction: the training loss is the sum or the mean over the training nodes.
        schedule: anneal the learning rate to 0 along a cosine over all epochs, or keep it.
        patience: stop after this many epochs without a lower validation loss; ``None`` never does.
        conv_decay: weight decay of message-passing layers, where it differs from that of the rest.
    """

    select: Literal["val_loss", "val_accuracy"]
    epochs: int
    learning_rate: float
    weight_decay: float = 0.0
    conv_decay: float | None = None
    reduction: Literal["sum", "mean"] = "mean"
    schedule: Literal["cosine", "none"] = "none"
    label_smoothing: float = 0.0
    patience: int | None = None

    def __post_init__(self) -> None:
        known = get_type_hints(Protocol)
        for name in ("select", "reduction", "schedule"):
            if getattr(self, name) not in (choices := get_args(known[name])):
                raise ValueError(
                    f"{name} must be one of {', '.join(map(repr, choices))}, but is {getattr(self, name)!r}."
                )
        if not isinstance(self.epochs, int) or self.epochs < 1:
            raise ValueError(
                f"epochs must be a whole number of at least 1, but is {self.epochs!r}."
            )

    def with_changes(self, **changes: Any) -> Protocol:
        """The same protocol but for ``changes``."""
        return replace(self, **changes)


PROTOCOLS = {
    # As the paper was really run: its number is the highest validation accuracy, and no test node is ever looked at.
    "paper": Protocol(
        "val_accuracy", epochs=100, learning_rate=1e-3, reduction="sum", schedule="cosine"
    ),
    # Ours, for every claim: test accuracy at the epoch of lowest validation loss.
    "standard": Protocol(
        "val_loss", epochs=1500, learning_rate=0.01, weight_decay=5e-4, patience=100
    ),
}


class Epoch(NamedTuple):
    """What was measured after one epoch."""

    train_loss: float
    val_loss: float
    val_accuracy: float
    test_accuracy: float


@dataclass(frozen=True)
class Result:
    """What a run found. The two accuracies belong to different protocols and are never compared with each other.

    Attributes:
        best_val_accuracy: highest validation accuracy over the epochs, the paper's number.
        test_accuracy: test accuracy at the selected epoch.
        epoch: the selected epoch, counted from 0.
        energy: mean Dirichlet energy after every message-passing layer, at the selected epoch.
        final_energy: the same after the last epoch.
        history: every epoch.
    """

    best_val_accuracy: float
    test_accuracy: float
    val_accuracy: float
    val_loss: float
    epoch: int
    energy: list[float]
    final_energy: list[float]
    history: list[Epoch]


@contextmanager
def denormals_flushed() -> Iterator[None]:
    """Round numbers below 1e-38, where the processor is a hundred times slower and activations of deep networks sink, to zero."""
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
    protocol: Protocol,
    *,
    seed: int = 0,
    checkpoint: Path | None = None,
    checkpoint_every: int = 50,
    progress: bool = False,
    on_epoch: Callable[[int, Epoch], None] | None = None,
    peers: Alone | None = None,
    about: str = "",
    same_run: Callable[[str, str], bool] = eq,
) -> Result:
    """Train ``model`` on ``data``, and leave it with the weights of the selected epoch.

    Args:
        model: called with ``(x, graph)``, or with ``(x, edge_index)`` where layers of PyG have to read that. Where it has an
            ``auxiliary_loss()``, that is added to the loss.
        data: features, ``edge_index`` and, if you like, ``edge_weight``, labels and the three masks.
        protocol: one of :data:`PROTOCOLS`, or your own.
        seed: of everything random during training; make the model under ``torch.manual_seed(seed)`` for a run that can be repeated.
        checkpoint: a file to save to now and then, and to go on from if it is there; the run ends up the same, bit for bit.
        checkpoint_every: epochs between two checkpoints.
        progress: show a progress bar.
        on_epoch: called with every epoch's number and figures, say to prune a search by raising an exception.
        peers: the other processes among which the graph is spread, as :class:`eamp.scale.process_group.Peers`; all call this with the same.
        about: what model and data are; a checkpoint of anything else is refused.
        same_run: whether the ``about`` of a checkpoint means the same as this one.

    Example:
        >>> import torch, eamp
        >>> from eamp.training import PROTOCOLS, train
        >>> _ = torch.manual_seed(0)
        >>> data = eamp.data.load("csbm:nodes=60,features=8")
        >>> model = eamp.nn.GCN(8, 16, data.num_classes, num_layers=2)
        >>> len(train(model, data, PROTOCOLS["paper"].with_changes(epochs=5)).history)
        5
    """
    peers, data = peers or Alone(), nearer(data)
    x = sparse_features(data.x) if getattr(model, "takes_sparse_features", False) else data.x
    x, data, graph = peers.share(
        model, x, data, Graph(data.edge_index, data.num_nodes, edge_weight=data.edge_weight)
    )
    call = call_on(model, x, graph)
    one_pass = peers.agree(same_in_training(model, call))
    torch.manual_seed(seed)
    groups = parameter_groups(
        model,
        protocol.weight_decay if protocol.conv_decay is None else protocol.conv_decay,
        protocol.weight_decay,
    )
    optimizer = torch.optim.Adam(groups, lr=protocol.learning_rate)
    history: list[Epoch] = []
    identity = {
        **asdict(protocol),
        "seed": seed,
        "about": about,
    }  # of this run, and of a checkpoint that it can go on from
    best = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with peers.reading(checkpoint) as saved:
        if saved is not None:
            history = [
                Epoch(*row)
                for row in load_checkpoint(saved, model, optimizer, best, identity, same_run)
            ]

    silent = None if progress and peers.leads else True
    bar = tqdm(
        range(len(history), protocol.epochs),
        initial=len(history),
        total=protocol.epochs,
        disable=silent,
        leave=False,
    )
    logits: Tensor | None = None
    for epoch in bar:
        if out_of_patience(history, protocol) or lost(history):
            break
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(protocol, epoch)
        optimizer.zero_grad()
        if logits is None or not one_pass:
            model.train()
            logits = call()
        loss = training_loss(logits, data, protocol, peers)
        if callable(auxiliary_loss := getattr(model, "auxiliary_loss", None)):
            loss = loss + auxiliary_loss()
        loss.backward()
        peers.add_gradients(model)
        optimizer.step()

        with torch.set_grad_enabled(one_pass):  # then the next epoch begins with this pass
            model.train(one_pass)
            logits = call()
        history.append(measure(logits.detach(), data, peers.total(loss), peers))
        if selected(history, protocol) == epoch:
            best = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        bar.set_postfix_str(
            f"loss {history[-1].train_loss:.3g}, val {history[-1].val_accuracy:.3f}"
        )
        if checkpoint is not None and peers.leads and (epoch + 1) % checkpoint_every == 0:
            save_checkpoint(checkpoint, model, optimizer, best, history, identity)
        if on_epoch is not None:
            on_epoch(epoch, history[-1])

    if checkpoint is not None and peers.leads:
        save_checkpoint(
            checkpoint, model, optimizer, best, history, identity
        )  # a finished run is not repeated
    final_energy = layer_energies(model, call)
    model.load_state_dict(best)
    chosen = selected(history, protocol)
    return Result(
        best_val_accuracy=max(row.val_accuracy for row in history),
        test_accuracy=history[chosen].test_accuracy,
        val_accuracy=history[chosen].val_accuracy,
        val_loss=history[chosen].val_loss,
        epoch=chosen,
        energy=layer_energies(model, call),
        final_energy=final_energy,
        history=history,
    )


def training_loss(logits: Tensor, data: Data, protocol: Protocol, peers: Alone) -> Tensor:
    """Cross-entropy over the training nodes."""
    mask = data.train_mask
    return peers.cross_entropy(
        logits[mask], data.y[mask], protocol.reduction, protocol.label_smoothing
    )


def measure(logits: Tensor, data: Data, train_loss: float, peers: Alone) -> Epoch:
    """Loss and accuracies of an epoch."""
    correct = logits.argmax(1) == data.y
    val_loss = peers.total(peers.cross_entropy(logits[data.val_mask], data.y[data.val_mask]))
    return Epoch(
        train_loss,
        val_loss,
        peers.mean(correct[data.val_mask]),
        peers.mean(correct[data.test_mask]),
    )


def call_on(model: Module, x: Tensor, graph: Graph) -> Callable[[], Tensor]:
    """The model on all of the graph, which layers of PyG that nothing is wrapped around get as an edge list, with weights if they can."""
    if not any(isinstance(layer, MessagePassing) for _, layer in message_passing_layers(model)):
        return partial(model, x, graph)
    weighted = (
        graph.edge_weight is not None
        and "edge_weight" in inspect.signature(model.forward).parameters
    )
    return partial(
        model, x, graph.edge_index, **({"edge_weight": graph.edge_weight} if weighted else {})
    )


@torch.no_grad()
def same_in_training(model: Module, call: Callable[[], Tensor]) -> bool:
    """Whether the model, without dropout or noise, computes the same in training as in evaluation; tried, not assumed.

    Then the pass that measures one epoch is the one the next begins with, and a quarter of the time is saved.
    """
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    model.train()
    trained = call()
    same = torch.equal(trained, call())
    model.eval()
    same = same and torch.equal(trained, call())
    model.load_state_dict(
        before
    )  # running means and calibrated temperatures are for training to set
    return same


def selected(history: list[Epoch], protocol: Protocol) -> int:
    """The epoch that counts; of equals the first, and never one whose loss is not a number."""

    def merit(epoch: int) -> float:
        row = history[epoch]
        if not math.isfinite(row.val_loss):
            return -math.inf
        return -row.val_loss if protocol.select == "val_loss" else row.val_accuracy

    return max(range(len(history)), key=merit)


def out_of_patience(history: list[Epoch], protocol: Protocol) -> bool:
    """Whether the validation loss has not fallen for ``patience`` epochs."""
    if protocol.patience is None or not history:
        return False
    lowest = selected(history, protocol.with_changes(select="val_loss"))
    return len(history) - 1 - lowest >= protocol.patience


def lost(history: list[Epoch]) -> bool:
    """Whether the loss has become NaN or infinite, from which nothing comes back."""
    return bool(history) and not math.isfinite(history[-1].train_loss)


def learning_rate(protocol: Protocol, epoch: int) -> float:
    """A function of the epoch alone, so that a resumed run needs no state of a scheduler."""
    if protocol.schedule == "none":
        return protocol.learning_rate
    return protocol.learning_rate * (1 + math.cos(math.pi * epoch / protocol.epochs)) / 2


def layer_energies(model: Module, call: Callable[[], Tensor]) -> list[float]:
    """Mean Dirichlet energy after every message-passing layer, or after those that the model names as its ``probed_layers``."""
    with (
        torch.no_grad(),
        probe(
            model.eval(), measures=["energy"], layers=getattr(model, "probed_layers", None)
        ) as recorded,
    ):
        call()
    return [float(value) for value in recorded.energy]
