"""Processes that start with the slow imports done.

A new interpreter spends seconds on the import of torch and PyG. The processes of this module are
forked from a server that has done it once. They import this module by its name.
"""

import functools
import multiprocessing
import os
import sys
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any
from unittest import mock

import torch
import torch.distributed as dist

from eamp import cli

PRELOADED = (
    "eamp.training",
    "eamp.scale.part_models",
    "eamp.ops.backends.numba_cpu.launch",
    "eamp.data.synthetic",
    "eamp.experiments.several_seeds",
    "eamp.experiments.tune",
    "eamp.experiments.worker",
    "eamp.cli",
    "pymetis",
    "psycopg",
)


def context() -> Any:
    """Return a context that forks processes from a server with the slow imports done.

    The server finds installed modules only, so no module of the tests is among them.
    """
    found = multiprocessing.get_context("forkserver")
    found.set_forkserver_preload(list(PRELOADED))
    return found


def started(output: Path, function: Callable[..., int | None], *arguments: Any) -> BaseProcess:
    """Start ``function`` in a process that writes to a file; its result is the exit status."""
    process: BaseProcess = context().Process(target=_call, args=(output, function, arguments))
    process.start()
    return process


def _call(output: Path, function: Callable[..., int | None], arguments: tuple[Any, ...]) -> None:
    with output.open("wb") as file:
        for stream in (sys.stdout, sys.stderr):
            os.dup2(file.fileno(), stream.fileno())
    torch.set_num_threads(1)
    sys.exit(function(*arguments))


def as_torchrun_does(rank: int, processes: int, folder: Path, command: list[str]) -> int:
    """Run a command of eamp as one process of several, and return its exit status."""
    meeting = {"init_method": f"file://{folder}/meeting", "rank": rank, "world_size": processes}
    meet = functools.partial(dist.init_process_group, **meeting)
    with (
        mock.patch.dict(os.environ, {"WORLD_SIZE": str(processes)}),
        mock.patch.object(dist, "init_process_group", meet),
    ):
        return cli.main(command)


def ended_within(process: BaseProcess, seconds: float) -> bool:
    """Wait for a process, and return whether it ended in time."""
    process.join(seconds)
    return process.exitcode is not None
