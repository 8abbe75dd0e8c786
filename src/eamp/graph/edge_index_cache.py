"""The one cache for raw ``edge_index`` tensors: 64 layers and 100 epochs cost one conversion.

A cached graph belongs to one living tensor object and is used only while that tensor holds the
same contents. On the CPU every look-up compares the contents with a private copy, because NumPy or
``.data`` can change a tensor behind its version counter. The comparison reads 32 bytes per edge,
where the step itself reads some hundreds. On other devices comparing would stall the queue, so
the version counter decides. When the tensor is freed, so is its graph.
"""

import warnings
from collections.abc import Hashable
from typing import Any, NamedTuple
from weakref import ref

import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary, WeakTensorKeyDictionary

from eamp.graph.batches import Tie, forget_calls, running_batch, tie_of, version
from eamp.graph.csr import CSR, index_type_of
from eamp.graph.errors import GraphError
from eamp.graph.graph import Adjacency, Graph
from eamp.graph.transforms import outside_transforms, transformed, unmapped


class BatchWarning(UserWarning):
    """A step that is not the same alone and in a batch."""


class Cached(NamedTuple):
    """The graphs of one adjacency tensor, and the contents that they were made of.

    The key of a graph is its number of nodes, whether it was made undirected, and its tie to a
    ``batch``.
    """

    contents: tuple[Tensor, ...]
    version: int
    graphs: dict[tuple[int, bool, Tie | None], Graph]
    typed_graphs: dict[Hashable, Any]  # see eamp.graph.typed_graph_cache


COMPILED = (
    "under torch.compile the entropy step cannot see from edge_index which nodes form a graph; "
    "pass eamp.Graph(edge_index, batch=batch) in place of edge_index."
)
POOLED = (
    "a layer got a graph of other nodes than those of the batch that its model was called with, as "
    "after pooling; its step takes thresholds and means over all graphs of the batch. Pass "
    "weight= a number, without normalize and scale_free, for a step that is the same in any batch."
)
# Adjacency tensors map to `Cached`, the key of a graph to a weak reference to that graph.
_cache: WeakIdKeyDictionary = WeakTensorKeyDictionary()


def set_graph(edge_index: Tensor, graph: Graph) -> None:
    """Let layers that are called with ``edge_index`` find ``graph``, as long as the tensor lives.

    The graph must not hold the tensor itself, or neither would ever be freed.
    """
    contents = (graph.edge_index,)
    assert contents[0] is not edge_index
    graphs: dict[tuple[int, bool, Tie | None], Graph] = {
        (graph.num_nodes, symmetrize, None): graph for symmetrize in (False, True)
    }
    _cache[edge_index] = Cached(contents, version(edge_index), graphs, {})


def as_graph(
    adjacency: Adjacency,
    num_nodes: int,
    symmetrize: bool = False,
    with_batch: bool = True,
    needs_batch: bool = False,
) -> Graph:
    """Return the :class:`Graph` of ``adjacency``, converted once per tensor and contents.

    Under ``torch.compile`` the conversion of an ``edge_index`` is one operator of the compiled
    code.

    Args:
        adjacency: a graph, or anything one can be made of.
        num_nodes: the number of its nodes.
        symmetrize: see :class:`Graph`.
        with_batch: whether the graph of an ``edge_index`` knows its ``batch``
            (:mod:`eamp.graph.batches`), as layers want it. Pure functions do not: they depend on
            their arguments alone.
        needs_batch: whether the caller takes sums over whole graphs. Compiled code does not know a
            ``batch``, and then raises an error if there is one.
    """
    if isinstance(adjacency, Graph):
        return adjacency
    if transformed() and isinstance(adjacency, Tensor):
        with outside_transforms():
            return graph_of_tensor(unmapped(adjacency), num_nodes, symmetrize, with_batch)
    if not isinstance(adjacency, Tensor):
        return Graph(adjacency, num_nodes, symmetrize=symmetrize)
    if torch.compiler.is_compiling():
        found = csr_of_edge_index(adjacency, num_nodes, symmetrize, needs_batch)
        rowptr, col, reverse, degree = found
        return Graph._of(CSR(rowptr, col, reverse, None), degree, key=adjacency)
    graph = graph_of_tensor(adjacency, num_nodes, symmetrize, with_batch)
    if needs_batch and graph.batch is None and running_batch() is not None:
        warnings.warn(POOLED, BatchWarning, stacklevel=2)
    return graph


def graph_of_tensor(adjacency: Tensor, num_nodes: int, symmetrize: bool, with_batch: bool) -> Graph:
    """Return the cached graph of a tensor, or convert it and cache the graph."""
    entry = entry_of(adjacency)
    tie = tie_of(adjacency, num_nodes) if with_batch else None
    key = (num_nodes, symmetrize, tie)
    if key not in entry.graphs:
        for old in [old for old in entry.graphs if old[2] not in (None, tie)]:
            del entry.graphs[old]  # of a batch that the tensor had before
        batch = None if tie is None else tie.batch
        entry.graphs[key] = Graph(adjacency, num_nodes, batch=batch, symmetrize=symmetrize)
    return entry.graphs[key]


def entry_of(adjacency: Tensor) -> Cached:
    """Return the graphs of a tensor; none yet if it is new, or has been changed."""
    entry: Cached | None = _cache.get(adjacency)
    if entry is None or not unchanged(adjacency, entry):
        contents = tuple(part.detach().clone() for part in dense_parts(adjacency))
        entry = _cache[adjacency] = Cached(contents, version(adjacency), {}, {})
    return entry


def graph_for(
    x: Tensor,
    adjacency: Adjacency,
    check_finite: bool = False,
    with_batch: bool = True,
    needs_batch: bool = False,
) -> Graph:
    """Return the :class:`Graph` of ``adjacency``, after checking that features ``x`` fit it.

    Every function and layer checks its features here, or calls a layer that does. See
    :func:`as_graph`.
    """
    check_features(x)
    graph = as_graph(adjacency, x.size(0), with_batch=with_batch, needs_batch=needs_batch)
    if graph.num_nodes != x.size(0):
        raise GraphError(
            f"x has {x.size(0)} rows but the graph has {graph.num_nodes} nodes; they must be the "
            "same nodes in the same order."
        )
    if graph.device != x.device:
        raise GraphError(
            f"x is on {x.device} but the graph on {graph.device}; move one with "
            f".to({str(x.device)!r})."
        )
    if check_finite and not bool(torch.isfinite(x).all()):
        bad = (~torch.isfinite(x)).any(1).nonzero()
        raise GraphError(
            f"x holds NaN or infinity in {bad.numel()} of {x.size(0)} rows; the first is row "
            f"{int(bad[0])}."
        )
    return graph


def check_features(x: Tensor) -> None:
    """Raise an error unless ``x`` is a matrix of real numbers."""
    if not isinstance(x, Tensor) or x.dim() != 2 or not x.is_floating_point():
        got = f"{list(x.shape)} of {x.dtype}" if isinstance(x, Tensor) else type(x).__name__
        hint = ""
        if not isinstance(x, Tensor):
            hint = " Pass torch.as_tensor(x, dtype=torch.float32)."
        elif x.dim() == 1:
            hint = " Pass x.unsqueeze(1) for one feature per node."
        elif x.dim() == 2 and not x.is_complex():
            hint = " Pass x.float()."
        raise GraphError(
            f"x must hold real features of shape [num_nodes, num_features]; got {got}.{hint}"
        )


def findable_by_key(graph: Graph) -> None:
    """Let :func:`graph_of_key` find ``graph`` as long as it lives."""
    _cache[graph.key] = ref(graph)


def graph_of_key(key: Tensor, num_nodes: int, symmetrize: bool) -> Graph:
    """Return the graph of :attr:`Graph.key`, for operators, which take tensors and no graphs."""
    entry = _cache.get(key)
    # Compiled code takes an `edge_index` for one graph.
    found = entry() if isinstance(entry, ref) else as_graph(key, num_nodes, symmetrize, False)
    assert found is not None, "a graph lives as long as the tensors that it is called with"
    return found


def dense_parts(adjacency: Tensor) -> tuple[Tensor, ...]:
    """Return the dense tensors that an adjacency consists of."""
    if adjacency.layout == torch.strided:
        return (adjacency.as_subclass(Tensor),)
    if adjacency.layout == torch.sparse_csr:
        return (adjacency.crow_indices(), adjacency.col_indices(), adjacency.values())
    if adjacency.layout == torch.sparse_csc:
        return (adjacency.ccol_indices(), adjacency.row_indices(), adjacency.values())
    return (adjacency._indices(), adjacency._values())


def unchanged(adjacency: Tensor, entry: Cached) -> bool:
    """Return whether a tensor still holds the contents that its cached graphs were made of."""
    if adjacency.device.type != "cpu" and not adjacency.is_inference():
        return version(adjacency) == entry.version
    now = dense_parts(adjacency)
    return len(now) == len(entry.contents) and all(
        a.dtype == b.dtype and torch.equal(a, b) for a, b in zip(now, entry.contents, strict=True)
    )


# The outputs are copies of fixed size, because compiled code may reuse the memory of an operator's
# output. Entries past rowptr[-1] are padding.
@torch.library.custom_op("eamp::csr_of_adjacency", mutates_args=())
def csr_of_edge_index(
    edge_index: Tensor, num_nodes: int, symmetrize: bool, needs_batch: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Convert an ``edge_index`` to ``rowptr``, ``col``, ``reverse`` and ``degree``."""
    if needs_batch and tie_of(edge_index, num_nodes) is not None:
        forget_calls()
        raise GraphError(COMPILED)
    graph = as_graph(edge_index, num_nodes, symmetrize, False)
    rowptr, found, opposite, _ = graph.csr
    capacity, index_type = padded_size(edge_index, num_nodes, symmetrize)
    col, reverse = (found.new_zeros(capacity, dtype=index_type) for _ in range(2))
    col[: found.numel()], reverse[: found.numel()] = found, opposite
    return rowptr.to(index_type, copy=True), col, reverse, graph.degree.clone()


@csr_of_edge_index.register_fake
def _(
    edge_index: Tensor, num_nodes: int, symmetrize: bool, needs_batch: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    capacity, index_type = padded_size(edge_index, num_nodes, symmetrize)
    rowptr, col, reverse = (
        edge_index.new_empty(size, dtype=index_type) for size in (num_nodes + 1, capacity, capacity)
    )
    return rowptr, col, reverse, edge_index.new_empty(num_nodes, dtype=torch.float64)


def padded_size(edge_index: Tensor, num_nodes: int, symmetrize: bool) -> tuple[int, torch.dtype]:
    """Return the largest number of entries that an ``edge_index`` can have, and their type."""
    capacity = edge_index.size(1) * (2 if symmetrize else 1)
    return capacity, index_type_of(capacity, num_nodes)
