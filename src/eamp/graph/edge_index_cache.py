"""Remembering the graph of a raw ``edge_index``, so that 64 layers and 100 epochs cost one conversion.

A remembered graph belongs to one living tensor object and is used only while that tensor holds what it held: on the
CPU every look-up compares its contents with a private copy (reading 32 bytes per edge, where the step itself reads some
hundreds), because NumPy or ``.data`` can change a tensor behind its version counter; on other devices, where comparing
would stall the queue, the version counter decides. When the tensor is freed, so is its graph.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary, WeakTensorKeyDictionary

from eamp.graph import CSR, INT32_MAX, Adjacency, Graph, GraphError


class Remembered(NamedTuple):
    contents: tuple[Tensor, ...]
    version: int
    graphs: dict[tuple[int, bool], Graph]


_remembered: WeakIdKeyDictionary = WeakTensorKeyDictionary()


def as_graph(adjacency: Adjacency, num_nodes: int, symmetrize: bool = False) -> Graph:
    """The :class:`Graph` of ``adjacency``, converted at most once per tensor and content."""
    if isinstance(adjacency, Graph):
        return adjacency
    if not isinstance(adjacency, Tensor):
        return Graph(adjacency, num_nodes, symmetrize=symmetrize)
    key = (num_nodes, symmetrize)
    entry = _remembered.get(adjacency)
    if entry is None or not unchanged(adjacency, entry):
        entry = Remembered(
            tuple(part.detach().clone() for part in parts(adjacency)), version(adjacency), {}
        )
        _remembered[adjacency] = entry
    if key not in entry.graphs:
        entry.graphs[key] = Graph(adjacency, num_nodes, symmetrize=symmetrize)
    return entry.graphs[key]


def parts(adjacency: Tensor) -> tuple[Tensor, ...]:
    """The dense tensors an adjacency consists of."""
    if adjacency.layout == torch.strided:
        return (adjacency.as_subclass(Tensor),)
    if adjacency.layout == torch.sparse_csr:
        return (adjacency.crow_indices(), adjacency.col_indices(), adjacency.values())
    if adjacency.layout == torch.sparse_csc:
        return (adjacency.ccol_indices(), adjacency.row_indices(), adjacency.values())
    return (adjacency._indices(), adjacency._values())


def version(adjacency: Tensor) -> int:
    """The in-place version counter; inference tensors have none, and are always compared by contents."""
    return -1 if adjacency.is_inference() else adjacency._version


def unchanged(adjacency: Tensor, entry: Remembered) -> bool:
    if adjacency.device.type != "cpu" and not adjacency.is_inference():
        return version(adjacency) == entry.version
    now = parts(adjacency)
    return len(now) == len(entry.contents) and all(
        a.dtype == b.dtype and torch.equal(a, b) for a, b in zip(now, entry.contents, strict=True)
    )


# Under torch.compile the conversion stays one opaque call. Its outputs are copies of fixed size (entries past
# rowptr[-1] are padding), because compiled code may reuse the memory of an operator's output.
@torch.library.custom_op("eamp::csr_of_edge_index", mutates_args=())
def csr_of_edge_index(
    edge_index: Tensor, num_nodes: int, symmetrize: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    csr = as_graph(edge_index, num_nodes, symmetrize).csr
    capacity, index_type = padded_size(edge_index, num_nodes, symmetrize)
    col, reverse = (csr.col.new_zeros(capacity, dtype=index_type) for _ in range(2))
    col[: csr.col.numel()], reverse[: csr.col.numel()] = csr.col, csr.reverse
    return (
        csr.rowptr.to(index_type, copy=True),
        col,
        reverse,
        csr.degree.clone(),
        csr.rsqrt_degree.clone(),
    )


@csr_of_edge_index.register_fake
def _(
    edge_index: Tensor, num_nodes: int, symmetrize: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    capacity, index_type = padded_size(edge_index, num_nodes, symmetrize)
    rowptr, col, reverse = (
        edge_index.new_empty(size, dtype=index_type) for size in (num_nodes + 1, capacity, capacity)
    )
    degree, rsqrt_degree = (edge_index.new_empty(num_nodes, dtype=torch.float64) for _ in range(2))
    return rowptr, col, reverse, degree, rsqrt_degree


def padded_size(edge_index: Tensor, num_nodes: int, symmetrize: bool) -> tuple[int, torch.dtype]:
    capacity = edge_index.size(1) * (2 if symmetrize else 1)
    return capacity, torch.int32 if max(capacity, num_nodes) <= INT32_MAX else torch.int64


def csr_and_batch(
    adjacency: Adjacency, num_nodes: int, symmetrize: bool = False
) -> tuple[CSR, Tensor | None, int]:
    """What the operations need of an adjacency: its CSR, its batch vector, its number of graphs. Traceable."""
    if isinstance(adjacency, Tensor) and torch.compiler.is_compiling():
        rowptr, col, reverse, degree, rsqrt_degree = csr_of_edge_index(
            adjacency, num_nodes, symmetrize
        )
        return CSR(rowptr, col, reverse, None, degree, rsqrt_degree), None, 1
    graph = as_graph(adjacency, num_nodes, symmetrize)
    if graph.num_nodes != num_nodes:
        raise GraphError(
            f"x has {num_nodes} rows but the graph has {graph.num_nodes} nodes; they must be the same nodes in the same order."
        )
    return graph.csr, graph.batch, graph.num_graphs
