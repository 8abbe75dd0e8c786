"""λ*: the weight at which the entropy step balances the contraction of a GCN layer near collapse.

Near collapse the step is linear, and one layer with it maps differences by (I + λ W(C, ·)) Â. The
ReLU keeps half of the mode that profits most (``ops/README.md``). With C = c/√F and μ = λ/√F,
λ* = √F μ* is where the spectral radius ρ(S Â) of S = I + μ W(c, ·) reaches 2. So the width is a
factor, and μ* belongs to the graph alone.

Â S is self-adjoint in the inner product ⟨x, y⟩ = xᵀSy, since both factors are symmetric. Lanczos'
iteration finds its extreme eigenvalues with two products per step and no dense matrix. ρ grows with
μ, because S does, so its crossing of 2 can be bracketed.
"""

import math

import torch
from torch import Tensor

from eamp.graph import Adjacency, Graph, as_graph
from eamp.graph.drawing import draw_by_graph
from eamp.graph.edge_index_cache import graph_of_key
from eamp.nn.step.known_thresholds import known_thresholds, stands_together
from eamp.ops import neighbour_sums, weighted_differences

RADIUS = 2.0  # the inverse of what the ReLU keeps
STEPS = 48  # of Lanczos: measured to give 1e-3 on graphs of any size; exact on fewer nodes
TRIED = 16  # values of μ side by side: a product with 16 columns costs little more than with one
LARGEST = 64.0  # thresholds above this μ count as out of reach


def collapse_threshold(graph: Adjacency, width: int, num_nodes: int | None = None) -> Tensor:
    r"""Return :math:`\lambda^*`, the weight that balances a ReLU GCN layer near collapse.

    .. math::
        \tfrac12\, \rho\bigl((I + \lambda^* W(C, \cdot))\, \hat A\bigr) = 1

    On a :math:`k`-regular bipartite graph it is
    :math:`\frac{k+3}{k-1} \cdot \frac14 \sqrt{F/k}`. It is estimated once per graph;
    a graph that comes in many batches is recognised by its edges.

    Args:
        graph: an :class:`eamp.Graph`, or anything one can be made of.
        width: :math:`F`, the number of features of the layer's output.
        num_nodes: number of nodes, for an ``edge_index`` that leaves out isolated nodes at its end.

    Returns:
        ``[num_graphs]`` in float64. It is 0 where no weight helps: on a graph without edges, and on
        one whose layer removes every difference at once, such as a complete graph.

    Example:
        >>> import torch
        >>> square = torch.tensor([[0, 1, 1, 2, 2, 3, 3, 0], [1, 0, 2, 1, 3, 2, 0, 3]])
        >>> collapse_threshold(square, width=64)             # k = 2: 5 · sqrt(32) / 4
        tensor([7.0711], dtype=torch.float64)
    """
    if num_nodes is None:
        num_nodes = int(graph.max()) + 1 if isinstance(graph, Tensor) and graph.numel() else 0
    return unit_threshold(as_graph(graph, num_nodes, with_batch=False)) * math.sqrt(width)


def layer_threshold(width: int, graph: Graph, symmetrize: bool) -> Tensor:
    """Return λ* of a layer, ``[num_graphs]``; traceable by ``torch.compile``."""
    if torch.compiler.is_compiling():
        # One opaque call, which finds the graph and its threshold by the graph's key.
        unit = _threshold_of_key(graph.key, graph.num_nodes, graph.num_graphs, symmetrize)
        return unit * math.sqrt(width)
    return unit_threshold(graph) * math.sqrt(width)


def unit_threshold(graph: Graph) -> Tensor:
    """Return μ* of every graph in a batch, computed once.

    Sampled neighbours have the threshold of the graph that they were sampled from.
    """
    if graph.device.type == "meta":  # without contents there is a shape and no threshold
        return torch.empty(graph.num_graphs, dtype=torch.float64, device="meta")
    whole = graph.sampled_from

    def found() -> Tensor:
        return known_thresholds(whole, estimate) if stands_together(whole) else estimate(whole)

    return whole.remember("collapse_threshold", found).to(graph.device)


@torch.no_grad()
def estimate(graph: Graph) -> Tensor:
    """Return μ* of every graph: bracketed on octaves, then twice on an even scale, interpolated."""
    degree = graph.degree
    if degree.numel() == 0:
        return degree.new_zeros(graph.num_graphs)
    exponents = torch.arange(TRIED - 1, dtype=torch.float64, device=degree.device).flip(0)
    even = torch.linspace(0, 1, TRIED, dtype=torch.float64, device=degree.device)
    tried = (LARGEST * torch.cat([even[:1], 2.0**-exponents])).expand(graph.num_graphs, TRIED)
    for last in (False, False, True):
        radius = spectral_radius(tried, graph)
        # The first value above; at μ = 0 the radius is 1.
        above = (radius > RADIUS).int().argmax(1, keepdim=True).clamp(min=1)
        low, high = tried.gather(1, above - 1), tried.gather(1, above)
        below, beyond = radius.gather(1, above - 1), radius.gather(1, above)
        reached = radius[:, -1:] > RADIUS
        place = ((RADIUS - below) / (beyond - below)) if last else even
        tried = torch.where(reached, low + (high - low) * place, 0.0 if last else tried)
    return tried.squeeze(1)


def spectral_radius(mu: Tensor, graph: Graph) -> Tensor:
    """Return ρ(S Â), S = I + μ W(c, ·), for ``mu`` ``[num_graphs, m]``, by Lanczos' iteration."""
    scale = (graph.degree + 1).rsqrt()

    def widened(x: Tensor) -> Tensor:  # S x
        return x + graph.for_nodes(mu) * weighted_differences(graph.rsqrt_degree, x, graph)

    def propagated(x: Tensor) -> Tensor:  # Â x
        return neighbour_sums(scale, x, scale, graph, self_loops=True)

    def dot(x: Tensor, y: Tensor) -> Tensor:
        return graph.total_by_graph(x * y)

    def divided(x: Tensor, by: Tensor) -> Tensor:
        # By 0 once the vectors of a small graph are exhausted: all further ones are 0.
        return graph.for_nodes(torch.where(by > 1e-9, 1 / by, 0.0)) * x

    def random(size: int) -> Tensor:
        generator = torch.Generator().manual_seed(0)
        return torch.randn(size, 1, generator=generator, dtype=mu.dtype, device="cpu")

    start = draw_by_graph(graph, random).repeat(1, mu.size(1))
    image = widened(start)
    beta = dot(start, image).clamp(min=0).sqrt()
    previous, q, sq = torch.zeros_like(start), divided(start, beta), divided(image, beta)
    beta = torch.zeros_like(beta)
    diagonal, beside = [], []
    sizes = graph.graph_sizes().unsqueeze(1)
    for step in range(1, 1 + min(STEPS, int(sizes.max()))):
        r = propagated(sq)
        diagonal.append(dot(r, sq))
        r = r - graph.for_nodes(diagonal[-1]) * q - graph.for_nodes(beta) * previous
        image = widened(r)
        # A graph stops after as many steps as it has nodes, as it does alone.
        beta = torch.where(step < sizes, dot(r, image).clamp(min=0).sqrt(), 0.0)
        beside.append(beta)
        previous, q, sq = q, divided(r, beta), divided(image, beta)
    tridiagonal = torch.diag_embed(torch.stack(diagonal, -1))
    if len(beside) > 1:  # eigvalsh reads the upper triangle alone
        tridiagonal = tridiagonal + torch.diag_embed(torch.stack(beside[:-1], -1), 1)
    return torch.linalg.eigvalsh(tridiagonal, UPLO="U").abs().amax(-1)


@torch.library.custom_op("eamp::threshold_of_key", mutates_args=())
def _threshold_of_key(key: Tensor, num_nodes: int, num_graphs: int, symmetrize: bool) -> Tensor:
    return unit_threshold(graph_of_key(key, num_nodes, symmetrize)).clone()


@_threshold_of_key.register_fake
def _(key: Tensor, num_nodes: int, num_graphs: int, symmetrize: bool) -> Tensor:
    return key.new_empty(num_graphs, dtype=torch.float64)
