"""Exact inference over all nodes of a large graph: layer after layer, and within a layer a block of nodes after the other.

The entropy step sees three hops (convolution, energy, gradient), so neighbourhoods cut out around a few nodes grow at three times the
speed of a plain network's. Layer by layer they need not be cut out at all: every pass reads the embedding of all nodes that the last one
wrote. What makes a full batch large is not that embedding but the messages, a row of features for every edge. Our own layers and the
step never make them. PyG's do, in the one function that they all call, ``propagate``; here it is given the edges that lead into some
nodes, then those into the next. As no node's sum is split, that changes no result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric import EdgeIndex
from torch_geometric.nn import MessagePassing
from torch_geometric.utils import is_sparse


def inference(model: Module, *args: Any, edges_per_block: int = 2**17, **kwargs: Any) -> Any:
    """``model(*args, **kwargs)`` in evaluation mode and without gradients, in bounded memory.

    The output is that of the full batch, whatever the model does: PyG's layers, of any number of hops, see all edges of a block of nodes
    at a time; everything else, such as norms, schedules of the entropy step or statistics over all nodes, runs on all nodes as it always
    does. So nothing has to be refused, and no degree is that of a subgraph.

    Beside the input and the graph, memory holds a few embeddings ``[n, F]`` of one layer, a few numbers per edge (per attention head,
    where there are several), and the messages ``[edges_per_block, F]`` of one block. Everything lies and is computed where ``x`` lies.

    Args:
        model: any model. Its training mode is restored afterwards.
        *args: what the model is called with.
        edges_per_block: messages that a layer of PyG may hold at a time; those of one node are never split.
        **kwargs: likewise.

    Adjacencies that PyG multiplies with instead of sending messages (sparse matrices) are left to it. Attention weights that a layer
    computes while it sends messages (``TransformerConv(..., return_attention_weights=True)``) would be those of the last block.

    Example:
        >>> import torch, eamp
        >>> from torch_geometric.nn import GAT
        >>> model = eamp.wrap(GAT(8, 16, num_layers=3, out_channels=4), weight=1.0, temperature=10.0)
        >>> data = eamp.data.load("grid:10x10,features=8")
        >>> out = eamp.inference(model, data.x, data.edge_index, edges_per_block=50)
        >>> torch.allclose(out, model.eval()(data.x, data.edge_index), atol=1e-5)
        True
    """
    if edges_per_block < 1:
        raise ValueError(f"edges_per_block must be at least 1, but is {edges_per_block}.")
    with torch.no_grad(), evaluating(model), ExitStack() as layers:
        for module in model.modules():
            if isinstance(module, MessagePassing):
                layers.enter_context(in_blocks(module, edges_per_block))
        return model(*args, **kwargs)


@contextmanager
def evaluating(model: Module) -> Iterator[None]:
    """Evaluation mode, and afterwards every module's own mode again."""
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        yield
    finally:
        for module in training:
            module.training = True


@contextmanager
def in_blocks(layer: MessagePassing, edges_per_block: int) -> Iterator[None]:
    """Let a layer of PyG send and update its messages block by block."""
    names = ("propagate", "edge_updater")
    before = {name: vars(layer)[name] for name in names if name in vars(layer)}
    for name in names:
        setattr(
            layer,
            name,
            Blockwise(
                layer, getattr(layer, name), edges_per_block, per_edge=name == "edge_updater"
            ),
        )
    try:
        yield
    finally:
        for name in names:
            vars(layer).pop(name)
        vars(layer).update(before)


class Block(NamedTuple):
    """Some consecutive nodes, and which edges lead into them."""

    start: int
    stop: int
    edges: Tensor | slice


class Blockwise:
    """``propagate`` or ``edge_updater`` of a layer, block by block.

    Args:
        layer: whose.
        function: the layer's own.
        edges_per_block: at most, unless one node has more.
        per_edge: whether it returns rows for edges rather than for nodes.
    """

    def __init__(
        self,
        layer: MessagePassing,
        function: Callable[..., Any],
        edges_per_block: int,
        per_edge: bool,
    ) -> None:
        self.layer, self.function, self.edges_per_block, self.per_edge = (
            layer,
            function,
            edges_per_block,
            per_edge,
        )
        self.receiver = (
            1 if layer.flow == "source_to_target" else 0
        )  # which row of edge_index the messages go to
        names = set(layer._edge_user_args if per_edge else layer._user_args)
        self.of_nodes = {
            name[:-2] for name in names if name.endswith(("_i", "_j"))
        }  # PyG looks these up at the ends of an edge
        update = [] if per_edge else parameters(layer, "update")
        self.per_node = self.of_nodes | set(update)
        # A layer that reads more while or after it sums may mean rows of nodes by that, and PyG's code for layers that send the other way
        # does not take pairs: they are given the rows of all nodes.
        # A message that reads numbers of nodes means those of all nodes.
        reads = set(layer.inspector.get_param_names("edge_update" if per_edge else "message"))
        by_number = bool(reads & {"edge_index", "edge_index_i", "edge_index_j"})
        self.looks_up = "index" in reads  # which may only be for a softmax over a node's edges
        self.all_rows = (
            by_number
            or bool(update)
            or (not per_edge and bool(parameters(layer, "aggregate")))
            or self.receiver == 0
        )

    def __call__(
        self, edge_index: Any, size: tuple[int | None, int | None] | None = None, **given: Any
    ) -> Any:
        """What the layer's own function returns for all edges at once."""
        if is_sparse(edge_index) or edge_index.size(1) <= self.edges_per_block:
            return self.function(edge_index, size=size, **given)
        edge_index = edge_index.as_tensor() if isinstance(edge_index, EdgeIndex) else edge_index
        sizes = self.sizes(size, given)
        nodes, total = sizes[self.receiver], edge_index.size(1)
        if not nodes:
            return self.function(edge_index, size=size, **given)  # no telling what blocks there are
        all_rows = self.all_rows or (self.looks_up and self.has_rows_of_nodes(given, sizes))
        out: Any = None
        for block in blocks(edge_index[self.receiver], nodes, self.edges_per_block):
            rows = self.of_block(block, edge_index, sizes, given, all_rows)
            if self.per_edge:
                out = put(out, rows, 0, total, block.edges)
            else:
                rows = (
                    rows.narrow(self.layer.node_dim, block.start, block.stop - block.start)
                    if all_rows
                    else rows
                )
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
        """What the layer's own function returns for the edges of one block."""
        edges, sizes = edge_index[:, block.edges], list(sizes)
        given = {
            name: self.rows_of_edges(name, value, block, edge_index.size(1))
            for name, value in given.items()
        }
        if not all_rows:
            edges = edges.clone()
            edges[self.receiver] -= block.start
            sizes[self.receiver] = block.stop - block.start
            given |= {
                name: self.ends(given[name], block) for name in self.of_nodes if name in given
            }
        return self.function(edges, size=tuple(sizes), **given)

    def rows_of_edges(self, name: str, value: Any, block: Block, total: int) -> Any:
        is_per_edge = (
            isinstance(value, Tensor)
            and name not in self.per_node
            and value.dim() > 0
            and value.size(0) == total
        )
        return value[block.edges] if is_per_edge else value

    def has_rows_of_nodes(self, given: dict[str, Any], sizes: list[int]) -> bool:
        """Whether there is something beside features of an edge's ends that has a row for every receiving node."""
        others = (
            value
            for name, value in given.items()
            if name not in self.of_nodes and isinstance(value, Tensor) and value.dim() > 0
        )
        return any(value.size(0) == sizes[self.receiver] for value in others)

    def ends(self, value: Any, block: Block) -> Any:
        """Features of the sending nodes and of the block's, as a layer between two sets of nodes takes them."""
        pair = list(value) if isinstance(value, tuple | list) else [value, value]
        if isinstance(pair[self.receiver], Tensor):
            pair[self.receiver] = pair[self.receiver].narrow(
                self.layer.node_dim, block.start, block.stop - block.start
            )
        return tuple(pair) if any(isinstance(end, Tensor) for end in pair) else value

    def sizes(self, size: tuple[int | None, int | None] | None, given: dict[str, Any]) -> list[int]:
        """How many nodes send and receive, as PyG reads it off the features."""
        found = list(size or (None, None))
        for value in (given[name] for name in self.of_nodes if name in given):
            pair = value if isinstance(value, tuple | list) else (value, value)
            for end in (0, 1):
                if found[end] is None and isinstance(pair[end], Tensor):
                    found[end] = pair[end].size(self.layer.node_dim)
        return [
            count if count is not None else found[1 - end] or 0 for end, count in enumerate(found)
        ]


def parameters(layer: MessagePassing, function: str) -> list[str]:
    """What a function of a layer takes, beside what PyG gives to all of them."""
    return list(layer.inspector.get_param_names(function, exclude=layer.special_args))


def blocks(receiver: Tensor, nodes: int, edges_per_block: int) -> Iterator[Block]:
    """Consecutive nodes with about ``edges_per_block`` edges into them; the edges of a node stay in their order."""
    in_order = bool((receiver[1:] >= receiver[:-1]).all())
    order = None if in_order else receiver.argsort(stable=True)
    ends = receiver.bincount(minlength=nodes).cumsum(0)
    start = first = 0
    while start < nodes:
        stop = max(int(torch.searchsorted(ends, first + edges_per_block, right=True)), start + 1)
        last = int(ends[stop - 1])
        yield Block(start, stop, slice(first, last) if order is None else order[first:last])
        start, first = stop, last


def put(out: Any, rows: Any, dim: int, total: int, at: Tensor | slice) -> Any:
    """``rows`` (or several tensors of rows) at their places along ``dim`` of ``out``, which is made before the first are put into it."""
    if not isinstance(rows, Tensor):
        return tuple(
            put(None if out is None else out[k], part, dim, total, at)
            for k, part in enumerate(rows)
        )
    if out is None:
        shape = list(rows.shape)
        shape[dim] = total
        out = rows.new_empty(shape)
    index: list[Any] = [slice(None)] * out.dim()
    index[dim] = at
    out[tuple(index)] = rows
    return out
