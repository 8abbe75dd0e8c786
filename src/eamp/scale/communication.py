"""How much processes have to tell each other: a model of the bytes that one training step sends, from the parts alone."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from eamp.graph import Graph


@dataclass(frozen=True)
class Cut:
    """What a partition costs.

    Attributes:
        sizes: ``[parts]``, nodes of every part.
        halos: ``[parts]``, nodes of other parts that it borders on; together, the rows that one exchange moves.
        cut_edges: edges between parts.
    """

    sizes: Tensor
    halos: Tensor
    cut_edges: int

    @property
    def moved(self) -> int:
        """Rows that one exchange moves in all."""
        return int(self.halos.sum())


def cut(graph: Graph, part: Tensor) -> Cut:
    """Sizes, halos and cut edges of the parts ``[n]``.

    Example:
        >>> import torch, eamp
        >>> path = eamp.Graph(torch.tensor([[0, 1, 2], [1, 2, 3]]), symmetrize=True)
        >>> cut(path, torch.tensor([0, 0, 1, 1])).halos
        tensor([1, 1])
    """
    parts = int(part.max()) + 1
    counts = graph.csr.rowptr.diff().long()
    here, there = part.repeat_interleave(counts), part[graph.csr.col.long()]
    across = here != there
    # A node is in the halo of a part once, however many of its edges lead there.
    pairs = torch.unique(here[across] * graph.num_nodes + graph.csr.col[across].long())
    return Cut(
        part.bincount(minlength=parts),
        (pairs // graph.num_nodes).bincount(minlength=parts),
        int(across.sum()) // 2,
    )


@dataclass(frozen=True)
class Layer:
    """The columns that a layer sends for every node of a halo, forward and backward.

    A convolution sends the features that it propagates, and their derivatives back. The entropy step sends the features that it is
    taken at and one number per node, and back again only where it is differentiated.

    Attributes:
        width: columns that are propagated: of the layer's input or output, whichever are fewer.
        entropy: whether the layer takes the entropy step, at as many columns.
        detach: whether the step is a constant in the backward pass.
        first: whether it propagates the input features, which want no derivative.
    """

    width: int
    entropy: bool = False
    detach: bool = True
    first: bool = False

    @property
    def forward(self) -> int:
        """Columns in the forward pass."""
        return self.width + (self.width + 1 if self.entropy else 0)

    @property
    def backward(self) -> int:
        """Columns in the backward pass."""
        return (0 if self.first else self.width) + (
            self.width + 1 if self.entropy and not self.detach else 0
        )


def step_bytes(
    rows: int, layers: list[Layer], parameters: int, parts: int, bytes_per_number: int = 4
) -> tuple[int, int]:
    """Bytes that one step of training sends: at the halos, and for the gradients of the parameters.

    Args:
        rows: rows that one exchange moves: :attr:`Cut.moved` for all processes together, one of its ``halos`` for what one receives.
        layers: the layers.
        parameters: how many the model has; every process sends and receives about twice as many numbers, whatever the number of processes.
        parts: number of processes.
        bytes_per_number: 4 for float32.

    Example:
        >>> step_bytes(rows=1000, layers=[Layer(64)] * 2 + [Layer(7)], parameters=0, parts=2)
        (1080000, 0)
    """
    columns = sum(layer.forward + layer.backward for layer in layers)
    return rows * columns * bytes_per_number, 2 * (
        parts - 1
    ) * parameters * bytes_per_number // max(parts, 1)
