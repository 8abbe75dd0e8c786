"""Training in one process, or in step with others: what :func:`eamp.training.train` asks of either."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor
from torch.nn import Module
from torch_geometric.data import Data

from eamp.graph import Graph
from eamp.graph.subgraph import take_rows
from eamp.ops.placed_dropout import Places, placed
from eamp.scale.halo_exchange import talking
from eamp.scale.partition import metis
from eamp.scale.partitioned_graph import take_part

PARTITIONS: dict[str, Callable[[Graph, int], Tensor]] = {"metis": metis}


class Alone:
    """One process, which holds the whole graph: nothing has to be shared or added up."""

    leads = True  # writes files and speaks to the user

    def share(
        self, model: Module, x: Tensor, data: Data, graph: Graph
    ) -> tuple[Tensor, Data, Graph]:
        """The features, the labels and masks, and the graph that this process trains on."""
        return x, data, graph

    def agree(self, value: bool) -> bool:
        """Whether it holds on every process."""
        return value

    def cross_entropy(
        self, logits: Tensor, labels: Tensor, reduction: str = "mean", label_smoothing: float = 0.0
    ) -> Tensor:
        """This process' share of the loss: the shares of all add up to it."""
        return F.cross_entropy(logits, labels, reduction=reduction, label_smoothing=label_smoothing)

    def mean(self, correct: Tensor) -> float:
        """The mean over all processes' values."""
        return correct.float().mean().item()

    def total(self, share: Tensor) -> float:
        """The sum of all processes' shares."""
        return share.item()

    def add_gradients(self, model: Module) -> None:
        """Give every process the gradients of the whole loss."""

    @contextmanager
    def reading(self, path: Path | None) -> Iterator[Path | None]:
        """The file as it lies before the process that leads, or ``None`` where that has none."""
        yield path if path is not None and path.exists() else None


class Peers(Alone):
    """One of several processes, each with a part of the graph and the same model. All must do the same things in the same order.

    Used as ``with Peers() as peers: train(..., peers=peers)``, once ``torch.distributed`` has been initialised.

    Args:
        partition: how to cut a graph into a number of parts; done by process 0 and made known to the others.
        group: of processes; the default one when left out.
    """

    def __init__(
        self,
        partition: Callable[[Graph, int], Tensor] = metis,
        group: dist.ProcessGroup | None = None,
    ) -> None:
        self.partition, self.group = partition, group
        self.rank, self.size = dist.get_rank(group), dist.get_world_size(group)
        self.leads = self.rank == 0
        self.device = torch.device(
            "cuda" if dist.get_backend(group) == "nccl" else "cpu"
        )  # NCCL moves nothing else
        self._places = ExitStack()  # what dropout knows of this process' rows

    def __enter__(self) -> Peers:
        return self

    def __exit__(self, *failure: object) -> None:
        self._places.close()

    def share(
        self, model: Module, x: Tensor, data: Data, graph: Graph
    ) -> tuple[Tensor, Data, Graph]:
        """The rows and the part of this process. From here on the models are the same, too, and dropout is that of the whole graph."""
        from eamp.scale.part_models import check_model  # which knows all models

        check_model(model)
        part = (
            self.partition(graph, self.size)
            if self.leads
            else torch.empty(graph.num_nodes, dtype=torch.long)
        )
        for tensor in (part, *model.state_dict().values()):
            self._take_from_leader(tensor)
        own = take_part(graph, part, self.rank, self.size, self.group)
        nodes = own.csr.nodes
        labels = Data(
            **{name: data[name][nodes] for name in ("y", "train_mask", "val_mask", "test_mask")}
        )
        entries = None if x.layout == torch.strided else x.crow_indices()[nodes].long()
        self._places.close()
        self._places.enter_context(placed(Places(nodes, entries)))
        return take_rows(x, nodes), labels, own

    def agree(self, value: bool) -> bool:
        """Whether it holds on every process."""
        return self._sum(torch.tensor(0.0 if value else 1.0, dtype=torch.float64)).item() == 0

    def cross_entropy(
        self, logits: Tensor, labels: Tensor, reduction: str = "mean", label_smoothing: float = 0.0
    ) -> Tensor:
        """This process' share of the loss, which may be 0 for want of labels."""
        share = F.cross_entropy(logits, labels, reduction="sum", label_smoothing=label_smoothing)
        if reduction == "sum":
            return share
        return share / self._sum(
            torch.tensor(labels.numel(), dtype=torch.float64, device=labels.device)
        ).to(share.dtype)

    def mean(self, correct: Tensor) -> float:
        """The mean over all processes' values."""
        right, count = self._sum(
            torch.stack(
                [correct.double().sum(), torch.full_like(correct.double().sum(), correct.numel())]
            )
        ).float()
        return (right / count).item()

    def total(self, share: Tensor) -> float:
        """The sum of all processes' shares."""
        return self._sum(share.detach().double()).to(share.dtype).item()

    def add_gradients(self, model: Module) -> None:
        """Add up all processes' gradients, in one message for each type of number."""
        gradients = [
            parameter.grad for parameter in model.parameters() if parameter.grad is not None
        ]
        for dtype in {
            gradient.dtype: None for gradient in gradients
        }:  # in the order of the parameters, the same on all
            alike = [gradient for gradient in gradients if gradient.dtype == dtype]
            summed = self._sum(torch.cat([gradient.reshape(-1) for gradient in alike]))
            for gradient, total in zip(
                alike, summed.split([gradient.numel() for gradient in alike]), strict=True
            ):
                gradient.copy_(total.view_as(gradient))

    @contextmanager
    def reading(self, path: Path | None) -> Iterator[Path | None]:
        """A copy of the file of process 0, which alone writes any: other machines need not see its disk."""
        contents = path.read_bytes() if self.leads and path is not None and path.exists() else b""
        size = int(self._sum(torch.tensor(len(contents), dtype=torch.float64)).item())
        if size == 0:
            yield None
            return
        buffer = (
            torch.frombuffer(bytearray(contents), dtype=torch.uint8)
            if self.leads
            else torch.empty(size, dtype=torch.uint8)
        )
        self._take_from_leader(buffer)
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder, "checkpoint")
            copy.write_bytes(buffer.numpy().tobytes())
            yield copy

    def _sum(self, values: Tensor) -> Tensor:
        summed = values.detach().to(self.device, copy=True)
        with talking():
            dist.all_reduce(summed, group=self.group)
        return summed.to(values.device)

    def _take_from_leader(self, values: Tensor) -> None:
        """Overwrite ``values`` with those of process 0."""
        sent = values.detach().to(self.device, copy=True)
        with talking():
            dist.broadcast(sent, 0, self.group)
        values.copy_(sent)


@contextmanager
def under_torchrun(partition: str | None, timeout: float = 600.0) -> Iterator[Alone]:
    """The peers of this process if ``torchrun`` started it as one of several, for as long as the block lasts; :class:`Alone` otherwise.

    Args:
        partition: a name in :data:`PARTITIONS`.
        timeout: seconds after which a process that waits for another gives up.

    Example:
        >>> with under_torchrun(None) as peers:
        ...     type(peers).__name__
        'Alone'
    """
    if partition is not None and partition not in PARTITIONS:
        raise ValueError(f"no partition named {partition!r}; there are {', '.join(PARTITIONS)}.")
    if partition is not None and "WORLD_SIZE" not in os.environ:
        raise ValueError(
            f"--partition {partition} cuts the graph among the processes of torchrun, which did not start this one: run "
            f"torchrun --nproc-per-node 4 -m eamp train --partition {partition} ..., or leave --partition out."
        )
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        yield Alone()
        return
    if partition is None:
        raise ValueError(
            f"torchrun started {size} processes, which would all do the same: say --partition metis to cut the graph among them."
        )
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=timeout)
    )  # datasets are loaded to the CPU
    try:
        with Peers(PARTITIONS[partition]) as peers:
            yield peers
    finally:
        dist.destroy_process_group()
