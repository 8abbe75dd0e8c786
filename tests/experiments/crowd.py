"""Many workers on one queue of trivial jobs: ``crowd.py FOLDER PROCESSES JOBS [KILLS] [SEED] [STORAGE]``, run as a script.

Every start of a job is a line of ``witness.txt``, written by the worker itself: its number and its process. With KILLS, so many
workers are killed at random moments and replaced; ``killed.txt`` has their processes. It is a script so that workers can be forked
from a process that has no threads.
"""

import os
import random
import signal
import sys
import time
import traceback
from pathlib import Path

from eamp.experiments import database as storage
from eamp.experiments import worker
from eamp.experiments.store import Claim, Store


def main(
    folder: Path, processes: int, jobs: int, kills: int = 0, seed: int = 0, url: str | None = None
) -> int:
    storage.HEARTBEAT, storage.GRACE, worker.HEARTBEAT = (
        1,
        8,
        1,
    )  # where heartbeats tell, silent workers are not waited for for minutes
    Store(folder, "crowd", url).enqueue([{"number": number} for number in range(jobs)])
    chance = random.Random(seed)
    crew = {started(folder, url) for _ in range(processes)}
    killed: list[int] = []
    while len(killed) < kills:
        time.sleep(chance.uniform(0.05, 0.4))
        victim = chance.choice(sorted(crew))
        os.kill(victim, signal.SIGKILL)
        _, status = os.waitpid(victim, 0)
        crew.remove(victim)
        if not os.WIFSIGNALED(status):  # it had ended of itself: everything is done
            return max(
                map(
                    os.waitstatus_to_exitcode,
                    [status, *(os.waitpid(process, 0)[1] for process in crew)],
                )
            )
        killed.append(victim)
        (folder / "killed.txt").write_text("\n".join(map(str, killed)))
        crew.add(started(folder, url))
    return max(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) for process in crew)


def started(folder: Path, url: str | None) -> int:
    """A new worker's process."""
    if process := os.fork():
        return process
    try:
        witness = os.open(folder / "witness.txt", os.O_WRONLY | os.O_APPEND | os.O_CREAT)

        def run(claim: Claim) -> str:
            os.write(witness, f"{claim.job['number']} {os.getpid()}\n".encode())
            time.sleep(0.02)
            claim.finish(claim.job["number"], {})
            return ""

        worker.LOOK_AGAIN = 0.05
        worker.work(Store(folder, "crowd", url), run)
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


if __name__ == "__main__":
    given = sys.argv[1:]
    sys.exit(main(Path(given[0]), *map(int, given[1:5]), *given[5:]))
