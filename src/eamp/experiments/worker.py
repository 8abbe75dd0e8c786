"""A worker: takes cells from a store and trains them until nothing is left to do."""

from __future__ import annotations

import json
import os
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from eamp.experiments.storage import HEARTBEAT
from eamp.experiments.store import Claim, Store
from eamp.training import PROTOCOLS, Epoch, Result, selected

CHECKPOINT_EVERY = 10  # epochs
REPORT_EVERY = 10
PATIENCE = 2.0  # seconds between two looks at an empty queue


def work(store: Store, wait: bool = True, announce: Callable[[str], None] = lambda line: None) -> int:
    """Run waiting cells; the value is how many were run.

    With ``wait``, stay as long as other workers run cells: one of them may be lost and its cell come back.
    """
    done = 0
    while True:
        still_running = store.recover()
        claim = store.claim()
        if claim is not None:
            with claim, beating(claim):
                run(store, claim, announce)
            done += 1
        elif still_running and wait:
            time.sleep(PATIENCE)
        else:
            return done


def run(store: Store, claim: Claim, announce: Callable[[str], None]) -> None:
    """Train a claimed cell, going on from what an earlier worker reached."""
    cell, checkpoint, start = claim.cell, store.checkpoint(claim.cell), time.perf_counter()

    def on_epoch(epoch: int, row: Epoch) -> None:
        if (epoch + 1) % REPORT_EVERY == 0:
            claim.report(row.val_accuracy, epoch + 1)

    try:
        result = cell.train(checkpoint, CHECKPOINT_EVERY, on_epoch=on_epoch)
    except Exception as error:
        claim.fail(f"{type(error).__name__}: {error}")
        announce(f"{cell.data} {cell.name} depth {cell.depth} seed {cell.seed} failed\n{traceback.format_exc()}")
        return
    attach_curves(claim, result)
    claim.finish(result.val_accuracy, {**readings(result), "seconds": time.perf_counter() - start, "threads": torch.get_num_threads()})
    checkpoint.unlink(missing_ok=True)
    announce(f"{cell.data} {cell.name} depth {cell.depth} seed {cell.seed}: best validation accuracy {result.best_val_accuracy:.3f}")


def readings(result: Result) -> dict[str, Any]:
    """A run read under both protocols: the paper's number, and test accuracy at the epoch of lowest validation loss."""
    lowest = selected(result.history, PROTOCOLS["standard"])
    return {
        "best_val_accuracy": result.best_val_accuracy,
        "test_accuracy": result.history[lowest].test_accuracy,
        "val_loss": result.history[lowest].val_loss,
        "epochs": len(result.history),
        "energy": result.energy,
        "final_energy": result.final_energy,
    }


def attach_curves(claim: Claim, result: Result) -> None:
    """Keep every epoch and the energy after every layer with the trial, as a JSON file."""
    content = {
        "epochs": [row._asdict() for row in result.history],
        "selected": result.epoch,
        "energy": result.energy,
        "final_energy": result.final_energy,
    }
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "curves.json"
        file.write_text(json.dumps(content), encoding="utf-8")
        claim.attach(file)


@contextmanager
def beating(claim: Claim) -> Iterator[None]:
    """Tell other machines now and then that this worker lives."""
    done = threading.Event()

    def beat() -> None:
        while not done.wait(HEARTBEAT):
            claim.beat()

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def end_with_parent() -> None:
    """End this process at once when the one that started it is gone: nobody else would stop it."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
