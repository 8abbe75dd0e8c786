"""A worker: claims jobs from a store and runs them until nothing is left to do."""

import os
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from optuna.exceptions import StorageInternalError, UpdateFinishedTrialError

from eamp.experiments.database import HEARTBEAT
from eamp.experiments.store import Claim, Store

POLL_INTERVAL = 2.0  # seconds between two looks at a queue in which no job waits


def work(
    store: Store, run: Callable[[Claim], str], announce: Callable[[str], None] = lambda line: None
) -> int:
    """Run waiting jobs until all jobs are settled, and return how many were run here.

    ``run`` runs a job, finishes its claim, and returns a message, which ``announce`` is called
    with. The job of a lost worker may come back.
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
    """Run a job, and write its error to the store, unless the store itself cannot be reached."""
    try:
        return run(claim)
    except UpdateFinishedTrialError:
        return f"{claim.job} was thought lost and given to another worker"
    except StorageInternalError:
        raise
    except Exception as error:
        with suppress(UpdateFinishedTrialError):
            claim.fail(f"{type(error).__name__}: {error}")
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


def end_with_parent(parent: int) -> None:
    """End this process when the process ``parent``, which started it, has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
