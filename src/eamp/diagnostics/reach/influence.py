"""How far a node sees: the influence of other nodes on its output, by their distance."""

from __future__ import annotations

import copy
import html
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import Module

from eamp.diagnostics.measures.similarity import sample_indices
from eamp.diagnostics.reach.jacobian_norms import Derivative, Run
from eamp.diagnostics.reach.neighbourhood_copies import (
    features_and_edges,
    on_copies,
    side_by_side,
    small_parts,
)
from eamp.diagnostics.reach.receptive_field import UNREACHED, Array, distances_to, edges_of
from eamp.diagnostics.running import evaluation_mode, run_model

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd


@dataclass(frozen=True, repr=False, eq=False)
class Influence:
    """The result of :func:`influence`.

    Attributes:
        range: R, the mean distance from which the influence on a node comes.
        by_distance: ``[D + 1]``, the mean over the nodes of I_0, I_1, ..., I_D.
        shares: ``[D + 1]``, the mean over the nodes of I_k / Σ I_k.
        table: I_k(v) for every node v and distance k; distance -1 means that no path leads to v.
        exact: whether every output channel was differentiated, not random sums of them.
    """

    range: float
    by_distance: Array
    shares: Array
    table: pd.DataFrame
    exact: bool

    @property
    def unreachable(self) -> float:
        """The mean share of the influence that comes from nodes without a path to the node."""
        total = self.table.groupby("node")["influence"].sum()
        lost = self.table[self.table["distance"] == UNREACHED].groupby("node")["influence"].sum()
        share = lost.reindex(total.index, fill_value=0.0)[total > 0] / total[total > 0]
        return float(share.mean()) if len(share) else math.nan

    def __str__(self) -> str:
        nodes = self.table["node"].nunique()
        if math.isnan(self.range):
            return f"No input changes the output at any of {nodes} nodes: the gradients are zero."
        parts = [f"{share:.0%} from distance {k}" for k, share in enumerate(self.shares)]
        some = ", ".join(parts[:6]) + (f", up to distance {len(parts) - 1}" * (len(parts) > 6))
        text = f"The influence on a node comes from {self.range:.2f} steps away on average: {some}"
        if self.unreachable > 0:
            text += f", and {self.unreachable:.0%} from nodes that no path connects with it"
        return f"{text} (mean over {nodes} nodes{'' if self.exact else ', estimated'})."

    def __repr__(self) -> str:
        return f"Influence(range={self.range:.3g}, nodes={self.table['node'].nunique()})"

    def _repr_html_(self) -> str:
        return f"<div>{html.escape(str(self))}</div>"

    def plot(self) -> alt.LayerChart | alt.FacetChart:
        """Return a chart of the shares by distance, with a rule at the range."""
        from eamp.diagnostics.charts import influence_chart  # loads Altair, which is slow

        return influence_chart(self.shares, self.range)


def influence(
    model: Module,
    data: Any,
    *,
    nodes: int | Iterable[int] = 100,
    projections: int | None = 16,
    seed: int = 0,
    run: Run | None = None,
) -> Influence:
    r"""Measure from how far away the output of a node can be changed.

    .. math::
        I_k(v) = \sum_{d(u, v) = k} \sum_{c, c'}
        \Big|\frac{\partial f_c(v)}{\partial x_{c'}(u)}\Big|, \qquad
        R = \operatorname{mean}_v \frac{\sum_k k\, I_k(v)}{\sum_k I_k(v)}

    d is the number of edges of the shortest path from u to v. R is the range of `"Towards
    Quantifying Long-Range Interactions in Graph Machine Learning"
    <https://arxiv.org/abs/2503.09008>`_ (Liang et al., 2025).

    The model runs in evaluation mode. It is tried whether the outputs of two nodes stay the same
    when the graph ends a few steps away from them. If so, many nodes are differentiated at once,
    side by side on copies of their neighbourhoods. If not, as in models with a virtual node, one
    node after the other is differentiated on the whole graph, which takes much longer.

    An output with more channels than ``projections`` is not differentiated channel by channel.
    Sums of its channels with Cauchy-distributed weights are differentiated instead. The geometric
    mean of their absolute gradients, times a constant, has the :math:`\ell_1` norm above as its
    expectation.

    It tells how far a model *does* see, with its present weights and features. It cannot tell how
    far it should see, nor whether a small influence is used.

    Args:
        model: a model with one output row per node.
        data: a PyG ``Data``, or the arguments of ``model`` as a tuple ``(x, edge_index, ...)``.
        nodes: how many nodes to sample, or the nodes.
        projections: number of random sums for wide outputs, at least 3; ``None`` for exact values.
        seed: seed of the sample and of the random sums.
        run: a function that calls the model, see :func:`eamp.diagnose`.

    Example:
        >>> import torch
        >>> from torch_geometric.nn import SGConv
        >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> found = influence(SGConv(1, 1, K=2), (torch.ones(3, 1), path), nodes=[0])
        >>> found.shares.round(3)  # of 5/12, (1/√6)(1/2 + 1/3) and 1/6
        array([0.451, 0.368, 0.18 ])
        >>> print(found)
        The influence on a node comes from 0.73 steps away on average: ...
    """
    if projections is not None and projections < 3:
        raise ValueError(f"projections must be None or at least 3, but is {projections}.")
    x, adjacency = features_and_edges(data)
    chosen = choose_nodes(nodes, x.size(0), seed)
    edges = edges_of(adjacency, x.size(0))
    found: dict[int, tuple[Array, Array]] = {}
    with evaluation_mode(model), torch.enable_grad():
        derivative = Derivative(model, run or run_model, projections, seed)
        for group in side_by_side(small_parts(derivative, data, chosen, edges), edges.size):
            found |= on_copies(derivative, data, group)
        if len(found) < len(chosen):
            outputs = derivative.forward(with_features(data, x), x, torch.from_numpy(chosen))
            for place, node in enumerate(chosen.tolist()):
                if node not in found:
                    influences = derivative.absolute(outputs, [place])
                    found[node] = influences, distances_to(node, edges, needed=influences > 0)
    return summarise({node: found[node] for node in chosen.tolist()}, derivative.exact)


def with_features(data: Any, x: Tensor) -> Any:
    """Return ``data`` with other features."""
    if isinstance(data, tuple | list):
        return (x, *data[1:])
    changed = copy.copy(data)
    changed.x = x
    return changed


def choose_nodes(nodes: int | Iterable[int], num_nodes: int, seed: int) -> Array:
    """Return the nodes to measure, each once."""
    if isinstance(nodes, int):
        if nodes < 1:
            raise ValueError(f"nodes must be at least 1, or numbers of nodes, but is {nodes}.")
        return sample_indices(num_nodes, nodes, seed).numpy()
    chosen = np.unique(np.asarray([int(node) for node in nodes]))
    if chosen.size == 0 or chosen[0] < 0 or chosen[-1] >= num_nodes:
        raise ValueError(f"nodes must be numbers from 0 to {num_nodes - 1}, but is {nodes!r}.")
    return chosen


def summarise(found: dict[int, tuple[Array, Array]], exact: bool) -> Influence:
    """Sum the influences by distance."""
    import pandas as pd  # slow to load, and needed for results only

    rows = []
    for node, (influences, distance) in found.items():
        if not np.isfinite(influences).all():
            raise ValueError(
                f"the gradients of node {node}'s output are not finite; look for NaN or infinite "
                "values among the weights and the features."
            )
        for k in sorted({0, *distance[influences > 0].tolist()}):
            rows.append((node, k, float(influences[distance == k].sum())))
    table = pd.DataFrame(rows, columns=["node", "distance", "influence"])
    reached = table[table["distance"] != UNREACHED]
    wide = reached.pivot_table(index="node", columns="distance", values="influence", fill_value=0.0)
    wide = wide.reindex(columns=range(int(reached["distance"].max()) + 1), fill_value=0.0)
    values = wide.to_numpy()
    total = values.sum(1)
    seeing = values[total > 0] / total[total > 0, None]
    shares = seeing.mean(0) if len(seeing) else np.full(values.shape[1], math.nan)
    return Influence(
        range=float(shares @ np.arange(len(shares))),
        by_distance=values.mean(0),
        shares=shares,
        table=table,
        exact=exact,
    )
