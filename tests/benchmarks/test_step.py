import torch
from benchmarks.step import bytes_moved

import eamp


def test_the_bytes_of_a_step_are_counted() -> None:
    g = eamp.Graph(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]))  # two edges, so four entries
    moved = bytes_moved(g, torch.zeros(3, 5))
    assert moved == {"step": (3 + 2 + 3 + 4 + 3) * 20, "A @ x": (4 + 3) * 20, "copy": 6 * 20}
