"""``SingleProcess``: the parts of training that differ where several processes share a graph."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch.nn.functional as F
from torch import Tensor
from torch.nn import Module
from torch_geometric.data import Data

from eamp.graph import Graph


class SingleProcess:
    """Training in one process, which holds the whole graph.

    :class:`eamp.scale.process_group.ProcessGroup` overrides these methods for training on parts of
    a graph.
    """

    leads = True
    """Whether this process writes files and prints."""
    size = 1
    """Number of processes."""

    def share(
        self, model: Module, x: Tensor, data: Data, graph: Graph
    ) -> tuple[Tensor, Data, Graph]:
        """Return the features, the labels and masks, and the graph that this process trains on."""
        return x, data, graph

    def sum(self, values: Tensor) -> Tensor:
        """Return the sum of ``values`` over all processes, elementwise, without a derivative."""
        return values.detach()

    def gather(self, rows: Tensor) -> Tensor:
        """Return the rows of all processes, one process after the other, without a derivative."""
        return rows.detach()

    def cross_entropy(
        self, logits: Tensor, labels: Tensor, reduction: str = "mean", label_smoothing: float = 0.0
    ) -> Tensor:
        """Return this process's share of the loss; the sum over processes is the whole loss."""
        return F.cross_entropy(logits, labels, reduction=reduction, label_smoothing=label_smoothing)

    def mean(self, total: Tensor, count: int) -> Tensor:
        """Return this process's share of a mean, given the sum and the number of its own terms."""
        return total / count

    def add_gradients(self, model: Module) -> None:
        """Replace the gradients of ``model`` by their sum over all processes."""

    def agree(self, given: Mapping[str, Any]) -> None:
        """Raise a ValueError on every process unless all were given the same values."""

    def read(self, path: Path) -> bytes | None:
        """Return a file of the leading process; ``None`` if there is no such file."""
        return path.read_bytes() if path.exists() else None
