"""A pool of worker processes that run the jobs of a store until all are settled."""

import os
import subprocess
import sys
import time
from collections.abc import Collection

from eamp.experiments.progress import Lines, plan, progress, progress_bar, say, show
from eamp.experiments.schema import Job, job_key
from eamp.experiments.store import Store, settled
from eamp.files import check_writable

FAULT_STATUS = 75  # of a worker whose job was ended by the environment; EX_TEMPFAIL of sysexits.h
MAX_DEATHS = 5  # workers that may die one after the other without a job settled in between


class SweepError(RuntimeError):
    """Workers ended one after the other, so that the jobs cannot be run."""


def run_jobs(
    store: Store, jobs: Collection[Job], workers: int = 2, retry_failed: bool = False
) -> None:
    """Queue the jobs that are not in the store yet, and run workers until all are settled.

    Called again after an interruption, it continues. The ``workers`` share the cores of this
    machine, and those of other machines may join. With ``retry_failed``, jobs that have failed for
    good are tried once more.

    Raises:
        SweepError: if workers die, or the environment ends their jobs, one after the other.
    """
    if workers < 1:
        raise ValueError(f"workers must be at least 1, but is {workers}.")
    store.recover()  # jobs that were running when everything was killed come first
    store.enqueue(jobs, retry_failed)
    remaining = len(jobs) - count_settled(store, jobs)
    if not remaining:
        return
    say(plan(store, jobs, remaining, min(workers, remaining)))
    threads = max(1, (os.cpu_count() or 1) // workers)
    pool = [WorkerProcess(store, number, threads) for number in range(min(workers, remaining))]
    try:
        watch(pool, store, jobs)
    finally:
        for worker in pool:
            worker.stop()
        store.recover()  # queues the jobs that they were running, after an interruption
        store.remove_old_locks()


def count_settled(store: Store, jobs: Collection[Job]) -> int:
    """Return how many of the jobs have finished or have failed for good."""
    latest = store.latest()
    return sum((trial := latest.get(job_key(job))) is not None and settled(trial) for job in jobs)


def watch(pool: list["WorkerProcess"], store: Store, jobs: Collection[Job]) -> None:
    """Show the progress and replace workers that die, until all have ended with status 0."""
    before, deaths = count_settled(store, jobs), 0
    lines = Lines(len(jobs), before)
    with progress_bar(len(jobs), before) as bar:
        while any(worker.process.poll() != 0 for worker in pool):
            began = time.perf_counter()
            found = progress(store, jobs)
            show(bar, lines, found)
            # Counting takes time from the workers: at most a fiftieth of it.
            time.sleep(min(max(0.2, 50 * (time.perf_counter() - began)), 5))
            if found.settled > before:
                before, deaths = found.settled, 0
            for worker in pool:
                if worker.process.poll() in (None, 0):
                    continue
                deaths += 1
                if deaths >= MAX_DEATHS:
                    raise SweepError(explained(worker, store, deaths))
                worker.start()
        show(bar, lines, progress(store, jobs))


def explained(worker: "WorkerProcess", store: Store, deaths: int) -> str:
    """Return why workers end one after the other, as far as can be found out."""
    said = worker.log.read_text(encoding="utf-8", errors="replace").splitlines()
    reason = ""
    if worker.process.returncode == FAULT_STATUS:
        reason = said[-1].removeprefix("eamp: ") if said else "a fault of this machine"
    try:
        check_writable(store.folder)
    except OSError as error:  # a full disk keeps no log
        reason = str(error)
    if reason:
        return (
            f"{deaths} workers were stopped by this machine, not by their jobs: {reason} What has "
            "been trained is safe, and the same command continues."
        )
    return (
        f"{deaths} workers died one after the other; the log of the last, {worker.log}, ends "
        "with:\n" + "\n".join(said[-10:])
    )


class WorkerProcess:
    """A process that runs ``eamp work``; it ends with status 0 once all jobs are settled."""

    def __init__(self, store: Store, number: int, threads: int) -> None:
        self.log = store.folder / "logs" / f"worker_{number}.log"
        self.log.parent.mkdir(exist_ok=True)
        self.command = [sys.executable, "-m", "eamp", "work", f"--output={store.folder}"]
        self.command += [f"--study={store.study.study_name}", f"--with_parent={os.getpid()}"]
        # The address may hold a password, and every user of a machine can read command lines.
        # A user who limits the threads shares the machine with other work: more would spin in vain.
        # Torch takes the larger of the two limits.
        most = os.environ.get("OMP_NUM_THREADS", str(threads))
        limits = {"OMP_NUM_THREADS": most, "MKL_NUM_THREADS": most}
        self.environment = {**limits, **os.environ, "EAMP_STORAGE": store.url}
        self.start()

    def start(self) -> None:
        """Start a new process, whose output is added to the log."""
        with self.log.open("a", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self.environment,
            )

    def stop(self) -> None:
        """End the process and wait for it."""
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait()
