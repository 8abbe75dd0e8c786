"""Timing several contenders in one run, so that a noisy machine slows them all alike."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterable, Mapping
from statistics import median

import torch

Rounds = dict[str, list[float]]
"""Seconds per call of every contender, round by round."""


def interleaved(
    contenders: Mapping[str, Callable[[], object]], rounds: int = 15, round_seconds: float = 0.05
) -> Rounds:
    """Time ``contenders`` in turns, round after round."""
    repeats = {}
    for name, call in contenders.items():
        call()  # compiles and warms up
        call()
        repeats[name] = max(1, int(round_seconds / max(seconds_per_call(call, 1), 1e-6)))
    seconds: Rounds = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, call in contenders.items():
            seconds[name].append(seconds_per_call(call, repeats[name]))
    return seconds


def ratios(seconds: Rounds, pairs: Iterable[tuple[str, str]]) -> dict[str, dict[str, float]]:
    """For every pair of contenders the ratio of their times: the median of the ratios within a round, which is what a user sees, and the
    ratio of their fastest rounds, which are the least disturbed by others and by page faults.
    """
    return {
        f"{a} / {b}": {
            "median": median(x / y for x, y in zip(seconds[a], seconds[b], strict=True)),
            "fastest": min(seconds[a]) / min(seconds[b]),
        }
        for a, b in pairs
    }


def seconds_per_call(call: Callable[[], object], repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - start) / repeats


def machine() -> dict[str, str | int]:
    """What a reader must know of the machine to make sense of a figure."""
    import numba
    import torch_geometric

    return {
        "processor": processor(),
        "threads": torch.get_num_threads(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "torch": torch.__version__,
        "torch_geometric": torch_geometric.__version__,
        "numba": numba.__version__,
    }


def processor() -> str:
    try:
        with open("/proc/cpuinfo") as lines:
            return next(
                (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")),
                platform.processor(),
            )
    except OSError:
        return platform.processor()
