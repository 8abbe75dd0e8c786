"""Mini-batches of clusters, each with all neighbours of its nodes."""

from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader
from torch_geometric.data import Data

from eamp.graph import Graph
from eamp.graph.subgraph import rows_of_data, subgraph, with_neighbours
from eamp.scale.partition import check_parts, metis


class ClusterLoader(DataLoader[Data]):
    r"""Mini-batches of whole clusters together with the neighbours of their nodes.

    The method is that of `"Cluster-GCN: An Efficient Algorithm for Training Deep and Large Graph
    Convolutional Networks" <https://arxiv.org/abs/1905.07953>`_ (Chiang et al., 2019), with a halo:
    every node of a batch's clusters (the *core*) comes with all its neighbours.

    A batch joins ``batch_size`` clusters, drawn anew in every epoch, and all nodes that are at most
    ``hops`` away, with all edges among these nodes. It is a PyG ``Data`` with

    - the attributes that ``data`` has for nodes, such as ``x`` and ``y``. Boolean ones (masks) are
      ``False`` on the halo, so ``out[batch.train_mask]`` holds outputs of the core;
    - ``graph``, an :class:`eamp.Graph` with the degrees of the whole graph, for eamp's models and
      functions; ``edge_index`` and, if there are weights, ``edge_weight`` for PyG's layers;
    - ``core``, a mask of the core, and ``n_id``, the numbers of the nodes in ``data``.

    Energies (same neighbours, same :math:`C_i`) and one propagation by eamp's layers are exact on
    the core if their features are exact on the whole batch. Results that depend on nodes further
    than ``hops`` away are not exact, since the outermost nodes of a batch lack neighbours. A bare
    layer reads one hop. An entropy-aware layer reads three: its convolution, the energies of its
    output, and the energies of the neighbours (two with ``placement="input"``). Means over nodes
    (PairNorm, ``scale_free``, ``Feedback``, ``normalize=True``), thresholds (``Gain``) and the
    degrees that PyG's layers see are those of the batch. :func:`eamp.inference` is exact.

    Args:
        data: the graph, with ``edge_index`` and any attributes of its nodes.
        clusters: the number of clusters for METIS to make, or the cluster of each node ``[n]``.
        batch_size: number of clusters in a batch.
        hops: number of hops of the halo, at least 1.
        shuffle: draw the clusters anew in every epoch, under ``torch.manual_seed``.
        **options: options of ``torch.utils.data.DataLoader``.

    BibTeX key for ``eamp cite``: ``chiang2019cluster``.

    Example:
        >>> import torch, eamp
        >>> from eamp.scale import ClusterLoader
        >>> data = eamp.data.load("csbm:nodes=1000")
        >>> model = eamp.nn.GCN(data.num_features, 16, 5, num_layers=2, entropy={"temperature": 1})
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
            raise ValueError(f"hops must be at least 1, but is {hops}.")
        self.data, self.graph, self.hops = data, Graph(data), hops
        cluster = metis(self.graph, clusters) if isinstance(clusters, int) else clusters
        check_parts(self.graph, cluster, "clusters")
        self.cluster = cluster.to(self.graph.device)
        names = self.cluster.unique().tolist()  # METIS may leave some clusters empty
        options |= {"batch_size": batch_size, "shuffle": shuffle, "collate_fn": self.join}
        super().__init__(names, **options)

    def join(self, clusters: list[int]) -> Data:
        """Return the batch of some clusters."""
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
