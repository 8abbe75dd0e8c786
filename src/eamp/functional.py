"""Energy, Boltzmann weight, entropy and its gradient: pure functions, a thin face over ``ops``."""

from typing import get_args

import torch
from torch import Tensor

from eamp.graph import Adjacency, Graph, graph_for
from eamp.graph.transforms import outside_transforms, unwrapped
from eamp.ops import Variant, energy_normaliser, entropy_step, squared_differences
from eamp.ops.boltzmann import log_boltzmann


def dirichlet_energy(x: Tensor, graph: Adjacency, *, check_finite: bool = False) -> Tensor:
    r"""Return the Dirichlet energy of every node.

    .. math::
        E_i = \frac{C_i}{2} \sum_j a_{ij} \lVert x_j - x_i \rVert^2, \qquad C_i = 1/\sqrt{k_i F}

    Args:
        x: features, ``[n, F]``.
        graph: an :class:`eamp.Graph`, or anything one can be made of.
        check_finite: raise an error naming the first row of ``x`` that holds NaN or infinity.

    Returns:
        Energies, ``[n]``; exactly 0 for isolated nodes. Half-precision features give float32
        energies.

    Example:
        >>> import torch, eamp
        >>> edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> eamp.dirichlet_energy(torch.tensor([[0.0], [1.0], [3.0]]), edge_index)
        tensor([0.5000, 1.7678, 2.0000])
    """
    return energy_on(x, graph_for(x, graph, check_finite=check_finite, with_batch=False))


def boltzmann(
    x: Tensor,
    graph: Adjacency,
    temperature: float | Tensor = 10.0,
    *,
    normalize: bool = False,
    check_finite: bool = False,
) -> Tensor:
    r"""Return the Boltzmann weight of every node, :math:`p_i = e^{-E_i/T}`.

    Args:
        x: features, ``[n, F]``.
        graph: an :class:`eamp.Graph`, or anything one can be made of.
        temperature: T > 0, a number or a one-element tensor.
        normalize: divide by the sum over the nodes; in a batch, over those of the node's graph.
        check_finite: see :func:`dirichlet_energy`.

    Example:
        >>> import torch, eamp
        >>> edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> x = torch.tensor([[0.0], [1.0], [3.0]])
        >>> eamp.boltzmann(x, edge_index, temperature=1.0, normalize=True)
        tensor([0.6646, 0.1871, 0.1483])
    """
    graph = graph_for(x, graph, check_finite=check_finite, with_batch=False)
    energy = energy_on(x, graph)
    return log_boltzmann(energy, check_temperature(temperature), normalize, graph).exp()


def entropy(
    x: Tensor,
    graph: Adjacency,
    temperature: float | Tensor = 10.0,
    *,
    normalize: bool = False,
    by_graph: bool = False,
    check_finite: bool = False,
) -> Tensor:
    r"""Return the Shannon entropy of the Boltzmann weights, :math:`S = -\sum_i p_i \ln p_i`.

    Without ``normalize`` every node adds :math:`\frac{E_i}{T} e^{-E_i/T}`, which is largest, 1/e,
    where :math:`E_i = T`. The entropies of the graphs in a batch are added up.

    Args:
        x: features, ``[n, F]``.
        graph: an :class:`eamp.Graph`, or anything one can be made of.
        temperature: T > 0, a number or a one-element tensor.
        normalize: see :func:`boltzmann`.
        by_graph: return the entropy of every graph of a batch, ``[num_graphs]``.
        check_finite: see :func:`dirichlet_energy`.

    Example:
        >>> import torch, eamp
        >>> edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> eamp.entropy(torch.tensor([[0.0], [1.0], [3.0]]), edge_index, temperature=2.0)
        tensor(0.9278)
    """
    graph = graph_for(x, graph, check_finite=check_finite, with_batch=False)
    energy = energy_on(x, graph)
    log_p = log_boltzmann(energy, check_temperature(temperature), normalize, graph)
    shares = -log_p.exp() * log_p
    return graph.total_by_graph(shares) if by_graph else graph.total(shares)


def entropy_gradient(
    x: Tensor,
    graph: Adjacency,
    temperature: float | Tensor = 10.0,
    *,
    variant: Variant = "exact",
    normalize: bool = False,
    check_finite: bool = False,
) -> Tensor:
    r"""Return the gradient of the entropy in every node's features.

    .. math::
        \nabla_{x_i} S = \frac{1}{T} \sum_j a_{ij} (q_i + q_j)(x_i - x_j), \qquad
        q_i = C_i\, p_i (1 - E_i/T)

    It costs two passes over the edges. It can itself be differentiated, in ``x`` and in the
    temperature, at any order.

    Args:
        x: features, ``[n, F]``.
        graph: an :class:`eamp.Graph`, or anything one can be made of.
        temperature: T > 0, a number or a one-element tensor.
        variant: ``"exact"``; ``"paper"`` for the published formula, which has :math:`C_i` in place
            of :math:`C_j` and is exact on regular graphs only; or ``"permuted"``, a control for
            experiments, whose :math:`p_i (1 - E_i/T)` is that of another node of equal degree.
        normalize: take the entropy of the normalised distribution.
        check_finite: see :func:`dirichlet_energy`.

    Returns:
        ``[n, F]``; exactly 0 for isolated nodes.

    Example:
        >>> import torch, eamp
        >>> x, edge_index = torch.tensor([[0.0], [1.0]]), torch.tensor([[0, 1], [1, 0]])
        >>> eamp.entropy_gradient(x, edge_index, temperature=1.0)    # E = 1/2 < T: pushed apart
        tensor([[-0.6065],
                [ 0.6065]])
    """
    check_variant(variant)
    graph = graph_for(x, graph, check_finite=check_finite, with_batch=False)
    temperature = check_temperature(temperature)
    if isinstance(temperature, Tensor):
        step, _ = entropy_step(x, graph, temperature, variant=variant, normalize=normalize)
        return step / temperature
    factor = 1 / temperature
    step, _ = entropy_step(x, graph, temperature, factor, variant=variant, normalize=normalize)
    return step


def energy_on(x: Tensor, graph: Graph, by_degree: bool = True) -> Tensor:
    """Return E_i = C_i/2 · D(x)_i on a graph that ``x`` is known to fit."""
    return energy_normaliser(x, graph, by_degree) * (squared_differences(x, graph) * 0.5)


def check_variant(variant: str) -> None:
    """Raise an error unless ``variant`` names a formula of the gradient."""
    if variant not in get_args(Variant):
        expected = ", ".join(map(repr, get_args(Variant)))
        raise ValueError(f"variant must be one of {expected}, but is {variant!r}.")


def check_temperature(temperature: float | Tensor) -> float | Tensor:
    """Return T as a number or a 0-dimensional tensor, after checking that it is above 0."""
    if isinstance(temperature, Tensor):
        if temperature.numel() != 1:
            raise ValueError(
                f"temperature must be one number; got a tensor of shape {list(temperature.shape)}."
            )
        temperature = temperature.reshape(())
        if torch.compiler.is_compiling():
            torch._assert_async(temperature > 0, "temperature must be > 0")  # checked at run time
            return temperature
        if temperature.device.type != "cpu":
            return temperature  # reading the value would stall the queue
        with outside_transforms():
            lowest = float(unwrapped(temperature).detach().min())
    elif isinstance(temperature, bool) or not isinstance(temperature, (int, float)):
        raise ValueError(f"temperature must be a number > 0, but is {temperature!r}.")
    else:
        lowest = temperature
    if not lowest > 0:
        raise ValueError(
            f"temperature must be > 0, but is {lowest}; it is the energy per node that the "
            "entropy aims at."
        )
    return temperature
