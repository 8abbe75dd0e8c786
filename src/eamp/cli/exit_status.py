"""Exit statuses of commands that fail or are interrupted, and the line that says why."""

import functools
import os
import re
import sys
from collections.abc import Callable

from jsonargparse import Namespace

from eamp.files import MISTAKES, WAYS_OUT
from eamp.optional import MissingPackageError, extra

FAILED = 2
INTERRUPTED = 130  # the status that shells give to Ctrl-C
PIPE_CLOSED = 141  # the status that shells give to a program whose reader has gone


def fail(error: object) -> int:
    """Print what went wrong to standard error, in one line, and return the exit status."""
    message = str(error)
    if isinstance(error, OSError) and error.strerror is not None:
        place = f"{error.filename}: " if error.filename is not None else ""
        way_out = f"; {WAYS_OUT[error.errno]}" if error.errno in WAYS_OUT else ""
        way_out += ", and run the command again" if is_fault(error) else ""
        message = f"{place}{error.strerror}{way_out}."
    elif isinstance(error, MemoryError):
        message = "not enough memory; try a smaller graph, --width or --depth."
    elif isinstance(error, RecursionError):
        message = "an option or a file is nested too deeply; write it with fewer brackets."
    print("eamp: " + re.sub(r"\s*\n\s*", " ", message.strip()), file=sys.stderr)
    return FAILED


def is_fault(error: OSError) -> bool:
    """Return whether an error is a fault of the machine that the user can mend."""
    return error.errno in WAYS_OUT and error.errno not in MISTAKES


def told(run: Callable[[], int]) -> int:
    """Run a command and return its exit status; tell its mistakes in a line, not in a traceback."""
    try:
        try:
            return run()
        finally:
            if sys.stdout is not None:  # it is None if the caller has closed it
                sys.stdout.flush()  # a closed pipe is found here rather than when Python ends
    except BrokenPipeError:  # as in `eamp data list | head -1`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    except KeyboardInterrupt:
        fail("interrupted.")
        return INTERRUPTED
    except (ValueError, OSError, MemoryError, RecursionError, MissingPackageError) as error:
        return fail(error)


def resumable(command: Callable[[Namespace], int]) -> Callable[[Namespace], int]:
    """Make a command say how to continue when it is interrupted or loses its store or workers."""

    @functools.wraps(command)
    def run(options: Namespace) -> int:
        try:
            return command(options)
        except KeyboardInterrupt:
            fail("interrupted; the same command continues from here.")
            return INTERRUPTED
        except (MissingPackageError, ValueError):  # a mistake of the user, told at once
            raise
        except Exception as error:
            # heavy: the command has imported them by now
            with extra("experiments"):
                from optuna.exceptions import StorageInternalError

            from eamp.experiments.faults import EnvironmentFault
            from eamp.experiments.worker_pool import FAULT_STATUS, SweepError

            if isinstance(error, SweepError):
                return fail(error)
            if isinstance(error, EnvironmentFault):
                fail(error)
                return FAULT_STATUS
            if isinstance(error, OSError) and is_fault(error):
                return fail(
                    f"{error}: {WAYS_OUT[error.errno or 0]}, and run the same command again. What "
                    "has been trained is safe."
                )
            if isinstance(error, StorageInternalError):  # Optuna wraps the database's error in it
                lost = str(error.__cause__ or error).strip().splitlines()[0]
                return fail(
                    f"the store was lost: {lost}. What has been trained is safe; run the same "
                    "command again when the store is back."
                )
            raise

    return run
