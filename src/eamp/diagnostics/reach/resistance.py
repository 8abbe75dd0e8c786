"""Over-squashing: effective resistances, and the edges through which a graph is squeezed."""

from __future__ import annotations

import html
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from eamp.diagnostics.reach.laplacian import Array, Laplacian, Solver, laplacian_of, pseudo_inverse
from eamp.diagnostics.rendering import format_number
from eamp.graph import Adjacency, Graph

if TYPE_CHECKING:
    import pandas as pd

EXACT_UP_TO = 1000  # nodes: a dense inverse takes a second
# The share of the total resistance at which one edge is called a bottleneck. Of two cliques of ten
# nodes, the edge between them has .65; the edges of a grid of 10 × 10 have at most .008.
BOTTLENECK = 0.1
BRIDGE = 0.999  # a·R of a bridge is 1, up to the solver's error

ADVICE = (
    "Add edges across: join further nodes of the two sides, for example by k nearest neighbours of "
    "the features (torch_geometric.nn.knn_graph), or by diffusion "
    "(torch_geometric.transforms.GDC).",
    "Give all nodes a short cut: torch_geometric.transforms.VirtualNode.",
    "Let attention reach all nodes: torch_geometric.nn.GPSConv.",
    "If what a node needs lies on its own side, leave the graph as it is, and use no more layers "
    "than needed: eamp.diagnostics.influence shows how far the model sees.",
)


@dataclass(frozen=True, repr=False, eq=False)
class Bottlenecks:
    """The result of :func:`bottlenecks`.

    Attributes:
        total: the total effective resistance, Σ_{i<j} R_ij over pairs that a path connects.
        edge_index: ``[2, m]``, every undirected edge once, as i < j.
        resistance: ``[m]``, the effective resistance R_ij of every edge.
        share: ``[m]``, the share of every edge in the total resistance; they add up to 1.
        table: the edges with the largest shares, a row each: ``source``, ``target``,
            ``resistance``, ``leverage`` (a_ij R_ij, which is 1 for a bridge), ``share``, and the
            numbers of nodes on the two ``sides``.
        advice: what to try, empty if no edge is a bottleneck.
        exact: whether all values are exact; otherwise those of ``table`` are solved for one by one,
            and the others are estimates.
    """

    total: float
    edge_index: Tensor
    resistance: Array
    share: Array
    table: pd.DataFrame
    advice: tuple[str, ...]
    exact: bool

    def __str__(self) -> str:
        about = "" if self.exact else "about "
        if self.table.empty:
            return "The graph has no edges, so nothing can be squeezed through one."
        worst = self.table.iloc[0]
        edge = f"edge {worst['source']:.0f}-{worst['target']:.0f}"
        if not self.advice:
            return (
                f"No single edge is a bottleneck: the largest share of the total resistance "
                f"({about}{format_number(self.total)}) is {worst['share']:.1%}, of {edge}."
            )
        bridge = "a bridge" if worst["leverage"] > BRIDGE else f"leverage {worst['leverage']:.2f}"
        lines = [
            f"Bottleneck at {edge} ({bridge}): it alone has {worst['share']:.0%} of the total "
            f"resistance ({about}{format_number(self.total)}), between {worst['sides']} nodes.",
            "What to try:",
            *(f"  {k}. {words}" for k, words in enumerate(self.advice, start=1)),
        ]
        return "\n".join(textwrap.fill(line, 120, subsequent_indent="     ") for line in lines)

    def __repr__(self) -> str:
        return f"Bottlenecks(total={format_number(self.total)}, edges={len(self.resistance)})"

    def _repr_html_(self) -> str:
        words = f"<div style='white-space:pre-wrap'>{html.escape(str(self))}</div>"
        return words + self.table.to_html(index=False, float_format=format_number, border=0)


def bottlenecks(
    graph: Adjacency,
    num_nodes: int | None = None,
    *,
    most: int = 10,
    projections: int = 32,
    exact: bool | None = None,
    seed: int = 0,
) -> Bottlenecks:
    r"""Find the edges through which messages between distant nodes are squeezed.

    The effective resistance :math:`R_{ij} = (e_i - e_j)^\top L^+ (e_i - e_j)` of two nodes is low
    if many short paths connect them. Its total over all pairs bounds how much messages between
    distant nodes are squashed (`Black et al., 2023 <https://arxiv.org/abs/2302.06835>`_). The total
    is a sum over the edges,

    .. math::
        \sum_{i<j} R_{ij} = n \operatorname{tr} L^+ = n \sum_{(i,j)} a_{ij}
        \lVert L^+ (e_i - e_j) \rVert^2,

    so every edge has a share in it. The share is also how fast the total falls when the edge
    becomes stronger. A bridge between :math:`n_1` and :math:`n_2` nodes has a share proportional to
    :math:`n_1 n_2`, so that the edge of a leaf counts little.

    It tells where the graph is narrow. It cannot tell whether the task needs messages to pass
    there, and looks at no model and no features.

    On large graphs, resistances and shares are estimated by random projections (`Spielman and
    Srivastava, 2008 <https://arxiv.org/abs/0803.0929>`_), with a relative deviation of
    :math:`\sqrt{2/projections}` per edge; the edges of ``table`` are then solved for one by one.

    Args:
        graph: an :class:`eamp.Graph`, or anything one can be made of; directed graphs are made
            undirected.
        num_nodes: number of nodes, if the adjacency does not tell.
        most: number of edges in ``table``.
        projections: number of random projections.
        exact: whether to invert the Laplacian as a dense matrix; by default for up to 1000 nodes.
        seed: seed of the projections.

    Example:
        >>> import torch
        >>> left = torch.combinations(torch.arange(5)).T
        >>> edges = torch.cat([left, left + 5, torch.tensor([[4], [5]])], dim=1)
        >>> found = bottlenecks(edges)
        >>> print(str(found).splitlines()[0])
        Bottleneck at edge 4-5 (a bridge): it alone has 51% of the total resistance (49), between 5
        and 5 nodes.
    """
    if projections < 1 or most < 1:
        raise ValueError(f"projections and most must be at least 1: {projections}, {most}.")
    if not isinstance(graph, Graph):
        graph = Graph(graph, num_nodes, symmetrize=True)
    laplacian = laplacian_of(graph)
    if exact is None:
        exact = laplacian.num_nodes <= EXACT_UP_TO
    solver = Solver(laplacian)
    resistance, cost = exact_values(laplacian) if exact else sketch(solver, projections, seed)
    total = float(cost.sum())
    share = cost / total if total > 0 else cost
    table = ranked(solver, share, total, most, exact)
    narrow = not table.empty and table["share"].iloc[0] >= BOTTLENECK
    return Bottlenecks(
        total=total,
        edge_index=torch.from_numpy(np.stack([laplacian.source, laplacian.target])),
        resistance=resistance,
        share=share,
        table=table,
        advice=ADVICE if narrow else (),
        exact=exact,
    )


def exact_values(laplacian: Laplacian) -> tuple[Array, Array]:
    """Return R_ij and n·a_ij‖L⁺(e_i − e_j)‖² of every edge, from the dense inverse."""
    inverse = pseudo_inverse(laplacian)
    i, j = laplacian.source, laplacian.target
    resistance = inverse[i, i] + inverse[j, j] - 2 * inverse[i, j]
    return resistance, costs(laplacian, inverse)


def sketch(solver: Solver, projections: int, seed: int) -> tuple[Array, Array]:
    """Return estimates of the same, from solutions for random right sides."""
    laplacian, draw = solver.laplacian, np.random.default_rng(seed)
    nodes, edges = laplacian.num_nodes, laplacian.weight.size
    i, j = laplacian.source, laplacian.target
    right = np.empty((nodes, projections))
    for k in range(projections):  # a column of Bᵀ√W Q, where B has the rows e_i − e_j
        flow = np.sqrt(laplacian.weight) * draw.choice((-1.0, 1.0), edges)
        right[:, k] = np.bincount(i, flow, nodes) - np.bincount(j, flow, nodes)
    resistance = squared_differences(laplacian, solver(right)) / projections
    signs = draw.choice((-1.0, 1.0), (nodes, projections))
    cost = costs(laplacian, solver(signs) / np.sqrt(projections))
    return np.minimum(resistance, 1 / laplacian.weight), cost


def costs(laplacian: Laplacian, columns: Array) -> Array:
    """Return n·a_ij‖Y_i − Y_j‖² of every edge, where n is the size of its component."""
    size = np.bincount(laplacian.component)[laplacian.component[laplacian.source]]
    return size * laplacian.weight * squared_differences(laplacian, columns)


def squared_differences(laplacian: Laplacian, columns: Array) -> Array:
    """Return ‖Y_i − Y_j‖² of every edge, without a tensor of edges × columns."""
    found = np.zeros(laplacian.source.size)
    for column in columns.T:
        found += (column[laplacian.source] - column[laplacian.target]) ** 2
    return found


def ranked(solver: Solver, share: Array, total: float, most: int, exact: bool) -> pd.DataFrame:
    """Return the edges with the largest shares, each solved for."""
    import pandas as pd  # slow to load, and needed for results only

    laplacian = solver.laplacian
    # An estimate may rank an edge too low, so twice as many are solved for.
    chosen = np.argsort(-share, kind="stable")[: most if exact else 2 * most]
    rows: list[dict[str, Any]] = []
    for edge in chosen.tolist():
        i, j = int(laplacian.source[edge]), int(laplacian.target[edge])
        unit = np.zeros((laplacian.num_nodes, 1))
        unit[i], unit[j] = 1, -1
        potential = solver(unit, tolerance=1e-8)[:, 0]
        here = laplacian.component == laplacian.component[i]
        middle = (potential[i] + potential[j]) / 2
        sides = int((potential[here] > middle).sum()), int((potential[here] <= middle).sum())
        resistance, weight = potential[i] - potential[j], laplacian.weight[edge]
        cost = here.sum() * weight * (potential @ potential)
        rows.append(
            {
                "source": i,
                "target": j,
                "resistance": resistance,
                "leverage": weight * resistance,
                "share": cost / total,
                "sides": f"{sides[0]} and {sides[1]}",
            }
        )
    rows.sort(key=lambda row: -row["share"])
    columns = ["source", "target", "resistance", "leverage", "share", "sides"]
    return pd.DataFrame(rows[:most], columns=columns)
