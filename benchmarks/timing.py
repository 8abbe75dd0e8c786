"""Time several functions in one run, so that a noisy machine slows them all alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from statistics import median

import torch

from eamp.report.provenance import provenance

Rounds = dict[str, list[float]]
"""Seconds per call of every function, round by round."""
Clock = Callable[[], float]


def interleaved(
    calls: Mapping[str, Callable[[], object]],
    rounds: int = 15,
    round_seconds: float = 0.05,
    clock: Clock = time.perf_counter,
) -> Rounds:
    """Time functions in turns, round after round.

    Args:
        calls: the functions, by name.
        rounds: how often each has its turn.
        round_seconds: about how long one turn takes; a shorter function is called repeatedly.
        clock: ``time.process_time`` counts the time of this process on the processor. Use it for
            functions of different lengths, which other processes do not slow alike.

    Returns:
        Seconds per call of every function in every round.
    """
    repeats = {}
    for name, call in calls.items():
        seconds_per_call(call, 2, clock)  # compiles and warms up
        repeats[name] = max(1, int(round_seconds / max(seconds_per_call(call, 1, clock), 1e-6)))
    seconds: Rounds = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            seconds[name].append(seconds_per_call(call, repeats[name], clock))
    return seconds


def seconds_per_call(
    call: Callable[[], object], repeats: int, clock: Clock = time.perf_counter
) -> float:
    """Return the mean time of a call; work that was queued on a GPU is waited for."""
    wait()
    start = clock()
    for _ in range(repeats):
        call()
    wait()
    return (clock() - start) / repeats


def wait() -> None:
    """Wait for the GPU, if this process has used one."""
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()


def ratios(seconds: Rounds, pairs: Iterable[tuple[str, str]]) -> dict[str, dict[str, float]]:
    """Return the ratio of the times of every pair of functions.

    ``median`` is the median of the ratios within a round, which is what a user sees. ``fastest`` is
    the ratio of the fastest rounds, which other processes and page faults disturb least.
    """
    return {
        f"{a} / {b}": {
            "median": median(x / y for x, y in zip(seconds[a], seconds[b], strict=True)),
            "fastest": min(seconds[a]) / min(seconds[b]),
        }
        for a, b in pairs
    }


def medians(seconds: Rounds) -> dict[str, float]:
    """Return the median seconds of every function."""
    return {name: median(times) for name, times in seconds.items()}


def machine(device: str = "cpu") -> dict[str, str | int]:
    """Return what a reader must know about the machine to make sense of a figure."""
    run = provenance()
    versions = run["versions"]
    return {
        "processor": run["processor"],
        **({"GPU": torch.cuda.get_device_name()} if device == "cuda" else {}),
        "threads": torch.get_num_threads(),
        "system": run["system"],
        "python": versions["Python"],
        "torch": torch.__version__,  # with the build, such as +cpu
        "torch_geometric": versions["torch-geometric"],
        "numba": versions["numba"],
    }
