"""A crew: worker processes that do the jobs of a store, watched until all are settled."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Collection

from tqdm import tqdm

from eamp.experiments.store import Job, Store, job_key, settled

GIVE_UP = 5  # workers that died one after the other without a job settled in between


class SweepError(RuntimeError):
    """Jobs that cannot go on."""


def settle(
    store: Store,
    jobs: Collection[Job],
    workers: int = 2,
    threads: int | None = None,
    retry_failed: bool = False,
    progress: bool = True,
) -> None:
    """Queue what of ``jobs`` is not there yet, and have workers do it. Called again after whatever stopped it, it goes on.

    Args:
        workers: processes on this machine. Others may join from elsewhere.
        threads: of each worker; the cores of this machine shared among them when left out.
        retry_failed: try once more what failed for a reason of its own.
    """
    store.recover()  # what was under way when everything was killed is gone on with first
    store.enqueue(jobs, retry_failed)
    remaining = len(jobs) - count_settled(store, jobs)
    if not remaining:
        return
    threads = threads or max(1, (os.cpu_count() or 1) // workers)
    crew = [Member(store, number, threads) for number in range(min(workers, remaining))]
    try:
        watch(crew, store, jobs, progress)
    finally:
        for member in crew:
            member.stop()
        store.recover()  # what they were at, if this was interrupted


def count_settled(store: Store, jobs: Collection[Job]) -> int:
    """How many of them are finished, or failed for good."""
    latest = store.latest()
    return sum((trial := latest.get(job_key(job))) is not None and settled(trial) for job in jobs)


def watch(crew: list[Member], store: Store, jobs: Collection[Job], progress: bool) -> None:
    """Until all workers have ended of themselves: show how far they are, and replace those that died."""
    before = count_settled(store, jobs)
    deaths = 0
    with tqdm(
        total=len(jobs), initial=before, disable=None if progress else True, smoothing=0
    ) as bar:
        while not all(member.finished() for member in crew):
            began = time.perf_counter()
            now = count_settled(store, jobs)
            time.sleep(
                min(max(0.2, 50 * (time.perf_counter() - began)), 5)
            )  # looking takes the workers' time: a fiftieth at most
            if now > before:
                bar.update(now - before)
                before, deaths = now, 0
            for member in crew:
                if member.died():
                    deaths += 1
                    if deaths >= GIVE_UP:
                        raise SweepError(
                            f"{deaths} workers died one after the other; the last said, in {member.log}:\n{member.last_words()}"
                        )
                    member.start()
        bar.update(count_settled(store, jobs) - before)


class Member:
    """One worker's place: a process, and another after it if it dies."""

    def __init__(self, store: Store, number: int, threads: int) -> None:
        self.log = store.folder / "logs" / f"worker_{number}.log"
        self.log.parent.mkdir(exist_ok=True)
        self.command = [
            sys.executable,
            "-m",
            "eamp",
            "work",
            "--output",
            str(store.folder),
            "--study",
            store.study.study_name,
        ]
        self.command += ["--with_parent", str(os.getpid())]
        # The store's address may hold a password, and everybody on a machine can read its command lines.
        self.environment = {
            **os.environ,
            "EAMP_STORAGE": store.url,
            "OMP_NUM_THREADS": str(threads),
            "MKL_NUM_THREADS": str(threads),
        }
        self.start()

    def start(self) -> None:
        """A new process."""
        with self.log.open("a", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self.environment,
            )

    def finished(self) -> bool:
        """Whether it found nothing left to do."""
        return self.process.poll() == 0

    def died(self) -> bool:
        """Whether it ended in another way."""
        return self.process.poll() not in (None, 0)

    def last_words(self) -> str:
        """The end of its log."""
        return "\n".join(self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-10:])

    def stop(self) -> None:
        """End it."""
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait()
