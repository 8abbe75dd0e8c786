"""Running eamp in processes that are watched, limited and killed."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

EAMP = (sys.executable, "-m", "eamp")
TIMEOUT = 900.0  # seconds until a command that should have ended counts as hanging


class Ended(NamedTuple):
    """How a process ended.

    Attributes:
        status: the exit status; negative for a signal, ``None`` if it had to be killed.
        out: standard output.
        err: standard error.
        seconds: how long it ran.
        peak: the most memory that it or a child had resident, in bytes, if that was followed.
    """

    status: int | None
    out: str
    err: str
    seconds: float
    peak: int

    @property
    def last_words(self) -> str:
        """The last line that it wrote, shortened."""
        lines = (self.err.strip() or self.out.strip() or "nothing said").splitlines()
        return f"status {self.status}: {lines[-1][:200]}"


class Running:
    """A command in a session of its own; its output goes to files, so that no pipe can fill.

    Args:
        command: the command.
        folder: where its output goes.
        environment: variables that are set in addition.
        limits: for :func:`limited`.
        watched: whether to follow how much memory it takes, which costs some computing.
    """

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        environment: dict[str, str] | None = None,
        limits: dict[str, int] | None = None,
        watched: bool = False,
    ) -> None:
        self.watched = watched
        folder.mkdir(parents=True, exist_ok=True)
        self.files = [folder / "stdout.txt", folder / "stderr.txt"]
        self.began, self.peak = time.monotonic(), 0
        streams = [file.open("w") for file in self.files]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", **(environment or {})}
        self.process = subprocess.Popen(
            [*limited(limits or {}), *command],
            stdin=subprocess.DEVNULL,
            stdout=streams[0],
            stderr=streams[1],
            env=environment,
            start_new_session=True,
        )
        for stream in streams:
            stream.close()

    def children(self) -> list[int]:
        """Return the processes that it has started and that are still there."""
        return descendants(self.process.pid)[1:]

    def wait(self, seconds: float) -> bool:
        """Wait so long, and return whether it ended."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and self.process.poll() is None:
            if self.watched:
                for number in descendants(self.process.pid):
                    self.peak = max(self.peak, peak_memory(number))
            time.sleep(min(0.02 if self.watched else 0.1, left))
        return self.process.poll() is not None

    def kill(self) -> None:
        """Kill the process alone, and not its children."""
        self.process.kill()
        self.process.wait()

    def ended(self, timeout: float = TIMEOUT) -> Ended:
        """Wait for the process, kill all of it after ``timeout``, and return how it ended."""
        hangs = not self.wait(timeout)
        if hangs:
            for number in descendants(self.process.pid):
                kill(number)
            self.process.wait()
        out, err = (file.read_text(encoding="utf-8", errors="replace") for file in self.files)
        status = None if hangs else self.process.returncode
        return Ended(status, out, err, time.monotonic() - self.began, self.peak)


def run(command: Sequence[str], folder: Path, timeout: float = TIMEOUT, **how: Any) -> Ended:
    """Run a command to its end."""
    return Running(command, folder, **how).ended(timeout)


def limited(limits: dict[str, int]) -> list[str]:
    """Return a prefix for a command that sets limits such as ``{"RLIMIT_FSIZE": 4096}``.

    A process of its own sets them, because a function between fork and exec is unsafe in a process
    with threads.
    """
    if not limits:
        return []
    sets = "".join(f"r.setrlimit(r.{name}, ({n}, {n}));" for name, n in limits.items())
    code = f"import os, resource as r, sys; {sets} os.execv(sys.argv[1], sys.argv[1:])"
    return [sys.executable, "-c", code]


def descendants(number: int) -> list[int]:
    """Return a process and all that it has started, those that are still there."""
    found = [number]
    for each in found:
        try:
            for children in Path(f"/proc/{each}/task").glob("*/children"):
                found += map(int, children.read_text().split())
        except OSError:
            continue  # it has ended
    return found


def peak_memory(number: int) -> int:
    """Return the most memory that a process has had resident, in bytes."""
    try:
        status = Path(f"/proc/{number}/status").read_text()
    except OSError:
        return 0
    return sum(
        1024 * int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")
    )


def alive(number: int) -> bool:
    """Return whether a process of eamp runs; one that has ended and was not waited for does not.

    Another process may have been given the number of one that has ended.
    """
    try:
        if b"eamp" not in Path(f"/proc/{number}/cmdline").read_bytes():
            return False
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def kill(number: int) -> bool:
    """Kill a process, and return whether it was still there."""
    try:
        os.kill(number, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def outlived(numbers: Sequence[int], seconds: float) -> list[int]:
    """Return the processes that still run after so many seconds, and kill these."""
    end = time.monotonic() + seconds
    while (left := [number for number in numbers if alive(number)]) and time.monotonic() < end:
        time.sleep(0.05)
    return [number for number in left if kill(number)]
