"""Mini-batches of clusters, each with all neighbours of its nodes."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader
from torch_geometric.data import Data

from eamp.graph import Graph, GraphError
from eamp.graph.subgraph import rows_of_data, subgraph, with_neighbours
from eamp.scale.partition import metis


class ClusterLoader(DataLoader[Data]):
    r"""Mini-batches of whole clusters, after `"Cluster-GCN: An Efficient Algorithm for Training Deep and Large Graph Convolutional
    Networks" <https://arxiv.org/abs/1905.07953>`_ (Chiang et al., 2019), with a halo: every node of a batch's clusters (its *core*) comes
    with all its neighbours.

    METIS cuts the graph into clusters once. A batch joins ``batch_size`` of them, drawn anew in every epoch (``shuffle=True``, under
    ``torch.manual_seed``), and all nodes that lie no more than ``hops`` away, with all edges among these. It is a PyG ``Data``:

    - whatever ``data`` holds for nodes, such as ``x`` and ``y``, for the batch's nodes. Masks (anything boolean) are ``False`` on the halo,
      so ``out[batch.train_mask]`` are outputs of the core;
    - ``graph``, an :class:`eamp.Graph` with the degrees of the whole graph, for our models and functions; ``edge_index`` and, where there
      are weights, ``edge_weight`` for PyG's;
    - ``core``, a mask of the nodes that the batch is about, and ``n_id``, the nodes' numbers in ``data``.

    What is exact, that is, the same as on the whole graph: of any embedding that is exact on all of the batch, the energies of the core
    (same neighbours, same :math:`C_i`), and one propagation by our layers. So with ``hops=1`` and ``placement="input"`` the first layer's
    convolution and energies are exact on the core.

    What is not: whatever reads further than ``hops``, since nodes at the batch's rim lack neighbours. An entropy-aware layer reads three
    hops, its convolution, the energies of its output, and the energies of the neighbours (two with ``placement="input"``); a bare layer
    reads one. Each further hop makes the core exact one reading deeper, for a larger batch; :func:`eamp.inference` is exact at any depth.
    Means over all nodes (PairNorm, ``scale_free``, ``Feedback``, ``normalize=True``) and thresholds (``Gain``) are those of the batch.
    Layers of PyG that divide by degrees see those in the batch, which are too small at its rim.

    Args:
        data: the graph, with ``edge_index`` and whatever belongs to its nodes.
        clusters: how many METIS shall make, or every node's own ``[n]``, from a clustering of yours.
        batch_size: clusters in a batch.
        hops: of the halo, at least 1.
        shuffle: join other clusters in every epoch, in another order.
        **options: of ``torch.utils.data.DataLoader``.

    BibTeX key for ``eamp cite``: ``chiang2019cluster``.

    Example:
        >>> import torch, eamp
        >>> from eamp.scale import ClusterLoader
        >>> data = eamp.data.load("csbm:nodes=1000")
        >>> model = eamp.nn.GCN(data.num_features, 16, 5, num_layers=2, entropy={"temperature": 1.0})
        >>> optimizer = torch.optim.Adam(model.parameters())
        >>> for batch in ClusterLoader(data, clusters=20, batch_size=5):
        ...     optimizer.zero_grad()
        ...     out = model(batch.x, batch.graph)[batch.train_mask]
        ...     torch.nn.functional.cross_entropy(out, batch.y[batch.train_mask]).backward()
        ...     optimizer.step()
    """

    def __init__(
        self,
        data: Data,
        clusters: int | Tensor,
        batch_size: int = 1,
        *,
        hops: int = 1,
        shuffle: bool = True,
        **options: Any,
    ) -> None:
        if hops < 1:
            raise ValueError(
                f"hops must be at least 1, or the core would lack neighbours, but is {hops}."
            )
        self.data, self.graph, self.hops = data, Graph(data), hops
        if self.graph.batch is not None:
            raise GraphError(
                "clusters are cut out of one large graph, but this is a batch of graphs: load some graphs at a time."
            )
        self.cluster = metis(self.graph, clusters) if isinstance(clusters, int) else clusters
        if self.cluster.shape != (self.graph.num_nodes,) or self.cluster.is_floating_point():
            found = f"{list(self.cluster.shape)} of {self.cluster.dtype}"
            raise GraphError(
                f"clusters must hold one integer per node, shape [{self.graph.num_nodes}]; got {found}."
            )
        self.cluster = self.cluster.to(self.graph.device)
        names = self.cluster.unique().tolist()  # METIS may leave some empty
        super().__init__(
            names, batch_size=batch_size, shuffle=shuffle, collate_fn=self.join, **options
        )

    def join(self, clusters: list[int]) -> Data:
        """The batch of some clusters."""
        core = torch.isin(self.cluster, torch.tensor(clusters, device=self.cluster.device))
        inside = core
        for _ in range(self.hops):
            inside = with_neighbours(self.graph, inside)
        nodes = inside.nonzero().squeeze(1)
        batch, graph = rows_of_data(self.data, nodes), subgraph(self.graph, nodes)
        batch.n_id, batch.core = nodes, core[nodes]
        batch.graph, batch.edge_index, batch.num_nodes = graph, graph.edge_index, nodes.numel()
        if graph.edge_weight is not None:
            batch.edge_weight = graph.edge_weight
        for name, value in batch.items():
            if isinstance(value, Tensor) and value.dtype == torch.bool and batch.is_node_attr(name):
                batch[name] = value & batch.core.view(-1, *(1,) * (value.dim() - 1))
        return batch
