"""The number of bytes that one training step sends between processes, computed from the parts."""

from dataclasses import dataclass

import torch
from torch import Tensor

from eamp.graph import Graph


@dataclass(frozen=True)
class Cut:
    """The sizes of the parts of a graph, and of the borders between them."""

    sizes: Tensor
    """``[parts]``, number of nodes of every part."""
    halos: Tensor
    """``[parts]``, number of nodes of other parts that every part borders on."""
    cut_edges: int
    """Number of edges between parts."""

    @property
    def moved(self) -> int:
        """Number of rows that all processes together send in one exchange of halos."""
        return int(self.halos.sum())


def cut(graph: Graph, part: Tensor) -> Cut:
    """Return sizes, halos and cut edges for the part of every node, ``[n]``."""
    parts, n, col = int(part.max()) + 1, graph.num_nodes, graph.csr.col.long()
    here = part.repeat_interleave(graph.csr.rowptr.diff().long())
    across = here != part[col]
    # A node is in the halo of a part once, even if several of its edges lead there.
    pairs = torch.unique(here[across] * n + col[across])
    halos = (pairs // n).bincount(minlength=parts)
    return Cut(part.bincount(minlength=parts), halos, int(across.sum()) // 2)


@dataclass(frozen=True)
class Layer:
    """The numbers that a layer sends for every node of a halo.

    A convolution sends the features that it propagates, and their derivatives in the backward pass.
    The entropy step sends the features that it is taken at and one number per node; their
    derivatives, too, unless it is detached.
    """

    width: int
    """Number of features that are propagated: the fewer of the layer's input and output."""
    entropy: bool = False
    """Whether the layer takes the entropy step, at as many features."""
    detach: bool = True
    """Whether the step is a constant in the backward pass."""
    first: bool = False
    """Whether the layer propagates the input features, which need no derivative."""

    @property
    def numbers(self) -> int:
        """Numbers per node in the forward and the backward pass."""
        step_passes = self.entropy * (1 if self.detach else 2)
        return self.width * (1 if self.first else 2) + (self.width + 1) * step_passes


def step_bytes(
    rows: int, layers: list[Layer], parameters: int, parts: int, bytes_per_number: int = 4
) -> tuple[int, int]:
    """Return the bytes that one training step sends: for the halos, and for the gradients.

    Args:
        rows: number of rows in one exchange: :attr:`Cut.moved` for the bytes that all processes
            send, an element of :attr:`Cut.halos` for the bytes that one process receives.
        layers: the layers of the model.
        parameters: number of parameters; a process sends about twice as many numbers.
        parts: number of processes.
        bytes_per_number: 4 for float32.

    Example:
        >>> step_bytes(rows=1000, layers=[Layer(64)] * 2 + [Layer(7)], parameters=0, parts=2)
        (1080000, 0)
    """
    numbers = rows * sum(layer.numbers for layer in layers)
    gradients = 2 * (parts - 1) * parameters * bytes_per_number // max(parts, 1)
    return numbers * bytes_per_number, gradients
