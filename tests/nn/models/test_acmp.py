"""Allen–Cahn message passing: wells, attraction and repulsion."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

import eamp
from eamp.nn.conv.ode import ODEBlock
from eamp.nn.conv.vector_fields import AllenCahn, AttentionDiffusion, GCNDiffusion
from eamp.nn.models.acmp import ACMP
from problems import irregular_graph, random_graph, undirected

every_attraction = pytest.mark.parametrize("attraction", ["gat", "gcn"])


def evolve(
    field: AllenCahn, x: Tensor, graph: eamp.Graph, time: int, flow: ODEBlock | None = None
) -> Tensor:
    flow = flow or ODEBlock("rk4", steps=10)
    with torch.no_grad():
        frozen = field.at_start(x, graph)
        for _ in range(time):
            x = flow(x, graph, field, *frozen)
    return x


def test_without_coupling_every_particle_settles_in_the_well_of_its_sign() -> None:
    x = torch.randn(40, 3)
    field = AllenCahn(3, GCNDiffusion(), repulsion=1.0)
    torch.nn.init.constant_(field.logit_coupling, -math.inf)
    settled = evolve(field, x, random_graph(40, 80), time=40)
    torch.testing.assert_close(settled, x.sign(), rtol=0, atol=1e-3)


@every_attraction
def test_with_a_strong_well_particles_stay_in_two_groups_though_they_attract(
    attraction: str,
) -> None:
    graph, x = random_graph(40, 80), torch.randn(40, 3)
    attract = GCNDiffusion() if attraction == "gcn" else AttentionDiffusion(3)
    settled = evolve(
        AllenCahn(3, attract, repulsion=0.0, coupling=0.02, well=0.9), x, graph, time=60
    )
    assert ((settled.abs() - 1).abs() < 0.15).all()
    assert (settled > 0).any(dim=0).all()
    assert (settled < 0).any(dim=0).all()


def test_repulsion_parts_two_joined_particles_and_attraction_unites_them() -> None:
    graph = eamp.Graph(undirected((0, 1)))
    x = torch.tensor([[0.1], [0.2]])  # both on the side of the same well; their weight is 1/2
    together = evolve(AllenCahn(1, GCNDiffusion(), repulsion=0.0), x, graph, time=60)
    apart = evolve(AllenCahn(1, GCNDiffusion(), repulsion=2.0), x, graph, time=60)
    torch.testing.assert_close(together, torch.ones(2, 1), rtol=0, atol=1e-3)
    assert apart[0] < -0.9
    assert apart[1] > 0.9


def test_with_much_repulsion_the_sides_of_a_bipartite_graph_go_to_different_wells() -> None:
    n = 12
    graph = eamp.Graph(undirected(*((i, (i + 1) % n) for i in range(n))))
    side = torch.tensor([1.0, -1.0]).repeat(n // 2).unsqueeze(1)
    x = 0.5 + 0.02 * side + 0.001 * torch.randn(n, 1)  # one clump, far nearer to +1 than to −1
    settled = evolve(
        AllenCahn(1, GCNDiffusion(), repulsion=2.0), x, graph, time=60, flow=ODEBlock("dopri5")
    )
    assert torch.equal(settled.sign(), side)
    assert float(settled.abs().min()) > 0.9


def test_energy_has_a_floor_where_plain_diffusion_has_none() -> None:
    graph, x = random_graph(40, 80), 0.3 * torch.randn(40, 4)
    diffused, parted = (
        evolve(
            AllenCahn(4, GCNDiffusion(), repulsion=repulsion, well=well),
            x,
            graph,
            time=200,
            flow=ODEBlock("euler", steps=10),
        )
        for repulsion, well in ((0.0, 1e-6), (0.3, 0.5))
    )
    assert float(eamp.dirichlet_energy(diffused, graph).mean()) < 1e-3
    assert float(eamp.dirichlet_energy(parted, graph).mean()) > 0.1


@every_attraction
def test_default_steps_hold_at_a_hub(attraction: Any) -> None:
    hub = eamp.Graph(undirected(*((0, i) for i in range(1, 170))))
    model = ACMP(5, 8, 3, 30, attraction=attraction)
    x = torch.randn(170, 5)
    assert evolve(model.field, model.encoder(x), hub, 30, model.flow).abs().max() < 10
    assert model(x, hub).isfinite().all()


@every_attraction
def test_adaptive_and_fixed_step_solvers_agree(attraction: Any) -> None:
    graph, x = irregular_graph(), torch.randn(10, 5, dtype=torch.float64)
    solvers: tuple[dict[str, Any], ...] = (
        {"method": "rk4", "steps_per_layer": 40},
        {"method": "dopri5", "rtol": 1e-8, "atol": 1e-8},
    )
    logits = []
    for solver in solvers:
        torch.manual_seed(0)
        entropy = {"weight": 0.5, "temperature": 2.0}
        options = {"repulsion": 0.3, "every_evaluation": True, "entropy": entropy, **solver}
        logits.append(ACMP(5, 4, 3, 3, attraction=attraction, **options).double()(x, graph))
    torch.testing.assert_close(logits[0], logits[1], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "options",
    [{"method": "dopri5"}, {"adjoint": True}, {"every_evaluation": True}, {"attraction": "gcn"}],
)
def test_gradient_reaches_every_parameter_with_every_solver(options: dict[str, Any]) -> None:
    model = ACMP(5, 4, 3, 2, repulsion=0.3, **options)
    model(torch.randn(10, 5), irregular_graph()).square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.any(), name


def test_entropy_is_added_to_the_forces() -> None:
    graph, x = irregular_graph(), torch.randn(10, 5, dtype=torch.float64)
    entropy = {"weight": 0.5, "temperature": 2.0}
    model = ACMP(5, 4, 3, 1, steps_per_layer=1, entropy=entropy).double()
    h = model.encoder(x)
    forces = model.field(h, graph, *model.field.at_start(h, graph))
    h = h + forces + 0.5 * eamp.entropy_gradient(h, graph, temperature=2.0)
    torch.testing.assert_close(model(x, graph), model.decoder(h.relu()))


def test_impossible_options_are_refused() -> None:
    with pytest.raises(ValueError, match="'gat' or 'gcn'"):
        ACMP(5, 4, 2, 3, attraction="gin")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="well must lie strictly between 0 and 1"):
        ACMP(5, 4, 2, 3, well=1.0)
