"""``HaloGraph``: a graph whose rows are followed by copies of neighbours that lie elsewhere."""

from abc import abstractmethod
from typing import Self

import torch
from torch import Tensor

from eamp.graph import Graph, GraphError


class HaloGraph(Graph):
    """Nodes whose rows are here (*own rows*), and copies of rows that they border on (the *halo*).

    Features have a row for every node and none for the halo. :attr:`local_csr` is the graph of own
    rows, then halo, with all edges that have an end among the own rows. So a sum over edges is
    complete in every own row. So is its derivative once :meth:`halo`, in its backward pass, has
    added the derivatives of the copies to the rows that they are copies of.
    """

    @abstractmethod
    def halo(self, x: Tensor) -> Tensor:
        """Return the rows of the halo, ``[h, ...]`` for own rows ``[n, ...]``."""

    in_one_piece = False

    def require_all_rows(self, what: str) -> None:
        """Raise an error, since not all rows or edges are here."""
        raise GraphError(
            f"{what} needs the rows and edges of the whole graph, but this graph is spread over "
            "several processes or sampled; use the whole graph in one process."
        )

    def with_halo(self, x: Tensor) -> Tensor:
        """Return own rows ``x``, followed by the rows of the halo."""
        return torch.cat([x, self.halo(x)])

    def own_rows(self, x: Tensor) -> Tensor:
        """Return the rows of ``x`` that are not those of the halo."""
        return x[: self.num_nodes]

    def to(self, device: torch.device | str, non_blocking: bool = False) -> Self:
        """Return the graph itself; an error if it lies on another device."""
        if torch.device(device) == self.device:
            return self
        raise GraphError(
            f"a {type(self).__name__} stays on {self.device}; move the whole graph to {device} and "
            "make it again."
        )
