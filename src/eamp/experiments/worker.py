"""A worker: claims jobs from a store and runs them until nothing is left to do."""

import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from eamp.experiments.database import HEARTBEAT
from eamp.experiments.faults import EnvironmentFault, advice, is_of_environment
from eamp.experiments.store import Claim, Store
from eamp.optional import extra

with extra("experiments"):
    from optuna.exceptions import StorageInternalError, UpdateFinishedTrialError
    from sqlalchemy.exc import DBAPIError

POLL_INTERVAL = 2.0  # seconds between two looks at a queue in which no job waits


def work(
    store: Store, run: Callable[[Claim], str], announce: Callable[[str], None] = lambda line: None
) -> int:
    """Run waiting jobs until all jobs are settled, and return how many were run here.

    ``run`` runs a job, finishes its claim, and returns a message, which ``announce`` is called
    with. The job of a lost worker may come back. An EnvironmentFault ends the worker, since the
    next job would likely meet it, too; what has been trained is in the store.
    """
    done = 0
    while True:
        claim = store.claim()
        if claim is not None:
            with claim, heartbeats(claim):
                announce(attempt(claim, run))
            done += 1
        elif not store.unsettled():
            store.recover()  # marks jobs that two workers queued again at the same moment
            return done
        elif not store.recover():
            time.sleep(POLL_INTERVAL)


def attempt(claim: Claim, run: Callable[[Claim], str]) -> str:
    """Run a job, and write an error of the job itself to the store.

    Raises:
        EnvironmentFault: if the environment has ended the job, which then waits in the queue again.
        StorageInternalError: if the store itself cannot be reached.
    """
    try:
        return run(claim)
    except UpdateFinishedTrialError:
        return f"{claim.job} was thought lost and given to another worker"
    except (StorageInternalError, DBAPIError):
        raise
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        with suppress(UpdateFinishedTrialError):
            if is_of_environment(error):
                reason += f": {advice(error)}, and run the same command again."
                claim.give_back(reason)
                raise EnvironmentFault(reason) from error
            claim.fail(reason)
        return f"{claim.job} failed\n{traceback.format_exc()}"


@contextmanager
def heartbeats(claim: Claim) -> Iterator[None]:
    """Write heartbeats from a thread while the block runs."""
    done = threading.Event()

    def beat() -> None:
        while not done.wait(HEARTBEAT):
            with suppress(StorageInternalError):  # the database may be unreachable for a moment
                claim.beat()

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
