"""Time the first call in a new process, with nothing compiled and with compiled kernels."""

from __future__ import annotations

import time
from tempfile import TemporaryDirectory

from benchmarks.fresh_process import in_fresh_process


def first_result() -> dict[str, float]:
    """Import everything, run a training step, and return the seconds of imports and step.

    The step is that of an entropic GCN which differentiates through its steps, so that it needs
    more kernels than the default.
    """
    started = time.perf_counter()
    # Imported here, because the time that it takes is part of what is measured.
    import torch
    import torch_geometric.nn  # noqa: F401

    others = time.perf_counter()
    import eamp

    model = eamp.nn.GCN(4, 4, 2, num_layers=2, entropy={"weight": 1.0, "detach": False})
    graph = eamp.Graph(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]))
    model(torch.randn(3, 4), graph).sum().backward()
    ended = time.perf_counter()
    return {"import torch and PyG": others - started, "eamp": ended - others}


def first_call() -> dict[str, dict[str, float]]:
    """Return the seconds of :func:`first_result` without and with kernels on the disk."""
    with TemporaryDirectory() as folder:
        # PyTorch is read from the disk once before, which would otherwise count for one of the two.
        names = ("warm-up", "nothing compiled", "kernels on the disk")
        folders = (f"{folder}/other", f"{folder}/kernels", f"{folder}/kernels")
        found = {
            name: in_fresh_process(first_result, environment={"NUMBA_CACHE_DIR": place})
            for name, place in zip(names, folders, strict=True)
        }
    return {name: found[name] for name in names[1:]}
