"""The Boltzmann distribution over node energies, and the derivative of its entropy."""

import torch
from torch import Tensor

from eamp.graph import Graph

VANISHED = 1e4
"""From this E/T on, e^{−E/T} is 0 in every precision, and with it every term of the entropy."""


def over_temperature(energy: Tensor, temperature: float | Tensor) -> Tensor:
    """Return E/T, at most about :data:`VANISHED`.

    So 0 · ln 0 is 0 where a difference of features is too large for its square to be a number.
    """
    largest = torch.finfo(energy.dtype).max
    if isinstance(temperature, Tensor):
        limit = (VANISHED * temperature.detach().to(energy)).clamp(max=largest)
        return energy.clamp(max=limit) / temperature
    return energy.clamp(max=min(VANISHED * temperature, largest)) / temperature


def log_boltzmann(
    energy: Tensor, temperature: float | Tensor, normalize: bool, graph: Graph
) -> Tensor:
    """Return ln p_i = −E_i/T, less ln Z of the node's graph if ``normalize``.

    A weight so small that e^{ln p_i} is 0 may come out larger than it is, but no larger than
    −:data:`VANISHED`.
    """
    if not normalize or energy.numel() == 0:
        return -over_temperature(energy, temperature)
    graph.require_all_rows("normalize=True")
    # ln p does not change if all energies of a graph do by the same number. Taken from the lowest,
    # they keep the digits that ln Z is about.
    energy = energy.clamp(max=torch.finfo(energy.dtype).max)
    lowest = graph.for_nodes(lowest_by_graph(energy.detach(), graph))
    log_p = -over_temperature(energy - lowest, temperature)
    if graph.batch is None:
        return log_p.log_softmax(0)
    return log_p - graph.for_nodes(graph.total_by_graph(log_p.exp()).log())


def lowest_by_graph(energy: Tensor, graph: Graph) -> Tensor:
    """Return the lowest energy in every graph, ``[num_graphs]``."""
    if graph.batch is None:
        return energy.amin(0, keepdim=True)
    highest = energy.new_full((graph.num_graphs,), torch.inf)
    return highest.scatter_reduce(0, graph.batch, energy, "amin")


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
