"""Random graphs on which every backend must agree with the oracle.

``python -m tests.campaign.graphs SEED FIRST LAST STEP`` compares a share of them and prints a JSON
object for every disagreement. One graph again: ``python -m tests.campaign.graphs SEED N N+1 1``.
"""

import importlib.util
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.campaign.tally import Options, Tally

BACKENDS = ("numba", "torch", "reference")
INTERPRETED = 50  # the GPU's kernels are interpreted, slowly, on every 50th graph


def graphs(options: Options) -> Tally:
    """Compare so many graphs, spread over the cores."""
    tally = Tally("graphs")
    with ThreadPoolExecutor(options.cores) as pool:
        shares = [
            (options.seed, first, options.graphs, options.cores, tally)
            for first in range(min(options.cores, options.graphs))
        ]
        list(pool.map(lambda share: compare_in_a_process(*share), shares))
    tally.counts.setdefault("disagreements", 0)
    return tally


def compare_in_a_process(seed: int, first: int, last: int, step: int, tally: Tally) -> None:
    """Compare the graphs ``first``, ``first + step``, ... in a process of their own."""
    command = [sys.executable, "-m", __name__, *map(str, (seed, first, last, step))]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    if importlib.util.find_spec("triton") is not None:
        environment["TRITON_INTERPRET"] = "1"  # Triton reads it when it is imported
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        for line in process.stdout:
            note(json.loads(line), tally)
    if process.returncode != 0:
        tally.fault(f"the process that compares ended with status {process.returncode}")


def note(found: dict[str, Any], tally: Tally) -> None:
    """Add a line of :func:`main` to the tally."""
    for name, more in found.get("counts", {}).items():
        tally.count(name, more)
    if "fault" in found:
        tally.count("disagreements")
        if tally.counts["disagreements"] <= 20:
            tally.fault(found["fault"])
    if "said" in found:
        tally.say(found["said"])


def main(seed: int, first: int, last: int, step: int) -> Iterator[dict[str, Any]]:
    """Yield the disagreements on the graphs of a range, and how many there were."""
    # heavy: the process that starts this one does not need torch
    import warnings

    import torch
    from tests.campaign.random_graphs import draw, graph_of

    warnings.simplefilter("ignore")  # torch, of sparse matrices
    torch.set_num_threads(1)
    began = shown = time.monotonic()
    for number in range(first, last, step):
        case = draw(seed, number)
        names = list(BACKENDS)
        if number % INTERPRETED == 0 and os.environ.get("TRITON_INTERPRET") == "1":
            names.append("triton")
        try:
            graph = graph_of(case, random.Random(number))
            values = compare(case, graph, names)
        except Exception as error:  # any error at a valid graph is a disagreement
            values = [f"{type(error).__name__}: {error}"]
        for fault in values:
            yield {"fault": f"graph {number} of seed {seed}: {fault} ({case})"}
        yield {"counts": {"graphs": 1, "backends × graphs": len(names)}}
        if first == 0 and time.monotonic() - shown > 30:
            shown = time.monotonic()
            rate = (number + step) / (shown - began)
            yield {"said": f"{number} of {last}, {rate:.0f} a second"}


def compare(case: Any, graph: Any, names: list[str]) -> list[str]:
    """Return a line for everything that a backend finds differently from the oracle."""
    # heavy: see above
    from tests.campaign.oracle import expected

    import eamp

    faults, oracle = [], expected(case)
    for name in names:
        with eamp.backend(name):
            found = evaluate(case, graph)
        form = "matrix" if name == "torch" else "difference"
        for what, value in found.items():
            if complaint := oracle[form][what].complaint(value):
                faults.append(f"{name}, {what}: {complaint}")
    return faults


def evaluate(case: Any, graph: Any) -> dict[str, Any]:
    """Return everything that the forced backend finds."""
    # heavy: see above
    import torch

    import eamp

    class Same(torch.nn.Module):
        def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
            return 1 * x

    x = case.x.clone().requires_grad_()
    t, normalize, g = case.temperature, case.normalize, case.upstream
    how = {"variant": case.variant, "normalize": normalize}
    energy = eamp.dirichlet_energy(x, graph)
    gradient = eamp.entropy_gradient(x, graph, t, **how)
    layer = eamp.EntropyAware(Same(), 1.0, t, energy=case.energy, detach=case.detach, **how)
    out = layer(x, graph)
    entropy = eamp.entropy(x, graph, t, normalize=normalize)
    return {
        "energy": energy,
        "weights": eamp.boltzmann(x, graph, t, normalize=normalize),
        "entropy": entropy,
        "gradient": gradient,
        "gradient backward": torch.autograd.grad(gradient, x, g)[0],
        "energy backward": torch.autograd.grad(energy, x, g[:, 0].to(energy.dtype))[0],
        "layer": out,
        "layer backward": torch.autograd.grad(out, x, g)[0],
    }


if __name__ == "__main__":
    for found in main(*map(int, sys.argv[1:])):
        print(json.dumps(found), flush=True)
