"""Exact inference over all nodes of a large graph, in bounded memory.

The entropy step sees three hops (convolution, energy, gradient), so the neighbourhoods of a few
nodes grow fast with depth. Layer by layer no neighbourhood is needed: every pass reads the
embedding of all nodes that the pass before has written. A full batch is large because of its
messages, a row of features for every edge. Only PyG's layers make messages, in ``propagate``, which
here gets the edges into some nodes, then those into the next. The sum of a node is never split.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric import EdgeIndex
from torch_geometric.nn import LayerNorm, MessagePassing, aggr, norm
from torch_geometric.utils import is_sparse

from eamp.nn.checks import check_module

# Statistics over all rows, and sequences whose padding depends on the largest degree.
OVER_ALL_ROWS = (
    norm.DiffGroupNorm,
    norm.GraphNorm,
    norm.GraphSizeNorm,
    norm.InstanceNorm,
    norm.LayerNorm,
    norm.MeanSubtractionNorm,
    norm.PairNorm,
    aggr.GRUAggregation,
    aggr.LSTMAggregation,
)
METHODS = ("propagate", "edge_updater")  # of PyG's layers, which read or make rows for all edges


def inference(model: Module, *args: Any, edges_per_block: int = 2**17, **kwargs: Any) -> Any:
    """Return ``model(*args, **kwargs)`` in evaluation mode, without gradients, in bounded memory.

    The output is that of the full batch, for every model. PyG's layers, of any number of hops, see
    all edges of a block of nodes at a time. Everything else, such as norms, schedules or statistics
    over all nodes, runs on all nodes. An adjacency that is a sparse matrix is left to PyG, which
    multiplies with it and sends no messages. Layers that look beyond the edges of a node see all
    edges at once: those with a norm over all rows inside, as ``EdgeConv`` may have, and those that
    aggregate by an LSTM or GRU.

    Beside the input and the graph, memory holds a few embeddings ``[n, F]`` of one layer, a few
    numbers per edge (per attention head, if there are several), and the messages
    ``[edges_per_block, F]`` of one block, all on the device of the input. Attention weights that
    ``TransformerConv(..., return_attention_weights=True)`` returns are those of the last block.

    Args:
        model: any model. Its training mode is restored afterwards.
        *args: positional arguments of the model.
        edges_per_block: number of messages that a layer of PyG may hold at a time; the messages to
            one node are never split.
        **kwargs: keyword arguments of the model.

    Example:
        >>> import torch, eamp
        >>> from torch_geometric.nn import GAT
        >>> model = eamp.wrap(GAT(8, 16, num_layers=3, out_channels=4), temperature=10.0)
        >>> data = eamp.data.load("grid:10x10,features=8")
        >>> out = eamp.inference(model, data.x, data.edge_index, edges_per_block=50)
        >>> torch.allclose(out, model.eval()(data.x, data.edge_index), atol=1e-5)
        True
    """
    check_module(model, "inference")
    if edges_per_block < 1:
        raise ValueError(f"edges_per_block must be at least 1, but is {edges_per_block}.")
    with torch.no_grad(), in_blocks(model, edges_per_block):
        return model(*args, **kwargs)


@contextmanager
def in_blocks(model: Module, edges_per_block: int) -> Iterator[None]:
    """Set evaluation mode, and let layers of PyG work block by block; undo both afterwards."""
    training = [module for module in model.modules() if module.training]
    layers = [each for each in model.modules() if isinstance(each, MessagePassing)]
    layers = [layer for layer in layers if not any(map(sees_other_nodes, layer.modules()))]
    before = [{name: vars(layer).get(name) for name in METHODS} for layer in layers]
    model.eval()
    for layer in layers:
        vars(layer).update({name: Blockwise(layer, name, edges_per_block) for name in METHODS})
    try:
        yield
    finally:
        for module in training:
            module.training = True
        for layer, own in zip(layers, before, strict=True):
            for name, method in own.items():
                del vars(layer)[name]
                vars(layer).update({} if method is None else {name: method})


def sees_other_nodes(module: Module) -> bool:
    """Return whether a part of a layer mixes the edges of several nodes."""
    by_row = isinstance(module, LayerNorm) and module.mode == "node"
    return isinstance(module, OVER_ALL_ROWS) and not by_row


class Block(NamedTuple):
    """Some consecutive nodes, and the edges that lead into them."""

    start: int
    stop: int
    edges: Tensor | slice


class Blockwise:
    """The method ``propagate`` or ``edge_updater`` of a PyG layer, called block by block."""

    def __init__(self, layer: MessagePassing, name: str, edges_per_block: int) -> None:
        self.layer, self.function = layer, getattr(layer, name)
        self.edges_per_block = edges_per_block
        self.per_edge = name == "edge_updater"  # it returns rows of edges, propagate rows of nodes
        # The row of edge_index that messages go to.
        self.receiver = 1 if layer.flow == "source_to_target" else 0
        names = layer._edge_user_args if self.per_edge else layer._user_args
        # PyG looks up arguments with these suffixes at the ends of every edge.
        self.of_nodes = {name[:-2] for name in names if name.endswith(("_i", "_j"))}
        # Its own parameters: those that PyG does not give to every layer.
        own = partial(layer.inspector.get_param_names, exclude=layer.special_args)
        update, aggregate = ([], []) if self.per_edge else (own("update"), own("aggregate"))
        self.per_node = self.of_nodes | set(update)
        message = "edge_update" if self.per_edge else "message"
        reads = set(layer.inspector.get_param_names(message))
        # A message that reads `index` may use it for a softmax over the edges of a node only.
        self.reads_index = "index" in reads
        # A message that reads numbers of nodes needs the rows of all nodes, and so may further
        # arguments of update and aggregate. PyG's layers of the other flow do not take pairs.
        reads_numbers = bool(reads & {"edge_index", "edge_index_i", "edge_index_j"})
        self.all_rows = reads_numbers or bool(update or aggregate) or self.receiver == 0

    def __call__(
        self, edge_index: Any, size: tuple[int | None, int | None] | None = None, **given: Any
    ) -> Any:
        """Return the result of the method for all edges."""
        if is_sparse(edge_index) or edge_index.size(1) <= self.edges_per_block:
            return self.function(edge_index, size=size, **given)
        edge_index = edge_index.as_tensor() if isinstance(edge_index, EdgeIndex) else edge_index
        sizes, total = self.sizes(size, given), edge_index.size(1)
        nodes = sizes[self.receiver]
        if not nodes:  # unknown
            return self.function(edge_index, size=size, **given)
        others = [given[name] for name in given if name not in self.of_nodes]
        looks_up = self.reads_index and any(has_rows(value, nodes) for value in others)
        all_rows = self.all_rows or looks_up
        out: Any = None
        for block in blocks(edge_index[self.receiver], nodes, self.edges_per_block):
            rows = self.of_block(block, edge_index, sizes, given, all_rows)
            if self.per_edge:
                out = put(out, rows, 0, total, block.edges)
            else:
                rows = self.rows_in(block, rows) if all_rows else rows
                out = put(out, rows, self.layer.node_dim, nodes, slice(block.start, block.stop))
        return out

    def of_block(
        self,
        block: Block,
        edge_index: Tensor,
        sizes: list[int],
        given: dict[str, Any],
        all_rows: bool,
    ) -> Any:
        """Return the result of the method for the edges of one block."""
        edges, sizes, given = edge_index[:, block.edges], list(sizes), dict(given)
        for name in given.keys() - self.per_node:
            if has_rows(given[name], edge_index.size(1)):
                given[name] = given[name][block.edges]
        if not all_rows:
            edges = edges.clone()
            edges[self.receiver] -= block.start
            sizes[self.receiver] = block.stop - block.start
            given |= {name: self.ends(given[name], block) for name in given.keys() & self.of_nodes}
        return self.function(edges, size=tuple(sizes), **given)

    def rows_in(self, block: Block, x: Tensor) -> Tensor:
        """Return the rows of a block's nodes."""
        return x.narrow(self.layer.node_dim, block.start, block.stop - block.start)

    def ends(self, value: Any, block: Block) -> Any:
        """Return the pair of all senders' and the block's receivers' features."""
        pair = list(value) if isinstance(value, tuple | list) else [value, value]
        if isinstance(pair[self.receiver], Tensor):
            pair[self.receiver] = self.rows_in(block, pair[self.receiver])
        return tuple(pair) if any(isinstance(end, Tensor) for end in pair) else value

    def sizes(self, size: tuple[int | None, int | None] | None, given: dict[str, Any]) -> list[int]:
        """Return the numbers of senders and receivers, as PyG reads them off the features."""
        found = list(size or (None, None))
        for value in (given[name] for name in given.keys() & self.of_nodes):
            pair = value if isinstance(value, tuple | list) else (value, value)
            for end in (0, 1):
                if found[end] is None and isinstance(pair[end], Tensor):
                    found[end] = pair[end].size(self.layer.node_dim)
        return [found[1 - end] or 0 if n is None else n for end, n in enumerate(found)]


def has_rows(value: Any, count: int) -> bool:
    """Return whether ``value`` is a tensor with ``count`` rows."""
    return isinstance(value, Tensor) and value.dim() > 0 and value.size(0) == count


def blocks(receiver: Tensor, nodes: int, edges_per_block: int) -> Iterator[Block]:
    """Yield consecutive nodes with at most ``edges_per_block`` edges into them, or one node."""
    in_order = bool((receiver[1:] >= receiver[:-1]).all())
    order = None if in_order else receiver.argsort(stable=True)  # a node's edges keep their order
    ends = receiver.bincount(minlength=nodes).cumsum(0)
    start = first = 0
    while start < nodes:
        stop = max(int(torch.searchsorted(ends, first + edges_per_block, right=True)), start + 1)
        last = int(ends[stop - 1])
        yield Block(start, stop, slice(first, last) if order is None else order[first:last])
        start, first = stop, last


def put(out: Any, rows: Any, dim: int, total: int, at: Tensor | slice) -> Any:
    """Write ``rows`` into ``out`` at their places along ``dim``, and return ``out``.

    ``out`` is made if it is ``None``. Both may be tuples of tensors.
    """
    if not isinstance(rows, Tensor):
        outs = [None] * len(rows) if out is None else out
        return tuple(put(o, r, dim, total, at) for o, r in zip(outs, rows, strict=True))
    if out is None:
        shape = list(rows.shape)
        shape[dim] = total
        out = rows.new_empty(shape)
    out.movedim(dim, 0)[at] = rows.movedim(dim, 0)
    return out
