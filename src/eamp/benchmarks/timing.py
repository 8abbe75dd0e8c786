"""Timing several contenders in one run, so that a noisy machine slows them all alike."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median

import torch


@dataclass(frozen=True)
class Timing:
    """Seconds per call of one contender and their ratio to those of the yardstick.

    Attributes:
        seconds: median over the rounds, what a user sees.
        ratio: median over the rounds of the ratio within a round.
        fastest: of the fastest round, the one least disturbed by others and by page faults.
        fastest_ratio: of the fastest rounds.
    """

    name: str
    seconds: float
    ratio: float
    fastest: float
    fastest_ratio: float


def interleaved(
    contenders: Mapping[str, Callable[[], object]], yardstick: str, rounds: int = 15, round_seconds: float = 0.05
) -> dict[str, Timing]:
    """Time ``contenders`` in turns, round after round, and compare each with ``yardstick``."""
    repeats = {}
    for name, call in contenders.items():
        call()  # compiles and warms up
        call()
        repeats[name] = max(1, int(round_seconds / max(seconds_per_call(call, 1), 1e-6)))
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, call in contenders.items():
            seconds[name].append(seconds_per_call(call, repeats[name]))
    base = seconds[yardstick]
    return {
        name: Timing(name, median(times), median(t / b for t, b in zip(times, base, strict=True)), min(times), min(times) / min(base))
        for name, times in seconds.items()
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
            return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.processor())
    except OSError:
        return platform.processor()
