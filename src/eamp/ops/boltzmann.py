"""The Boltzmann distribution over node energies, and the derivative of its entropy."""

import math

from torch import Tensor

from eamp.graph import Graph


def log_boltzmann(
    energy: Tensor, temperature: float | Tensor, normalize: bool, graph: Graph
) -> Tensor:
    """Return ln p_i = −E_i/T, less ln Z of the node's graph if ``normalize``."""
    log_p = -energy / temperature
    if not normalize or log_p.numel() == 0:
        return log_p
    graph.require_all_rows("normalize=True")
    if graph.batch is None:
        return log_p.log_softmax(0)
    lowest = log_p.detach().new_full((graph.num_graphs,), -math.inf)
    top = lowest.scatter_reduce(0, graph.batch, log_p.detach(), "amax")
    z = graph.total_by_graph((log_p - graph.for_nodes(top)).exp())
    return log_p - graph.for_nodes(top + z.log())


def entropy_drive(
    energy: Tensor, temperature: float | Tensor, normalize: bool, graph: Graph
) -> Tensor:
    """Return P̄_i = T ∂S/∂E_i, ``[n]``.

    It is p_i (1 − E_i/T), or p_i (ln p_i + S) with the entropy S of the node's graph if
    ``normalize``.
    """
    log_p = log_boltzmann(energy, temperature, normalize, graph)
    p = log_p.exp()
    if not normalize:
        return p * (1 + log_p)
    return p * (log_p + graph.for_nodes(graph.total_by_graph(-p * log_p)))
