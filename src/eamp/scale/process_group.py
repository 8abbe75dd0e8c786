"""``ProcessGroup``: training of one model on one graph by several processes."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
from eamp.scale.halo_exchange import explained_failures
from eamp.scale.part_models import check_model
from eamp.scale.partition import metis
from eamp.scale.partitioned_graph import take_part
from eamp.training.process import SingleProcess

PARTITIONS: dict[str, Callable[[Graph, int], Tensor]] = {"metis": metis}


class ProcessGroup(SingleProcess):
    """One of several processes, each with a part of the graph and the same model.

    Pass it to :func:`eamp.training.train` as ``process``, on every process, once
    ``torch.distributed`` has been initialised.

    Args:
        partition: a function that cuts a graph into a number of parts. Process 0 calls it and sends
            the result to the others.
        group: the torch process group, ``None`` for the default one.
    """

    def __init__(
        self,
        partition: Callable[[Graph, int], Tensor] = metis,
        group: dist.ProcessGroup | None = None,
    ) -> None:
        self.partition, self.group = partition, group
        self.rank, self.size = dist.get_rank(group), dist.get_world_size(group)
        self.leads = self.rank == 0
        # The device of the tensors that are sent: NCCL sends from GPUs only.
        self.device = torch.device("cuda" if dist.get_backend(group) == "nccl" else "cpu")

    def share(
        self, model: Module, x: Tensor, data: Data, graph: Graph
    ) -> tuple[Tensor, Data, Graph]:
        """Return the rows, labels, masks and part of this process, and copy the model of process 0.

        Raises:
            GraphError: if ``model`` may compute something else on parts than on the whole graph.
        """
        check_model(model)
        part = torch.empty(graph.num_nodes, dtype=torch.long)
        if self.leads:
            part = self.partition(graph, self.size)
        for tensor in (part, *model.state_dict().values()):
            self._copy_from_leader(tensor)
        own = take_part(graph, part, self.rank, self.size, self.group, features=x)
        nodes = own.rows.nodes
        names = ("y", "train_mask", "val_mask", "test_mask")
        return take_rows(x, nodes), Data(**{name: data[name][nodes] for name in names}), own

    def agree(self, value: bool) -> bool:
        """Return whether ``value`` is true on every process."""
        return self._sum(torch.tensor(0.0 if value else 1.0, dtype=torch.float64)).item() == 0

    def cross_entropy(
        self, logits: Tensor, labels: Tensor, reduction: str = "mean", label_smoothing: float = 0.0
    ) -> Tensor:
        """Return this process's share of the loss, 0 if it has no labels."""
        share = F.cross_entropy(logits, labels, reduction="sum", label_smoothing=label_smoothing)
        if reduction == "sum":
            return share
        return share / self._sum(share.new_tensor(labels.numel(), dtype=torch.float64)).to(share)

    def mean(self, correct: Tensor) -> float:
        """Return the mean over the values of all processes."""
        right = correct.double().sum()
        right, count = self._sum(torch.stack([right, right.new_tensor(correct.numel())])).float()
        return (right / count).item()

    def total(self, share: Tensor) -> float:
        """Return the sum over all processes."""
        return self._sum(share.detach().double()).to(share.dtype).item()

    def add_gradients(self, model: Module) -> None:
        """Replace the gradients of ``model`` by their sum over all processes.

        They are sent in one message per type of number.
        """
        gradients = [p.grad for p in model.parameters() if p.grad is not None]
        # A dict, since all processes must send the types in the same order.
        for dtype in {gradient.dtype: None for gradient in gradients}:
            alike = [gradient for gradient in gradients if gradient.dtype == dtype]
            summed = self._sum(torch.cat([gradient.reshape(-1) for gradient in alike]))
            totals = summed.split([gradient.numel() for gradient in alike])
            for gradient, total in zip(alike, totals, strict=True):
                gradient.copy_(total.view_as(gradient))

    @contextmanager
    def reading(self, path: Path | None) -> Iterator[Path | None]:
        """Give a copy of a file of process 0 to read; ``None`` if process 0 has no such file.

        Other machines need not see the disk of process 0.
        """
        found = self.leads and path is not None and path.exists()
        contents = [path.read_bytes() if found and path is not None else None]
        with explained_failures():
            dist.broadcast_object_list(contents, 0, self.group, self.device)
        if contents[0] is None:
            yield None
            return
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder, "checkpoint")
            copy.write_bytes(contents[0])
            yield copy

    def _sum(self, values: Tensor) -> Tensor:
        summed = values.detach().to(self.device, copy=True)
        with explained_failures():
            dist.all_reduce(summed, group=self.group)
        return summed.to(values.device)

    def _copy_from_leader(self, values: Tensor) -> None:
        """Overwrite ``values`` with those of process 0."""
        sent = values.detach().to(self.device, copy=True)
        with explained_failures():
            dist.broadcast(sent, 0, self.group)
        values.copy_(sent)


@contextmanager
def under_torchrun(partition: str | None, timeout: float = 600.0) -> Iterator[SingleProcess]:
    """Give the :class:`ProcessGroup` that ``torchrun`` started this process in.

    Without ``torchrun``, or under it with one process, give a :class:`SingleProcess`.

    Args:
        partition: a name in :data:`PARTITIONS`.
        timeout: seconds after which a process that waits for another gives up.

    Example:
        >>> with under_torchrun(None) as process:
        ...     type(process).__name__
        'SingleProcess'
    """
    if partition is not None and partition not in PARTITIONS:
        raise ValueError(f"no partition named {partition!r}; there are {', '.join(PARTITIONS)}.")
    if partition is not None and "WORLD_SIZE" not in os.environ:
        raise ValueError(
            f"--partition {partition} cuts the graph among the processes of torchrun, but torchrun "
            "did not start this one: run torchrun --nproc-per-node 4 -m eamp train --partition "
            f"{partition} ..., or leave --partition out."
        )
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        yield SingleProcess()
        return
    if partition is None:
        raise ValueError(
            f"torchrun started {size} processes, which would all train the same model on the same "
            "graph: add --partition metis to cut the graph among them."
        )
    # Datasets are loaded to the CPU, so gloo sends them.
    dist.init_process_group("gloo", timeout=timedelta(seconds=timeout))
    try:
        yield ProcessGroup(PARTITIONS[partition])
    finally:
        dist.destroy_process_group()
