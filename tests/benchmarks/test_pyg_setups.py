from typing import Any

import pytest
import torch
from benchmarks.pyg_setups import DEFAULT, PyGStack, normalised_csr, pyg_setups
from benchmarks.step import random_graph
from torch_geometric.nn.conv.gcn_conv import gcn_norm

G = random_graph(30, 100)
X, Y = torch.randn(30, 4), torch.zeros(30, dtype=torch.long)


def test_a_normalised_matrix_gives_the_same_network() -> None:
    default = PyGStack(4, 3, 2)
    faster = PyGStack(4, 3, 2, normalize=False)
    faster.load_state_dict(default.state_dict())
    matrix = normalised_csr(*gcn_norm(G.edge_index, None, 30), 30)
    torch.testing.assert_close(faster(X, matrix), default(X, G.edge_index))


def test_every_set_up_runs() -> None:
    steps, compilation = pyg_setups(G, X, Y, classes=3, layers=2, compiled=False)
    assert list(steps) == [DEFAULT, "PyG, cached", "PyG, CSR", "PyG, EdgeIndex"]
    assert not compilation
    for step in steps.values():
        step()


def test_the_fastest_is_compiled_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "compile", lambda model: model)  # compiling takes a minute
    steps, compilation = pyg_setups(G, X, Y, classes=3, layers=2)
    assert f"{compilation['of']}, compiled" in steps
    assert compilation["seconds"] > 0


def test_a_compiler_that_fails_is_reported_and_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> None:
        raise RuntimeError("no compiler found\nand a long trace")

    class Broken(torch.nn.Module):
        forward = fails

    monkeypatch.setattr(torch, "compile", lambda model: Broken())
    steps, compilation = pyg_setups(G, X, Y, classes=3, layers=2)
    assert len(steps) == 4
    assert compilation["error"] == "RuntimeError: no compiler found"
