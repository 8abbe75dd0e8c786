"""``Graph``: an undirected graph, validated once, and all that a layer may ask of it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import FrozenInstanceError
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Self, TypeAlias, TypeVar

import torch
from torch import Tensor

from eamp.graph.csr import CSR, build_csr, check_batch, degrees, rows_of_entries
from eamp.graph.transforms import outside_transforms

if TYPE_CHECKING:
    from torch_geometric.data import Data

Value = TypeVar("Value")


class Rows(NamedTuple):
    """The places of this process's rows in the embedding of the whole graph.

    Attributes:
        nodes: ``[n]``, the number of each row in the whole graph, ascending.
        entries: ``[n]``, the first entry of each row in the whole graph's sparse input features,
            or ``None`` if those are dense.
    """

    nodes: Tensor
    entries: Tensor | None = None


class Graph:
    r"""An undirected graph without self-loops, made once and used everywhere.

    Self-loops are dropped: they add nothing to the energy and must not count in the degree.
    Duplicate edges are merged, and their weights are added up. The entries of a sparse matrix, and
    the parallel edges of a networkx ``MultiGraph``, are weights, also where all of them are 1.
    Isolated nodes are allowed.

    Args:
        adjacency: a ``[2, m]`` ``edge_index`` (tensor, NumPy array or PyG ``EdgeIndex``), a torch
            sparse tensor (CSR, CSC or COO), a ``torch_sparse.SparseTensor``, a SciPy sparse
            matrix, a networkx graph, or a PyG ``Data``.
        num_nodes: number of nodes; read off the adjacency when left out.
        edge_weight: ``[m]`` non-negative, symmetric weights for an ``edge_index``. Sparse matrices
            bring their own (values that are all 1 mean an unweighted graph), networkx graphs the
            attribute ``weight``, ``Data`` its ``edge_weight``.
        batch: ``[n]``, the graph of a mini-batch that each node belongs to.
        symmetrize: accept a directed graph and add the missing directions. Where both directions
            are present, their weights are averaged.

    Raises:
        GraphError: if the adjacency cannot be used.

    Example:
        >>> import torch, eamp
        >>> g = eamp.Graph(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]))
        >>> g
        Graph(num_nodes=3, num_edges=2)
        >>> g.degree
        tensor([1., 2., 1.], dtype=torch.float64)
    """

    num_nodes: int
    """Number of nodes; for a part of a graph, those whose rows are here."""
    local_csr: CSR
    """The neighbour lists of the rows that :meth:`with_halo` returns."""
    degree: Tensor
    """``[n]`` in float64, the sum of the weights of a node's edges, k_i."""
    rsqrt_degree: Tensor
    """``[n]`` in float64, 1/sqrt(k_i), and 0 for a node without neighbours."""
    batch: Tensor | None
    """``[n]``, the graph of every node in a mini-batch, or ``None`` for a single graph."""
    num_graphs: int
    """Number of graphs in the mini-batch, 1 for a single graph."""
    key: Tensor
    """The tensor by which :func:`eamp.graph.edge_index_cache.graph_of_key` finds this graph."""
    _remembered: dict[Hashable, Any]

    def __init__(
        self,
        adjacency: Adjacency,
        num_nodes: int | None = None,
        *,
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
        symmetrize: bool = False,
    ) -> None:
        from eamp.graph.formats import read  # imported here because it imports this module

        edges = read(adjacency, num_nodes, edge_weight, batch)
        csr = build_csr(edges.edge_index, edges.edge_weight, edges.num_nodes, symmetrize)
        num_graphs = check_batch(edges.batch, csr, edges.num_nodes)
        self._fill(csr, degrees(csr), edges.batch, num_graphs)

    @classmethod
    def _of(
        cls, csr: CSR, degree: Tensor, batch: Tensor | None = None, num_graphs: int = 1, **more: Any
    ) -> Self:
        """Make a graph of checked arrays; ``more`` are attributes of subclasses."""
        graph = object.__new__(cls)
        graph._fill(csr, degree, batch, num_graphs, **more)
        return graph

    def _fill(
        self, csr: CSR, degree: Tensor, batch: Tensor | None, num_graphs: int, **more: Any
    ) -> None:
        attributes = {
            "num_nodes": degree.size(0),
            "local_csr": csr,
            "degree": degree,
            "rsqrt_degree": torch.where(degree > 0, degree.rsqrt(), 0.0),
            "batch": batch,
            "num_graphs": num_graphs,
            "key": degree,
            "_remembered": {},
            **more,
        }
        self.__setstate__(attributes)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise FrozenInstanceError(
            f"a Graph cannot be changed, so {name} cannot be set; make a new one."
        )

    # --- The graph as users see it ------------------------------------------------------------

    @property
    def csr(self) -> CSR:
        """The neighbour lists of all nodes; an error where not all rows are in this process."""
        self.require_all_rows("an operation on single edges")
        return self.local_csr

    @property
    def num_edges(self) -> int:
        """Number of undirected edges."""
        return self.local_csr.col.numel() // 2

    @property
    def device(self) -> torch.device:
        """The device that the graph lies on."""
        return self.degree.device

    @property
    def edge_weight(self) -> Tensor | None:
        """Weights in the order of :attr:`edge_index`, or ``None``."""
        return self.csr.edge_weight

    @property
    def edge_index(self) -> Tensor:
        """``[2, 2 · num_edges]`` in int64, sorted, both directions, as PyG's layers take it."""
        return torch.stack([rows_of_entries(self.csr), self.csr.col.long()])

    def to(self, device: torch.device | str, non_blocking: bool = False) -> Graph:
        """Return the same graph on ``device``."""
        if torch.device(device) == self.device:
            return self

        def moved(tensor: Tensor | None) -> Any:
            return None if tensor is None else tensor.to(device, non_blocking=non_blocking)

        csr = CSR(*map(moved, self.csr))
        return Graph._of(csr, moved(self.degree), moved(self.batch), self.num_graphs)

    def __repr__(self) -> str:
        extras = "".join(
            [
                ", weighted=True" if self.local_csr.edge_weight is not None else "",
                f", num_graphs={self.num_graphs}" if self.batch is not None else "",
                f", device={str(self.device)!r}" if self.device.type != "cpu" else "",
            ]
        )
        return f"Graph(num_nodes={self.num_nodes}, num_edges={self.num_edges}{extras})"

    # --- What a layer may ask -----------------------------------------------------------------
    # A graph that is spread over processes, or sampled, overrides these methods.

    @property
    def total_nodes(self) -> int:
        """Number of nodes of the whole graph."""
        return self.num_nodes

    @property
    def rows(self) -> Rows | None:
        """The places of the rows in the whole graph; ``None`` where this graph is the whole."""
        return None

    @property
    def in_one_piece(self) -> bool:
        """Whether every row of the graph is in this process, with all its neighbours."""
        return True

    def require_all_rows(self, what: str) -> None:
        """Raise an error if ``what`` needs rows or edges that are not in this process."""

    @property
    def sampled_from(self) -> Graph:
        """The graph whose neighbours were sampled; a graph with all neighbours is it itself."""
        return self

    def with_halo(self, x: Tensor) -> Tensor:
        """Return ``x``, followed by the rows of neighbours that other processes hold."""
        return x

    def own_rows(self, x: Tensor) -> Tensor:
        """Return the rows of ``x`` that are not those of the halo."""
        return x

    def total(self, values: Tensor) -> Tensor:
        """Return the sum over all nodes, ``[...]`` for values ``[n, ...]``."""
        return values.sum(0)

    def total_by_graph(self, values: Tensor) -> Tensor:
        """Return the sum over the nodes of every graph, ``[num_graphs, ...]``."""
        if self.batch is None:
            return self.total(values).unsqueeze(0)
        zeros = values.new_zeros(self.num_graphs, *values.shape[1:])
        return zeros.index_add(0, self.batch, values)

    def largest(self, values: Tensor) -> Tensor:
        """Return the largest of non-negative values ``[n]`` over all nodes."""
        return values.amax(0) if values.numel() else values.new_zeros(())

    def largest_by_graph(self, values: Tensor) -> Tensor:
        """Return the largest of non-negative values ``[n]`` in every graph, ``[num_graphs]``."""
        if self.batch is None:
            return self.largest(values).unsqueeze(0)
        zeros = values.new_zeros(self.num_graphs)
        return zeros.scatter_reduce(0, self.batch, values, "amax")

    def for_nodes(self, by_graph: Tensor) -> Tensor:
        """Return one value per graph in a shape that broadcasts with the nodes.

        That is the only one, ``[...]``, of a single graph, and one per node, ``[n, ...]``, of a
        batch.
        """
        return by_graph[0] if self.batch is None else by_graph[self.batch]

    def graph_sizes(self) -> Tensor:
        """Return the number of nodes of every graph, at least 1, ``[num_graphs]`` in float64."""
        if self.batch is None:
            return self.degree.new_full((1,), max(self.total_nodes, 1))
        batch, counts = self.batch, self.degree.new_zeros(self.num_graphs)
        ones = torch.ones_like(self.degree)
        return self.remember("graph_sizes", lambda: counts.index_add(0, batch, ones).clamp(min=1))

    def mean(self, values: Tensor) -> Tensor:
        """Return the mean over the nodes of every graph, in the shape of :meth:`for_nodes`."""
        sizes = self.graph_sizes().to(values.dtype).reshape(-1, *(1,) * (values.dim() - 1))
        return self.for_nodes(self.total_by_graph(values) / sizes)

    def remember(self, key: Hashable, compute: Callable[[], Value]) -> Value:
        """Return what ``compute`` returns, computed once and kept as long as the graph lives."""
        if torch.compiler.is_compiling():
            return compute()
        if key not in self._remembered:
            # A later call may want to differentiate.
            with outside_transforms(), torch.inference_mode(False):
                self._remembered[key] = compute()
        value: Value = self._remembered[key]
        return value

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes for a copy or a pickle, which starts with nothing remembered."""
        return {**self.__dict__, "_remembered": {}}

    def __setstate__(self, attributes: dict[str, Any]) -> None:
        """Set all attributes, the only time that they are set."""
        compiling = torch.compiler.is_compiling()
        for name, value in attributes.items():
            object.__setattr__(self, name, value if compiling else trainable(value))
        if not compiling:
            # Imported here because it imports this module.
            from eamp.graph.edge_index_cache import findable_by_key

            findable_by_key(self)


def trainable(value: Any) -> Any:
    """Return a tensor, or a CSR, that autograd may save, though it was made in inference mode."""
    if isinstance(value, CSR):
        return CSR(*map(trainable, value))
    if isinstance(value, Tensor) and value.is_inference():
        with torch.inference_mode(False):
            return value.clone()
    return value


Adjacency: TypeAlias = "Tensor | Graph | Data | Any"
"""Anything that :class:`Graph` can be made of."""
