"""``ProcessGroup``: training of one model on one graph by several processes."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor
from torch.nn import Module
from torch_geometric.data import Data

from eamp.graph import Graph
from eamp.graph.subgraph import take_rows
from eamp.scale.halo_exchange import all_reduced, explained_failures
from eamp.scale.part_models import check_model
from eamp.scale.partition import metis
from eamp.scale.partitioned_graph import take_part
from eamp.training.process import SingleProcess


class ProcessGroup(SingleProcess):
    """One of several processes, each with a part of the graph and the same model.

    Pass it to :func:`eamp.training.train` as ``process``, on every process, once
    ``torch.distributed`` has been initialised. Process 0 cuts the graph and sends the result to the
    others.
    """

    def __init__(self) -> None:
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self.leads = self.rank == 0
        # NCCL sends tensors on GPUs only.
        self.device = torch.device("cuda" if dist.get_backend() == "nccl" else "cpu")

    def share(
        self, model: Module, x: Tensor, data: Data, graph: Graph
    ) -> tuple[Tensor, Data, Graph]:
        """Return the rows of this process and its part, after copying the model of process 0."""
        check_model(model)
        part = torch.empty(graph.num_nodes, dtype=torch.long)
        if self.leads:
            part = metis(graph, self.size)
        for tensor in (part, *model.state_dict().values()):
            sent = tensor.detach().to(self.device, copy=True)
            with explained_failures():
                dist.broadcast(sent, 0)
            tensor.copy_(sent)
        own = take_part(graph, part, self.rank, self.size, x)
        nodes = own.rows.nodes
        names = ("y", "train_mask", "val_mask", "test_mask")
        return take_rows(x, nodes), Data(**{name: data[name][nodes] for name in names}), own

    def sum(self, values: Tensor) -> Tensor:
        """Return the sum of ``values`` over all processes, elementwise, without a derivative."""
        return all_reduced(values.to(self.device)).to(values.device)

    def gather(self, rows: Tensor) -> Tensor:
        """Return the rows of all processes, one process after the other, without a derivative."""
        counts = torch.zeros(self.size, dtype=torch.long)
        counts[self.rank] = rows.size(0)
        counts = self.sum(counts)
        start = int(counts[: self.rank].sum())
        everyone = rows.new_zeros(int(counts.sum()), *rows.shape[1:])
        everyone[start : start + rows.size(0)] = rows.detach()
        return self.sum(everyone)

    def cross_entropy(
        self, logits: Tensor, labels: Tensor, reduction: str = "mean", label_smoothing: float = 0.0
    ) -> Tensor:
        """Return this process's share of the loss, 0 if it has no labels."""
        share = F.cross_entropy(logits, labels, reduction="sum", label_smoothing=label_smoothing)
        if reduction == "sum":
            return share
        return self.mean(share, labels.numel())

    def mean(self, total: Tensor, count: int) -> Tensor:
        """Return this process's share of a mean, given the sum and the number of its own terms."""
        return total / self.sum(total.new_tensor(count, dtype=torch.float64)).to(total)

    def add_gradients(self, model: Module) -> None:
        """Replace the gradients of ``model`` by their sum, in one message per type of number."""
        gradients = [p.grad for p in model.parameters() if p.grad is not None]
        # A dict, since all processes must send the types in the same order.
        for dtype in {gradient.dtype: None for gradient in gradients}:
            alike = [gradient for gradient in gradients if gradient.dtype == dtype]
            summed = self.sum(torch.cat([gradient.reshape(-1) for gradient in alike]))
            totals = summed.split([gradient.numel() for gradient in alike])
            for gradient, total in zip(alike, totals, strict=True):
                gradient.copy_(total.view_as(gradient))

    def agree(self, given: Mapping[str, Any]) -> None:
        """Raise a ValueError on every process unless all were given the same values."""
        everyone: list[Mapping[str, Any]] = [{}] * self.size
        with explained_failures():
            dist.all_gather_object(everyone, given)
        for rank, other in enumerate(everyone):
            names = sorted({*other, *everyone[0]})
            differing = [name for name in names if other.get(name) != everyone[0].get(name)]
            if differing:
                said = "; ".join(
                    f"{name} is {everyone[0].get(name)} in process 0 and {other.get(name)} in "
                    f"process {rank}"
                    for name in differing
                )
                raise ValueError(
                    f"the processes of one job must be started with the same settings and data, "
                    f"but {said}. Start the same command, with the same files, on all of them."
                )

    def read(self, path: Path) -> bytes | None:
        """Return a file on the disk of process 0; ``None`` if there is no such file."""
        content = [super().read(path) if self.leads else None]
        with explained_failures():
            dist.broadcast_object_list(content, device=self.device)
        return content[0]


@contextmanager
def under_torchrun(
    partition: Literal["metis"] | None, timeout: float = 600.0
) -> Iterator[SingleProcess]:
    """Give a :class:`ProcessGroup` under ``torchrun``, or a :class:`SingleProcess` otherwise.

    Args:
        partition: how to cut the graph, which several processes need to be told.
        timeout: seconds after which a process that waits for another gives up.
    """
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
        yield ProcessGroup()
    finally:
        dist.destroy_process_group()
