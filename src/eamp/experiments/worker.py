"""A worker: takes jobs from a store and does them until nothing is left to do."""

from __future__ import annotations

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

LOOK_AGAIN = 2.0  # seconds between two looks at a queue in which nothing waits


def work(
    store: Store, run: Callable[[Claim], str], announce: Callable[[str], None] = lambda line: None
) -> int:
    """Do what waits, and stay until everything is settled: another worker may be lost and its job come back.

    Args:
        run: does a job, finishes its claim, and says what it found.
        announce: told what ``run`` says.

    Returns:
        How many jobs were done here.
    """
    done = 0
    while True:
        claim = store.claim()
        if claim is not None:
            with claim, beating(claim):
                announce(attempted(claim, run))
            done += 1
        elif not store.unsettled():
            store.recover()  # puts away what two workers queued again at the same moment
            return done
        elif not store.recover():
            time.sleep(LOOK_AGAIN)


def attempted(claim: Claim, run: Callable[[Claim], str]) -> str:
    """Run it; a job that cannot be done says so in the store. A store that cannot be reached is no fault of the job's."""
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
def beating(claim: Claim) -> Iterator[None]:
    """Tell other machines now and then that this worker lives."""
    done = threading.Event()

    def beat() -> None:
        while not done.wait(HEARTBEAT):
            with suppress(StorageInternalError):  # a database that is away for a moment
                claim.beat()

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def end_with_parent(parent: int) -> None:
    """End this process when the process ``parent``, which started it, is gone: nobody else would stop it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to act on

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
