"""λ*: the weight at which the entropy step just balances what a GCN layer takes off the differences of a collapsing embedding.

Near collapse the step is linear, and one layer with it maps differences by (I + λ W(C, ·)) Â; the ReLU keeps half of the mode that profits
most (``ops/README.md``). With C = c/√F and μ = λ/√F, λ* = √F μ* is where the spectral radius ρ(S Â) of S = I + μ W(c, ·) reaches 2.
So the width comes in as a factor, and μ* belongs to the graph alone.

Â S is self-adjoint in the inner product ⟨x, y⟩ = xᵀSy, since both factors are symmetric. Lanczos' power iteration finds its extreme
eigenvalues with two products per step and no dense matrix. ρ grows with μ (S only gets larger), so its crossing of 2 is bracketed.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary, WeakTensorKeyDictionary

from eamp import ops
from eamp.graph import CSR, Adjacency, GraphError
from eamp.graph.edge_index_cache import as_graph
from eamp.ops.part import Copies, PartCSR

RADIUS = 2.0  # the inverse of what the ReLU keeps
STEPS = 48  # of Lanczos: enough for 1e-3 on graphs of any size, exact on graphs of fewer nodes
TRIED = 16  # values of μ side by side: a product with 16 columns costs little more than with one
LARGEST = 64.0  # μ beyond which a threshold counts as out of reach

# A threshold belongs to one living tensor of a frozen graph and goes when that goes.
_remembered: WeakIdKeyDictionary = WeakTensorKeyDictionary()


def collapse_threshold(graph: Adjacency, width: int, num_nodes: int | None = None) -> Tensor:
    r""":math:`\lambda^*`, the weight of the entropy step that balances the contraction of a ReLU GCN layer near collapse.

    .. math::
        \tfrac12\, \rho\bigl((I + \lambda^* W(C, \cdot))\, \hat A\bigr) = 1

    On a :math:`k`-regular bipartite graph it is :math:`\frac{k+3}{k-1} \cdot \frac14 \sqrt{F/k}`. It is estimated once per graph and
    remembered as long as the graph lives.

    Args:
        graph: an :class:`eamp.Graph`, or anything one can be made of.
        width: :math:`F`, the number of features of the layer's output.
        num_nodes: number of nodes, where ``graph`` is an ``edge_index`` that leaves some out.

    Returns:
        ``[num_graphs]`` in float64. 0 where no weight helps: on a graph without edges, and on one whose layer takes every difference
        away at once, such as a complete graph.

    Example:
        >>> import torch
        >>> square = torch.tensor([[0, 1, 1, 2, 2, 3, 3, 0], [1, 0, 2, 1, 3, 2, 0, 3]])   # k = 2: 5 · sqrt(32) / 4
        >>> collapse_threshold(square, width=64)
        tensor([7.0711], dtype=torch.float64)
    """
    known = as_graph(
        graph,
        int(graph.max()) + 1 if num_nodes is None and isinstance(graph, Tensor) else num_nodes or 0,
    )
    return graph_threshold(known.csr, known.batch, known.num_graphs) * math.sqrt(width)


def layer_threshold(
    x: Tensor, graph: Adjacency, symmetrize: bool, csr: CSR, batch: Tensor | None, num_graphs: int
) -> Tensor:
    """λ* for an embedding ``x`` on a graph whose parts are known, ``[num_graphs]``. Traceable."""
    if not torch.compiler.is_compiling():
        unit = graph_threshold(csr, batch, num_graphs)
    elif isinstance(graph, Tensor):
        unit = _threshold_of_edge_index(graph, x.size(0), symmetrize)
    else:
        unit = _threshold_of_csr(*csr, batch, num_graphs)
    return unit * math.sqrt(x.size(1))


def graph_threshold(csr: CSR, batch: Tensor | None, num_graphs: int) -> Tensor:
    """μ* of every graph in a batch, computed once."""
    known = _remembered.get(csr.degree)
    if isinstance(csr, PartCSR) and isinstance(csr.exchange, Copies):
        raise GraphError(
            "the threshold of a graph cannot be found from sampled neighbours: give the weight as a number, the gain times "
            "eamp.nn.collapse_threshold(graph, width) of the whole graph."
        )
    if known is None:
        with torch.no_grad():
            known = _remembered[csr.degree] = estimate(csr, batch, num_graphs)
    return known


def estimate(csr: CSR, batch: Tensor | None, num_graphs: int) -> Tensor:
    """μ* of every graph: bracketed on a scale of octaves, then twice on an even one, then interpolated."""
    if csr.degree.numel() == 0:
        return csr.degree.new_zeros(num_graphs)
    graph = torch.zeros_like(csr.degree, dtype=torch.long) if batch is None else batch
    octaves = 2.0 ** -torch.arange(TRIED - 1, dtype=torch.float64, device=csr.degree.device).flip(0)
    even = torch.linspace(0, 1, TRIED, dtype=torch.float64, device=csr.degree.device)
    tried = (LARGEST * torch.cat([even[:1], octaves])).expand(num_graphs, TRIED)
    for last in (False, False, True):
        radius = spectral_radius(tried, csr, graph)
        above = (
            (radius > RADIUS).int().argmax(1, keepdim=True).clamp(min=1)
        )  # the first; ρ = 1 at μ = 0
        (low, high), (below, beyond) = (
            (values.gather(1, above - 1), values.gather(1, above)) for values in (tried, radius)
        )
        reached = radius[:, -1:] > RADIUS
        place = ((RADIUS - below) / (beyond - below)) if last else even
        tried = torch.where(reached, low + (high - low) * place, tried if not last else 0.0)
    return tried.squeeze(1)


def spectral_radius(mu: Tensor, csr: CSR, graph: Tensor) -> Tensor:
    """ρ(S Â), S = I + μ W(c, ·), for ``mu`` ``[num_graphs, m]`` and every node's ``graph``, by Lanczos in the inner product of S."""
    scale = (csr.degree + 1).rsqrt()

    def widened(x: Tensor) -> Tensor:  # S x
        return x + mu[graph] * ops.weighted_differences(csr.rsqrt_degree, x, csr)

    def propagated(x: Tensor) -> Tensor:  # Â x
        return ops.neighbour_sums(scale, x, scale, csr, self_loops=True)

    def dot(x: Tensor, y: Tensor) -> Tensor:
        local = torch.zeros_like(mu).index_add(0, graph, x * y)
        return csr.exchange.total(local) if isinstance(csr, PartCSR) else local

    def divided(
        x: Tensor, by: Tensor
    ) -> Tensor:  # by 0 once a small graph's vectors are exhausted: the rest of them is 0
        return torch.where(by > 1e-9, 1 / by, 0.0)[graph] * x

    num_nodes = csr.num_nodes if isinstance(csr, PartCSR) else graph.numel()
    start = torch.randn(
        num_nodes, 1, generator=torch.Generator().manual_seed(0), dtype=mu.dtype
    ).to(mu.device)
    start = (start[csr.nodes] if isinstance(csr, PartCSR) else start).repeat(1, mu.size(1))
    image = widened(start)
    beta = dot(start, image).clamp(min=0).sqrt()
    previous, q, sq = torch.zeros_like(start), divided(start, beta), divided(image, beta)
    beta = torch.zeros_like(beta)
    diagonal, beside = [], []
    for _ in range(
        min(STEPS, num_nodes if isinstance(csr, PartCSR) else int(graph.bincount().max()))
    ):
        r = propagated(sq)
        diagonal.append(dot(r, sq))
        r = r - diagonal[-1][graph] * q - beta[graph] * previous
        image = widened(r)
        beta = dot(r, image).clamp(min=0).sqrt()
        beside.append(beta)
        previous, q, sq = q, divided(r, beta), divided(image, beta)
    tridiagonal = torch.diag_embed(torch.stack(diagonal, -1))
    if len(beside) > 1:
        tridiagonal = tridiagonal + torch.diag_embed(
            torch.stack(beside[:-1], -1), 1
        )  # eigvalsh reads the upper triangle alone
    return torch.linalg.eigvalsh(tridiagonal, UPLO="U").abs().amax(-1)


# --- Under torch.compile: one opaque call, which looks the threshold up -----------------------------------------------


@torch.library.custom_op("eamp::threshold_of_edge_index", mutates_args=())
def _threshold_of_edge_index(edge_index: Tensor, num_nodes: int, symmetrize: bool) -> Tensor:
    return graph_threshold(as_graph(edge_index, num_nodes, symmetrize).csr, None, 1).clone()


@_threshold_of_edge_index.register_fake
def _(edge_index: Tensor, num_nodes: int, symmetrize: bool) -> Tensor:
    return edge_index.new_empty(1, dtype=torch.float64)


@torch.library.custom_op("eamp::threshold_of_csr", mutates_args=())
def _threshold_of_csr(
    rowptr: Tensor,
    col: Tensor,
    reverse: Tensor,
    edge_weight: Tensor | None,
    degree: Tensor,
    rsqrt_degree: Tensor,
    batch: Tensor | None,
    num_graphs: int,
) -> Tensor:
    return graph_threshold(
        CSR(rowptr, col, reverse, edge_weight, degree, rsqrt_degree), batch, num_graphs
    ).clone()


@_threshold_of_csr.register_fake
def _(
    rowptr: Tensor,
    col: Tensor,
    reverse: Tensor,
    edge_weight: Tensor | None,
    degree: Tensor,
    rsqrt_degree: Tensor,
    batch: Tensor | None,
    num_graphs: int,
) -> Tensor:
    return degree.new_empty(num_graphs)
