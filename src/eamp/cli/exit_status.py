"""Exit statuses of commands that fail or are interrupted."""

import functools
import sys
from collections.abc import Callable

from jsonargparse import Namespace


def fail(message: object) -> int:
    """Print what went wrong to standard error, and return the exit status."""
    print(f"eamp: {message}", file=sys.stderr)
    return 2


def resumable(command: Callable[[Namespace], int]) -> Callable[[Namespace], int]:
    """Make a command say how to continue when it is interrupted or loses its store or workers."""

    @functools.wraps(command)
    def run(options: Namespace) -> int:
        try:
            return command(options)
        except KeyboardInterrupt:
            fail("interrupted; the same command continues from here.")
            return 130  # the status that shells give to Ctrl-C
        except Exception as error:
            # heavy: the command has imported them by now
            from optuna.exceptions import StorageInternalError

            from eamp.experiments.faults import ADVICE, EnvironmentFault, advice
            from eamp.experiments.worker_pool import FAULT_STATUS, SweepError

            if isinstance(error, SweepError):
                return fail(error)
            if isinstance(error, EnvironmentFault):
                fail(error)
                return FAULT_STATUS
            if isinstance(error, OSError) and error.errno in ADVICE:
                return fail(
                    f"{error}: {advice(error)}, and run the same command again. What has been "
                    "trained is safe."
                )
            if isinstance(error, StorageInternalError):  # Optuna wraps the database's error in it
                lost = str(error.__cause__ or error).strip().splitlines()[0]
                return fail(
                    f"the store was lost: {lost}. What has been trained is safe; run the same "
                    "command again when the store is back."
                )
            raise

    return run
