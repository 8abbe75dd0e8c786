"""Many workers on one queue of trivial jobs.

Run as a script: ``many_workers.py FOLDER PROCESSES JOBS [KILLS] [SEED] [STORAGE]``. The tests call
:func:`main` in a process of its own, because workers are forked, from a process without threads.

Each worker writes a line to ``witness.txt`` when it starts a job: the job's number and the number
of its own process. With KILLS, that many workers are killed at random moments and replaced;
``killed.txt`` has the numbers of their processes.
"""

import os
import random
import signal
import sys
import time
import traceback
from pathlib import Path

from eamp.experiments import database, worker
from eamp.experiments.store import Claim, Store


def main(
    folder: Path, processes: int, jobs: int, kills: int = 0, seed: int = 0, url: str | None = None
) -> int:
    # Seconds instead of minutes until a worker without a heartbeat counts as lost.
    database.HEARTBEAT, database.GRACE_PERIOD, worker.HEARTBEAT = 1, 8, 1
    Store(folder, "many", url).enqueue([{"number": number} for number in range(jobs)])
    chance = random.Random(seed)
    workers = {started(folder, url) for _ in range(processes)}
    killed: list[int] = []
    while len(killed) < kills:
        time.sleep(chance.uniform(0.05, 0.4))
        victim = chance.choice(sorted(workers))
        os.kill(victim, signal.SIGKILL)
        _, status = os.waitpid(victim, 0)
        workers.remove(victim)
        if not os.WIFSIGNALED(status):  # it had ended by itself: all jobs are done
            return max(os.waitstatus_to_exitcode(status), worst_exit(workers))
        killed.append(victim)
        (folder / "killed.txt").write_text("\n".join(map(str, killed)))
        workers.add(started(folder, url))
    return worst_exit(workers)


def worst_exit(workers: set[int]) -> int:
    """Wait for all workers, and return their highest exit status."""
    return max(
        (os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) for process in workers), default=0
    )


def started(folder: Path, url: str | None) -> int:
    """Fork a worker and return the number of its process."""
    if process := os.fork():
        return process
    try:
        witness = os.open(folder / "witness.txt", os.O_WRONLY | os.O_APPEND | os.O_CREAT)

        def run(claim: Claim) -> str:
            os.write(witness, f"{claim.job['number']} {os.getpid()}\n".encode())
            time.sleep(0.02)
            claim.finish(claim.job["number"], {})
            return ""

        worker.POLL_INTERVAL = 0.05
        worker.work(Store(folder, "many", url), run)
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


if __name__ == "__main__":
    given = sys.argv[1:]
    sys.exit(main(Path(given[0]), *map(int, given[1:5]), *given[5:]))
