"""Thresholds of the graphs of a batch, estimated once per graph and not once per batch.

Training draws new batches of the same graphs in every epoch. A graph is recognised by a digest of
its edges and weights, whatever batch it is in.
"""

import hashlib
from collections.abc import Callable

import torch
from torch import Tensor

from eamp.graph import Graph
from eamp.graph.csr import rows_of_entries
from eamp.graph.subgraph import subgraph

MOST = 2**18
"""Number of graphs that are kept, some 30 MB; all are forgotten when there are more."""

_known: dict[bytes, float] = {}


def known_thresholds(graph: Graph, estimate: Callable[[Graph], Tensor]) -> Tensor:
    """Return the thresholds ``[num_graphs]``, estimated for those graphs that are new.

    Args:
        graph: a batch of graphs whose nodes stand together, graph after graph.
        estimate: the function that estimates the threshold of every graph in a batch.
    """
    assert graph.batch is not None
    digests = digests_of(graph)
    first = {digest: number for number, digest in enumerate(digests) if digest not in _known}
    if first:
        if len(_known) + len(first) > MOST:
            _known.clear()
            first = {digest: number for number, digest in enumerate(digests)}
        chosen = torch.tensor(sorted(first.values()), device=graph.device)
        found = estimate(graphs_of(graph, chosen)).tolist()
        _known.update(zip((digests[i] for i in chosen.tolist()), found, strict=True))
    return graph.degree.new_tensor([_known[digest] for digest in digests])


def stands_together(graph: Graph) -> bool:
    """Return whether the nodes of a batch stand graph after graph, as PyG's loaders put them."""
    return graph.batch is not None and bool((graph.batch.diff() >= 0).all())


def graphs_of(graph: Graph, chosen: Tensor) -> Graph:
    """Return the batch of some graphs, given by their ascending numbers."""
    assert graph.batch is not None
    number = graph.batch.new_full((graph.num_graphs,), -1)
    number[chosen] = torch.arange(chosen.numel(), device=graph.device, dtype=number.dtype)
    nodes = (number[graph.batch] >= 0).nonzero().squeeze(1)
    part = subgraph(graph, nodes)
    return Graph._of(part.csr, part.degree, number[graph.batch[nodes]], chosen.numel())


def digests_of(graph: Graph) -> list[bytes]:
    """Return a digest of the edges and weights of every graph, with nodes numbered from 0."""
    assert graph.batch is not None
    csr, sizes = graph.csr, graph.batch.bincount(minlength=graph.num_graphs)
    ends = sizes.cumsum(0)
    starts = ends - sizes
    row = rows_of_entries(csr)
    neighbour = (csr.col - starts[graph.batch[row]]).cpu().numpy()
    length = csr.rowptr.diff().long().cpu().numpy()
    weight = None if csr.edge_weight is None else csr.edge_weight.double().cpu().numpy()
    node, entry = [0, *ends.tolist()], csr.rowptr[[0, *ends.tolist()]].tolist()
    digests = []
    for i in range(graph.num_graphs):
        inside = slice(entry[i], entry[i + 1])
        state = hashlib.blake2b(length[node[i] : node[i + 1]].tobytes(), digest_size=16)
        state.update(neighbour[inside].tobytes())
        if weight is not None:
            state.update(b"weights" + weight[inside].tobytes())
        digests.append(state.digest())
    return digests
