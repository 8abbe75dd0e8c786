"""Measure in a fresh process, where nothing that ran before can hide a peak or save time."""

from __future__ import annotations

import importlib
import inspect
import json
import os
import re
import resource
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parent.parent


def in_fresh_process(
    function: Callable[..., Any], *arguments: Any, environment: Mapping[str, str] | None = None
) -> Any:
    """Call a function of this package in a process of its own.

    Args:
        function: a function at the top of a module of :mod:`benchmarks`.
        *arguments: its arguments; they and the result must fit into JSON.
        environment: environment variables beside those of this process.

    Returns:
        The result.
    """
    # Not function.__module__, which is "__main__" where the module itself is run.
    module = f"benchmarks.{Path(inspect.getfile(function)).stem}"
    call = json.dumps([module, function.__name__, arguments])
    command = [sys.executable, "-m", "benchmarks.fresh_process", call]
    variables = {**os.environ, **(environment or {})}
    done = subprocess.run(
        command, check=True, stdout=subprocess.PIPE, text=True, cwd=CHECKOUT, env=variables
    )
    return json.loads(done.stdout)


def resident_peak() -> int:
    """Return the highest resident memory of this process so far, in bytes."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(re.findall(r"VmHWM:\s+(\d+) kB", status.read_text())[0]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024  # macOS counts bytes, the others kilobytes
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def extra_memory(call: Callable[[], object]) -> int:
    """Return by how many bytes ``call`` raises the peak of this process, its result included."""
    reset = Path("/proc/self/clear_refs")
    if reset.exists():
        reset.write_text("5")  # starts a new peak; elsewhere an earlier peak may hide this one
    before = resident_peak()
    result = call()
    extra = resident_peak() - before
    del result
    return extra


if __name__ == "__main__":
    module_name, name, given = json.loads(sys.argv[1])
    sys.stdout.write(json.dumps(getattr(importlib.import_module(module_name), name)(*given)))
