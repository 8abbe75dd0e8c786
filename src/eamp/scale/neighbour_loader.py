"""``NeighbourLoader``: mini-batches of sampled neighbours, without pyg-lib or torch-sparse."""

from collections.abc import Iterator, Sequence
from numbers import Integral

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import select

from eamp.graph import Graph, GraphError
from eamp.graph.csr import check_range
from eamp.graph.edge_index_cache import set_graph
from eamp.graph.subgraph import rows_of_data
from eamp.nn.checks import check_count
from eamp.scale.sampling import sampled_graph


class NeighbourLoader:
    r"""Mini-batches of nodes with sampled neighbours, as PyG's ``NeighborLoader`` draws them.

    The method is that of `"Inductive Representation Learning on Large Graphs"
    <https://arxiv.org/abs/1706.02216>`_ (Hamilton et al., 2017). PyG's loader needs pyg-lib or
    torch-sparse. This one compiles its sampler with Numba. Samples are uniform and without
    replacement. A batch is a PyG ``Data`` with

    - the attributes that ``data`` has for nodes and edges, such as ``x``, ``y``, masks and
      ``edge_weight``. The first ``batch_size`` nodes are those that the batch is made for;
    - ``edge_index``, from sampled neighbours to their nodes;
    - ``n_id`` and ``e_id``, the numbers of nodes and edges in ``data``; ``batch_size``;
      ``num_sampled_nodes`` and ``num_sampled_edges``, the numbers that every hop added;
    - ``graph``, a :class:`SampledGraph` on which energies are unbiased, for eamp's models and
      functions. Layers that :func:`eamp.wrap` has wrapped find it from ``edge_index``. It is there
      if ``data`` is an undirected graph that lists every edge once in each direction and no
      self-loops.

    An entropy-aware layer reads three hops, two with ``placement="input"``; see
    :func:`sampled_graph`. The samples depend on the seed, the epoch and the number of the batch,
    and on nothing else. The first pass over the loader is epoch 0.

    Args:
        data: the graph, on the CPU, with ``edge_index`` and any attributes of nodes and edges. It
            may be directed; then a node's neighbours are the sources of its incoming edges.
        num_neighbors: number of neighbours per node in every hop; −1 takes all.
        input_nodes: the nodes to make batches for, as indices or as a mask; by default all.
        batch_size: number of these nodes in a batch.
        shuffle: draw a new order of these nodes in every epoch.
        drop_last: leave out a last batch that is smaller than the others.
        seed: seed of samples and order.
        with_graph: make ``graph``. A model of PyG's layers alone does not need it.

    BibTeX key for ``eamp cite``: ``hamilton2017inductive``.

    Example:
        >>> import torch, eamp
        >>> from eamp.scale import NeighbourLoader
        >>> data = eamp.data.load("csbm:nodes=1000")
        >>> model = eamp.nn.GCN(64, 16, 5, num_layers=2, entropy={"weight": 1.0, "temperature": 1})
        >>> options = {"batch_size": 25, "input_nodes": data.train_mask, "shuffle": True}
        >>> for batch in NeighbourLoader(data, [10, 10, 10], **options):
        ...     out = model(batch.x, batch.graph)[: batch.batch_size]
        ...     torch.nn.functional.cross_entropy(out, batch.y[: batch.batch_size]).backward()
    """

    def __init__(
        self,
        data: Data,
        num_neighbors: Sequence[int],
        *,
        input_nodes: Tensor | None = None,
        batch_size: int = 1,
        shuffle: bool = False,
        drop_last: bool = False,
        seed: int = 0,
        with_graph: bool = True,
    ) -> None:
        # Imported when a loader is made: Numba takes half a second to load.
        from eamp.scale.sampling_kernels import incoming_edges

        self.num_neighbors = check_fanouts(num_neighbors)
        check_count("batch_size", batch_size)
        check_count("seed", seed, lowest=0)
        edge_index = getattr(data, "edge_index", None)
        if not isinstance(edge_index, Tensor) or edge_index.device.type != "cpu":
            raise GraphError(
                "NeighbourLoader needs a torch_geometric Data with an edge_index on the CPU; pass "
                "data.cpu() and move the batches."
            )
        self.data, self.batch_size, self.seed, self.epoch = data, int(batch_size), int(seed), 0
        self.shuffle, self.drop_last = shuffle, drop_last
        self.num_nodes = int(data.num_nodes or 0)
        check_range(edge_index, self.num_nodes)
        self.input_nodes = check_input_nodes(input_nodes, self.num_nodes)
        self._source, target = (ends.long().contiguous().numpy() for ends in edge_index)
        self._incoming = incoming_edges(target, self.num_nodes)
        self.graph = whole_graph(data) if with_graph else None

    def __len__(self) -> int:
        whole, rest = divmod(self.input_nodes.numel(), self.batch_size)
        return whole + (rest > 0 and not self.drop_last)

    def __iter__(self) -> Iterator[Data]:
        """Yield the batches of the next epoch."""
        epoch, self.epoch = self.epoch, self.epoch + 1
        nodes = self.input_nodes
        if self.shuffle:
            order = np.random.default_rng((self.seed, epoch)).permutation(nodes.numel())
            nodes = nodes[torch.from_numpy(order)]
        for number, seeds in zip(range(len(self)), nodes.split(self.batch_size), strict=False):
            yield self.sample(seeds, (self.seed, epoch, number))

    def sample(self, seeds: Tensor, seed: tuple[int, ...]) -> Data:
        """Return the batch of some nodes, each of which is named once."""
        from eamp.scale.sampling_kernels import sample  # loads Numba, as above

        found = sample(*self._incoming, self._source, seeds.numpy(), self.num_neighbors, seed)
        nodes, edges = (torch.from_numpy(array.copy()) for array in found[:2])
        place, hops = found[2:]
        batch = rows_of_data(self.data, nodes)
        for name in self.data.keys():  # noqa: SIM118  # PyG's data is not a mapping
            value = self.data[name]
            if name != "edge_index" and self.data.is_edge_attr(name):
                batch[name] = select(value, edges, self.data.__cat_dim__(name, value))
        ends = self.data.edge_index[:, edges].long().numpy()
        batch.edge_index = torch.from_numpy(place[ends])
        batch.n_id, batch.e_id, batch.num_nodes = nodes, edges, nodes.numel()
        batch.batch_size = seeds.numel()
        batch.num_sampled_nodes = np.diff(hops[0], prepend=0).tolist()
        batch.num_sampled_edges = np.diff(hops[1]).tolist()
        if self.graph is not None:
            batch.graph = sampled_graph(batch, self.graph)
            batch.edge_index = batch.edge_index.clone()  # the graph holds the other copy
            set_graph(batch.edge_index, batch.graph)
        return batch

    def __repr__(self) -> str:
        return f"NeighbourLoader({self.data}, num_neighbors={self.num_neighbors})"


def check_fanouts(num_neighbors: Sequence[int]) -> list[int]:
    """Return the numbers of neighbours per hop, after checking them."""
    numbers = list(num_neighbors) if isinstance(num_neighbors, Sequence) else []
    wrong = [n for n in numbers if isinstance(n, bool) or not isinstance(n, Integral) or n < -1]
    if not numbers or wrong:
        raise ValueError(
            "num_neighbors must hold one whole number per hop, at least -1, as in [10, 10]; got "
            f"{num_neighbors!r}."
        )
    return [int(n) for n in numbers]


def check_input_nodes(input_nodes: Tensor | None, num_nodes: int) -> Tensor:
    """Return the numbers of the nodes to make batches for, after checking them."""
    if input_nodes is None:
        return torch.arange(num_nodes)
    given = isinstance(input_nodes, Tensor)
    if not given or input_nodes.dim() != 1 or input_nodes.is_floating_point():
        got = list(input_nodes.shape) if isinstance(input_nodes, Tensor) else input_nodes
        raise ValueError(
            f"input_nodes must be a mask [{num_nodes}] or a tensor of node numbers; got {got!r}. "
            "Pass data.train_mask."
        )
    if input_nodes.dtype == torch.bool:
        if input_nodes.numel() != num_nodes:
            raise ValueError(
                f"input_nodes is a mask of {input_nodes.numel()} nodes, but the graph has "
                f"{num_nodes}; pass a mask of its nodes."
            )
        return input_nodes.nonzero().squeeze(1)
    nodes = input_nodes.long()
    if nodes.numel() and (int(nodes.min()) < 0 or int(nodes.max()) >= num_nodes):
        raise ValueError(
            f"input_nodes must lie between 0 and {num_nodes - 1}; got {int(nodes.min())} to "
            f"{int(nodes.max())}."
        )
    if nodes.unique().numel() != nodes.numel():
        raise ValueError("input_nodes names a node twice; pass input_nodes.unique().")
    return nodes


def whole_graph(data: Data) -> Graph | None:
    """Return the graph of ``data``, or ``None`` if samples of its edge list give no energies.

    That is where the graph is directed, or the list has self-loops or repeated edges.
    """
    try:
        graph = Graph(data)
    except GraphError:
        return None
    return graph if graph.csr.col.numel() == data.num_edges else None
