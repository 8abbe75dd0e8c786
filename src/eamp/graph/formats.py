"""Readers of adjacency formats: each returns an edge list and the number of nodes.

Optional libraries are not imported here. An object is recognised by the module that its class
comes from.
"""

from typing import Any, NamedTuple, NoReturn

import torch
from torch import Tensor
from torch_geometric import EdgeIndex

from eamp.graph.csr import merge
from eamp.graph.errors import GraphError
from eamp.graph.graph import Graph


class EdgeList(NamedTuple):
    """Edges as given: unsorted, perhaps directed, perhaps with duplicates and self-loops."""

    edge_index: Tensor
    edge_weight: Tensor | None
    num_nodes: int
    batch: Tensor | None


def read(
    adjacency: Any, num_nodes: int | None, edge_weight: Tensor | None, batch: Tensor | None
) -> EdgeList:
    """Return the :class:`EdgeList` of anything that :class:`eamp.Graph` accepts."""
    size: int | None = None  # number of nodes as the format itself knows it
    for name, given in (("edge_weight", edge_weight), ("batch", batch)):
        if given is not None and not isinstance(given, Tensor):
            raise GraphError(
                f"{name} must be a tensor; got a {type(given).__name__}. Pass "
                f"torch.as_tensor({name})."
            )
    if num_nodes is not None and not hasattr(num_nodes, "__index__"):
        raise GraphError(
            f"num_nodes must be a whole number; got {num_nodes!r}. Edge weights are passed by "
            "name, edge_weight=...."
        )
    if isinstance(adjacency, Graph):
        edges, weight, size = adjacency.edge_index, adjacency.edge_weight, adjacency.num_nodes
        batch = adjacency.batch if batch is None else batch
    elif isinstance(adjacency, Tensor) and adjacency.layout != torch.strided:
        edges, weight, size = read_torch_sparse(adjacency)
    elif isinstance(adjacency, Tensor):
        edges, weight, size = read_edge_index(adjacency)
    elif (library := type(adjacency).__module__.split(".")[0]) == "torch_sparse":
        row, col, value = adjacency.coo()
        edges, weight = torch.stack([row, col]), value
        size = square(*adjacency.sizes()[:2])
    elif library == "scipy":
        coo = adjacency.tocoo()
        edges = torch.stack([torch.as_tensor(ends).long() for ends in (coo.row, coo.col)])
        weight, size = torch.as_tensor(coo.data), square(*coo.shape)
    elif all(hasattr(adjacency, name) for name in ("nodes", "edges", "is_directed")):
        edges, weight, size = read_networkx(adjacency)
    elif library == "numpy":
        edges, weight, size = read_edge_index(torch.as_tensor(adjacency))
    elif hasattr(adjacency, "edge_index") or hasattr(adjacency, "adj_t"):
        return read_data(adjacency, num_nodes, edge_weight, batch)
    else:
        kind = type(adjacency)
        listed = isinstance(adjacency, list | tuple)
        hint = " Pass torch.as_tensor(edge_index)." if listed else ""
        raise GraphError(
            f"cannot read a graph from {kind.__module__}.{kind.__qualname__}. Expected a [2, m] "
            "edge_index, a torch or SciPy sparse matrix, a networkx graph, a torch_geometric Data "
            f"or an eamp.Graph.{hint}"
        )

    if edge_weight is not None:
        weight = check_weight(edge_weight, edges)
    elif weight is not None and size is not None and not isinstance(adjacency, Graph):
        edges, weight = summed(edges, weight, size)
    if num_nodes is None:
        num_nodes = size if size is not None else int(edges.max()) + 1 if edges.numel() else 0
    elif num_nodes < 0 or size not in (None, num_nodes):
        raise GraphError(f"num_nodes = {num_nodes}, but the adjacency has {size} nodes.")
    return EdgeList(edges, weight, num_nodes, None if batch is None else index(batch, edges.device))


def index(numbers: Tensor, device: torch.device) -> Tensor:
    """Return integers of any width as a type that torch indexes with; others as they are."""
    narrow = numbers.dtype not in (torch.int32, torch.int64)
    whole = not (numbers.is_floating_point() or numbers.is_complex() or numbers.dtype == torch.bool)
    return numbers.to(device, torch.int64 if narrow and whole else numbers.dtype)


def read_edge_index(edge_index: Tensor) -> tuple[Tensor, None, int | None]:
    """Read a ``[2, m]`` integer tensor, or a PyG ``EdgeIndex``, which may know its size."""
    if edge_index.dim() != 2 or edge_index.size(0) != 2:
        transposed = edge_index.dim() == 2 and edge_index.size(1) == 2
        hint = " It looks transposed: pass edge_index.t()." if transposed else ""
        raise GraphError(
            f"edge_index must have shape [2, num_edges]; got {list(edge_index.shape)}.{hint}"
        )
    if edge_index.is_floating_point() or edge_index.is_complex() or edge_index.dtype == torch.bool:
        raise GraphError(
            f"edge_index must hold integers; got {edge_index.dtype}. Pass edge_index.long()."
        )
    size = None
    if isinstance(edge_index, EdgeIndex):
        rows, cols = edge_index.sparse_size()
        size = None if rows is None or cols is None else square(rows, cols)
        edge_index = edge_index.as_tensor()
    return index(edge_index.detach(), edge_index.device), None, size


def read_torch_sparse(matrix: Tensor) -> tuple[Tensor, Tensor, int]:
    """Read a sparse tensor in any layout."""
    if matrix.dim() != 2:
        raise GraphError(
            f"a sparse adjacency must have two dimensions; got shape {list(matrix.shape)}."
        )
    if matrix.requires_grad:
        raise_differentiable()
    coo = matrix if matrix.layout == torch.sparse_coo else matrix.to_sparse_coo()
    return coo._indices(), coo._values(), square(*matrix.shape)  # in the order of edge_weight


def read_networkx(graph: Any) -> tuple[Tensor, Tensor, int]:
    """Read a networkx graph; its nodes keep their order, as in PyG's ``from_networkx``."""
    position = {node: i for i, node in enumerate(graph.nodes)}
    triples = [
        (position[u], position[v], d.get("weight", 1.0)) for u, v, d in graph.edges(data=True)
    ]
    edges = torch.tensor([t[:2] for t in triples], dtype=torch.int64).reshape(-1, 2).t()
    weight = torch.tensor([t[2] for t in triples], dtype=torch.float64)
    if not graph.is_directed():
        edges, weight = torch.cat([edges, edges.flip(0)], dim=1), torch.cat([weight, weight])
    return edges, weight, len(position)


def read_data(
    data: Any, num_nodes: int | None, edge_weight: Tensor | None, batch: Tensor | None
) -> EdgeList:
    """Read a PyG ``Data`` or ``Batch``."""
    adjacency = getattr(data, "edge_index", None)
    if adjacency is None:
        adjacency = getattr(data, "adj_t", None)
    if adjacency is None:
        raise GraphError(
            f"{type(data).__name__} has neither edge_index nor adj_t; set data.edge_index."
        )
    edge_weight = getattr(data, "edge_weight", None) if edge_weight is None else edge_weight
    batch = getattr(data, "batch", None) if batch is None else batch
    return read(adjacency, data.num_nodes if num_nodes is None else num_nodes, edge_weight, batch)


def check_weight(edge_weight: Tensor, edges: Tensor) -> Tensor:
    """Return edge weights ``[m]``, after checking that they fit the edges."""
    if edge_weight.dim() == 2 and edge_weight.size(1) == 1:
        edge_weight = edge_weight.squeeze(1)
    if edge_weight.shape != edges.shape[1:]:
        raise GraphError(
            f"edge_weight must have one entry per edge, shape [{edges.size(1)}]; got "
            f"{list(edge_weight.shape)}."
        )
    if edge_weight.requires_grad:
        raise_differentiable()
    if edge_weight.device != edges.device:
        raise GraphError(
            f"edge_index is on {edges.device} but edge_weight on {edge_weight.device}; move one "
            f"with .to({str(edges.device)!r})."
        )
    return edge_weight if edge_weight.is_floating_point() else edge_weight.double()


def raise_differentiable() -> NoReturn:
    """Raise the error for edge weights that require a gradient."""
    raise GraphError(
        "edge weights are constants of a Graph, but these require a gradient, which would be lost "
        "silently; pass edge_weight.detach() if that is what you want."
    )


def summed(edges: Tensor, values: Tensor, num_nodes: int) -> tuple[Tensor, Tensor | None]:
    """Return the edges of a sparse matrix with weights, or ``None`` if all of them are 1.

    A matrix is the sum of its entries, also where these are ones of one edge.
    """
    if values.dtype == torch.bool:
        return edges, None
    values = values if values.is_floating_point() else values.double()
    if not bool((values == 1).all()):
        return edges, values  # added up where the CSR is built
    key, weight = merge(edges[0].long() * num_nodes + edges[1], values, "sum")
    if key.numel() == edges.size(1):
        return edges, None
    return torch.stack([key // num_nodes, key % num_nodes]), weight


def square(rows: int, cols: int) -> int:
    """Return the number of nodes of an adjacency matrix, after checking that it is square."""
    if rows != cols:
        raise GraphError(
            f"an adjacency matrix must be square; got {rows} x {cols}. Bipartite graphs have no "
            "Dirichlet energy here."
        )
    return rows
