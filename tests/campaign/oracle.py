"""The values of a case by ``ops/reference.py`` in float64, and how far a backend may be from them.

The tolerance is :data:`ROUNDINGS` rounding errors of the largest intermediate value. A sum over
edges may be off by that many roundings of the sum of the *absolute* values of its terms, and
e^{-E/T} by those of E/T times itself. So a result that cancels is not required to be exact, and a
result that does not cancel is.
"""

import math
from typing import NamedTuple

import torch
from tests.campaign.random_graphs import Case
from torch import Tensor

from eamp.graph import CSR
from eamp.ops import accumulate_dtype, reference

ROUNDINGS = 200
FORMS = ("difference", "matrix")  # torch alone has the matrix form


class Expected(NamedTuple):
    """A value and the largest error that is allowed, in the same shape."""

    value: Tensor
    tolerance: Tensor

    def complaint(self, found: Tensor) -> str | None:
        """Return what is wrong with what a backend found."""
        value, tolerance, found = self.value, self.tolerance, found.detach()
        if found.shape != value.shape:
            return f"shape {list(found.shape)} instead of {list(value.shape)}"
        limits = torch.finfo(found.dtype)
        # Near the largest number, intermediate sums may overflow to infinity.
        near = limits.max * (0.1 if found.dtype == torch.float16 else 1e-6)
        wide = found.double()
        overflow = (value.abs() + tolerance > near) & (wide.abs() > 0.1 * near)
        unequal = ~((wide - value).abs() <= tolerance) & ~overflow
        if not bool(unequal.any()):
            return None
        where = tuple(unequal.nonzero()[0].tolist())
        return (
            f"{float(wide[where]):.9g} instead of {float(value[where]):.9g} "
            f"(tolerance {float(tolerance[where]):.1e}) at {list(where)}"
        )


def csr_of(case: Case, nodes: list[int]) -> CSR:
    """Return the neighbour lists of some nodes, made without eamp's own code."""
    place = {node: k for k, node in enumerate(nodes)}
    lists: list[list[tuple[int, float]]] = [[] for _ in nodes]
    for (i, j), a in case.edges.items():
        if i in place:
            lists[place[i]].append((place[j], a))
            lists[place[j]].append((place[i], a))
    counts = torch.tensor([0, *map(len, lists)]).cumsum(0)
    entries = [entry for row in lists for entry in row]
    col = torch.tensor([j for j, _ in entries], dtype=torch.int64)
    weight = torch.tensor([a for _, a in entries], dtype=torch.float64)
    return CSR(counts, col, col, weight)


def expected(case: Case) -> dict[str, dict[str, Expected]]:
    """Return everything that a backend must find, for the difference form and the matrix form.

    Every graph of a batch is evaluated by itself.
    """
    graphs = [list(range(case.nodes))]
    if case.batch is not None:
        graphs = [
            [i for i, graph in enumerate(case.batch) if graph == k]
            for k in range(max(case.batch) + 1)
        ]
    parts = [of_one_graph(case, nodes) for nodes in graphs]
    return {form: together([part[form] for part in parts]) for form in FORMS}


def together(parts: list[dict[str, Expected]]) -> dict[str, Expected]:
    """Return the rows of all graphs of a batch, and the sum of their entropies."""
    joined = {
        name: Expected(*(torch.cat([part[name][k] for part in parts]) for k in range(2)))
        for name in parts[0]
        if name != "entropy"
    }
    total = (torch.stack([part["entropy"][k] for part in parts]).sum(0) for k in range(2))
    return {**joined, "entropy": Expected(*total)}


def of_one_graph(case: Case, nodes: list[int]) -> dict[str, dict[str, Expected]]:
    """Return what a backend must find on one graph of a batch, for both forms."""
    csr, t, normalize = csr_of(case, nodes), case.temperature, case.normalize
    x = case.x[nodes].double().requires_grad_()
    g = case.upstream[nodes].double()
    c = x.new_tensor(reference.normaliser(x, csr))
    energy = reference.dirichlet_energy(x, csr)
    gradient = reference.entropy_gradient(x, csr, t, variant=case.variant, normalize=normalize)
    if case.energy == "paper":
        u, flat, step = torch.ones(len(x), 1), c, t * gradient
    else:  # the same equations for u⊙x, with C = 1/sqrt(F)
        degree = x.new_tensor(
            [sum(a for _, a in reference.neighbours(csr, i)) for i in range(len(x))]
        )
        u, flat = (degree + 1).rsqrt().unsqueeze(1), torch.full_like(c, 1 / math.sqrt(x.size(1)))
        own = flat / 2 * reference.squared_differences(u * x, csr)
        p, log_p = (f(own, t, normalize) for f in (reference.boltzmann, reference.log_boltzmann))
        s = reference.entropy(own, t, True) if normalize else 1.0
        step = u * reference.weighted_differences(flat * p * (log_p + s), u * x, csr)

    def backward(value: Tensor, upstream: Tensor) -> Tensor:
        if not value.requires_grad:  # without edges it does not depend on x
            return torch.zeros_like(x)
        (found,) = torch.autograd.grad(value, x, upstream, retain_graph=True, allow_unused=True)
        return torch.zeros_like(x) if found is None else found

    weights, entropy = (f(energy, t, normalize) for f in (reference.boltzmann, reference.entropy))
    values = {
        "energy": energy,
        "weights": weights,
        "entropy": entropy,
        "gradient": gradient,
        "gradient backward": backward(gradient, g),
        "energy backward": backward(energy, g[:, 0]),
        "layer": x + step,
        "layer backward": g if case.detach else g + backward(step, g),
    }
    limits, z = torch.finfo(case.x.dtype), x.detach()
    found: dict[str, dict[str, Expected]] = {}
    for form in FORMS:
        paper = Tolerances(case, form, z, csr, c)
        layer = paper if case.energy == "paper" else Tolerances(case, form, u * z, csr, flat)
        of_layer = 0 * g if case.detach else u * layer.step_backward(u * g)
        tolerances = {
            "gradient": paper.step() / t + paper.underflow(),
            "gradient backward": paper.step_backward(g) / t + paper.underflow() + paper.least_of(g),
            "energy backward": paper.energy_backward(g[:, 0]),
            "layer": u * layer.step() + limits.eps * z.abs(),
            "layer backward": of_layer + limits.eps * g.abs(),
        }
        # These come in the dtype of the features, which rounds once more.
        tolerances = {
            name: tolerance + 4 * limits.eps * values[name].abs() + limits.smallest_normal
            for name, tolerance in tolerances.items()
        }
        tolerances |= {"energy": paper.energy(), "weights": paper.dp, "entropy": paper.entropy()}
        found[form] = {
            name: Expected(value.detach(), tolerances[name].detach())
            for name, value in values.items()
        }
    return found


class Tolerances:
    """The errors that rounding may cause, from sums over absolute values.

    The matrix form subtracts squares and products about the mean of all rows, in float64. Its
    errors grow with the largest of them.
    """

    def __init__(self, case: Case, form: str, z: Tensor, csr: CSR, c: Tensor) -> None:
        n = len(z)
        self.a = z.new_zeros(n, n)
        for i in range(n):
            for j, weight in reference.neighbours(csr, i):
                self.a[i, j] = weight
        limits, double = torch.finfo(accumulate_dtype(case.x)), torch.finfo(torch.float64).eps
        self.unit, self.least = ROUNDINGS * limits.eps, limits.smallest_normal
        # The parts of a derivative are rounded to the dtype of the features before they are added.
        self.coarse_eps = 8 * torch.finfo(case.x.dtype).eps
        self.coarse = max(self.unit, self.coarse_eps)
        self.c, self.t, self.normalize = c, case.temperature, case.normalize
        self.away = (z.unsqueeze(0) - z.unsqueeze(1)).abs()  # [n, n, F]
        # Rounding of u⊙x, and of differences in the matrix form.
        own = torch.finfo(case.x.dtype).eps if case.energy == "propagation" else 0.0
        self.blur = own * (z.abs().unsqueeze(0) + z.abs().unsqueeze(1))
        self.matrix = ROUNDINGS * double if form == "matrix" else 0.0
        x = case.x.double()
        self.far = 2 * x.abs().max() if own else (x.amax(0) - x.amin(0)).max()
        blurred = self.blur * (2 * self.away + self.blur) + self.matrix * self.far**2
        self.degree = self.a.sum(1)
        self.e = c / 2 * (self.a * self.away.square().sum(2)).sum(1)
        self.de = c * (self.a * blurred.sum(2)).sum(1) + self.unit * self.e
        self.de = self.de + self.least * (1 + self.degree) * z.size(1)
        r = self.e / self.t
        log_p = (-r).log_softmax(0) if self.normalize and n else -r
        self.p, self.size = log_p.exp(), 1 + log_p.abs()
        # The errors of −E/T and, if normalised, of ln Z.
        drift = (1 + r) * self.unit + self.de / self.t
        if self.normalize:
            drift = drift + (self.p * drift).sum()
        self.dp = (log_p + drift).clamp(max=0).exp() - self.p + drift.clamp(max=1) * self.p
        self.dp = self.dp + torch.where(log_p > -1e4, 8 * self.least, 0.0)
        if self.normalize:
            self.size = self.size - (self.p * log_p).sum()
        self.drive = self.dp * self.size
        if self.normalize:
            self.drive = self.drive + self.p * self.drive.sum()
        # Where rounding leaves E/T open, anything but NaN is accepted, unless p = 0 either way.
        open_ = (drift > 0.1) & (log_p + drift > -1e3)
        if self.normalize and n:
            open_ = (open_.any() | (self.e.max() > 1e-6 * limits.max)).expand(n)
        self.dp, self.drive = (each.masked_fill(open_, math.inf) for each in (self.dp, self.drive))

    def energy(self) -> Tensor:
        """Return the errors of energies."""
        return self.de

    def entropy(self) -> Tensor:
        """Return the error of the entropy."""
        return (self.dp * self.size).sum() + self.least

    def differences(self, q: Tensor, away: Tensor) -> Tensor:
        """Return Σ_j a_ij (q_i + q_j) |z_i − z_j|, ``[n, F]``."""
        pairs = self.a * (q.unsqueeze(0) + q.unsqueeze(1))
        return (pairs.unsqueeze(2) * away).sum(1).nan_to_num(math.inf)

    def underflow(self) -> Tensor:
        """Return the errors of a step whose factors become too small for their dtype."""
        return 100 * self.differences(torch.full_like(self.e, self.least), self.away)

    def least_of(self, g: Tensor) -> Tensor:
        """Return the same for the derivative in the direction of ``g``."""
        away = (g.unsqueeze(0) - g.unsqueeze(1)).abs()
        return 100 * self.differences(torch.full_like(self.e, self.least), away)

    def blurred(self, away: Tensor) -> Tensor:
        """Return the errors of differences."""
        return self.blur + self.matrix * self.far + self.unit * away

    def step(self) -> Tensor:
        """Return the errors of T∇S."""
        top = self.c.max() if len(self.c) else 0.0
        q, dq = top * self.p * self.size, top * self.drive
        return self.differences(dq, self.away) + self.differences(q, self.blurred(self.away))

    def energy_backward(self, h: Tensor) -> Tensor:
        """Return the errors of the derivative of h·E."""
        return self.differences(self.c * h.abs(), self.blurred(self.away))

    def step_backward(self, g: Tensor) -> Tensor:
        """Return the errors of the derivative of g·T∇S."""
        g_away = (g.unsqueeze(0) - g.unsqueeze(1)).abs()
        top = self.c.max() if len(self.c) else 0.0
        far = g_away.max() if g.numel() else 0.0
        # The published formula and the layer multiply g, which rounds it.
        g_blur = self.coarse_eps * (g.abs().unsqueeze(0) + g.abs().unsqueeze(1))
        # The errors of T ∂q/∂E, first those of the weights and then those of what they multiply.
        inner = top * (self.a * (self.away * g_away).sum(2)).sum(1)
        near = self.blurred(self.away) * (g_away + self.matrix * far)
        near = near + self.away * (self.unit * g_away + self.matrix * far + g_blur)
        dinner = top * (self.a * near.sum(2)).sum(1)
        slope, dslope = inner * self.p * self.size, inner * self.drive + dinner * self.p * self.size
        if self.normalize:
            full, part = self.p * self.size, self.drive
            dslope = dslope * self.size + part * slope.sum() + full * dslope.sum() * self.size
            slope = slope * self.size + full * slope.sum()
        slope, dslope = (top / self.t * (1 + self.size) * each for each in (slope, dslope))
        q, dq = top * self.p * self.size, top * self.drive
        total = self.differences(dq, g_away) + self.differences(q, self.coarse * g_away + g_blur)
        total = total + self.differences(q, torch.zeros_like(g_away) + self.matrix * far)
        total = total + self.differences(dslope, self.away)
        return total + self.differences(slope, self.blurred(self.away) + self.coarse * self.away)
