"""The computed number of bytes that processes send is the measured one."""

from typing import Any

import pytest
import torch
from benchmarks.communication import Layer, cut, step_bytes

import eamp
from scale.jobs import measured_bytes, together


def test_a_cut_worked_out_by_hand() -> None:
    star = eamp.Graph(torch.tensor([[0, 0, 0, 0], [1, 2, 3, 4]]), symmetrize=True)
    found = cut(star, torch.tensor([0, 0, 1, 1, 2]))
    assert found.sizes.tolist() == [2, 2, 1]
    assert found.halos.tolist() == [3, 1, 1]  # the centre counts once in each of the others
    assert (found.cut_edges, found.moved) == (3, 5)


STEP: dict[str, Any] = {"weight": 1.0, "temperature": 1.0, "detach": True}


@pytest.mark.parametrize(
    ("settings", "layers"),
    [
        # 6 features to 8 propagates first; the step sees 8; 8 to 3 classes transforms first.
        ({"model": "gcn"}, [Layer(6, first=True), Layer(8), Layer(8), Layer(3)]),
        ({"model": "gcnii", "entropy": STEP}, [Layer(8, entropy=True)] * 3),
        (
            {"model": "gcnii", "entropy": STEP | {"detach": False}},
            [Layer(8, entropy=True, detach=False)] * 3,
        ),
    ],
    ids=["gcn", "detached", "exact"],
)
def test_computed_bytes_are_measured_bytes(settings: dict[str, Any], layers: list[Layer]) -> None:
    for measured, halo in together(2, measured_bytes, settings):
        assert halo > 0
        assert measured == step_bytes(halo, layers, parameters=0, parts=2)[0]


def test_gradients_cost_about_twice_the_parameters_however_many_processes_there_are() -> None:
    assert [step_bytes(0, [], 1000, parts)[1] for parts in (1, 2, 64)] == [0, 4000, 7875]
