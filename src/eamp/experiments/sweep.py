"""A sweep: fill the queue from a recipe, start workers, and watch until every cell is done."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from tqdm import tqdm

from eamp.experiments.cell import Cell
from eamp.experiments.store import Store

GIVE_UP = 5  # workers that died one after the other without a cell finished in between


class SweepError(RuntimeError):
    """A sweep that cannot go on."""


def sweep(
    cells: Sequence[Cell], store: Store, workers: int = 2, threads: int | None = None, retry_failed: bool = False, progress: bool = True
) -> pd.DataFrame:
    """Run what of ``cells`` is not finished yet, and return the table of all that are.

    It can be interrupted or killed at any moment; called again, it goes on.

    Args:
        workers: processes on this machine. Others may join from elsewhere.
        threads: of each worker; the cores of this machine shared among them when left out.
        retry_failed: try once more what failed for a reason of its own.
    """
    for key in {(cell.data, cell.normalize_features): cell for cell in cells}.values():
        key.build()  # data that cannot be had and options a model does not know are better found out here than by every worker
    store.recover()
    store.enqueue(cells, retry_failed)
    remaining = len(cells) - len(store.table(cells))
    if remaining:
        threads = threads or max(1, (os.cpu_count() or 1) // workers)
        crew = [Crew(store, number, threads) for number in range(min(workers, remaining))]
        try:
            watch(crew, store, cells, progress)
        finally:
            for member in crew:
                member.stop()
    return store.table(cells)


def watch(crew: list[Crew], store: Store, cells: Sequence[Cell], progress: bool) -> None:
    """Until all workers have ended of themselves: show what is finished, and replace those that died."""
    finished = len(store.table(cells))
    deaths = 0
    with tqdm(total=len(cells), initial=finished, unit="cell", disable=None if progress else True, smoothing=0) as bar:
        while not all(member.finished() for member in crew):
            time.sleep(0.5)
            if (now := len(store.table(cells))) > finished:
                bar.update(now - finished)
                finished, deaths = now, 0
            for member in crew:
                if member.died():
                    deaths += 1
                    if deaths >= GIVE_UP:
                        raise SweepError(
                            f"{deaths} workers died one after the other; the last said, in {member.log}:\n{member.last_words()}"
                        )
                    member.start()
        bar.update(len(store.table(cells)) - finished)


class Crew:
    """One worker's place: a process, and another after it if it dies."""

    def __init__(self, store: Store, number: int, threads: int) -> None:
        self.log = store.folder / "logs" / f"worker_{number}.log"
        self.log.parent.mkdir(exist_ok=True)
        self.command = [sys.executable, "-m", "eamp", "work", "--output", str(store.folder), "--study", store.study.study_name]
        self.command += ["--storage", store.url, "--with_parent", "true"]
        self.environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
        self.start()

    def start(self) -> None:
        """A new process."""
        with self.log.open("a", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=self.environment
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
        """End it; what it was at goes back into the queue when a worker looks next."""
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait()


def layer_energies(table: pd.DataFrame) -> pd.DataFrame:
    """A row per layer of every network in a sweep's table: its energy after the last epoch, and at the selected one."""
    columns = ["name", "data", "depth", "seed"]
    rows = [
        {**{column: row[column] for column in columns}, "layer": layer, "energy": last, "selected_energy": selected}
        for row in table.to_dict("records")
        for layer, (last, selected) in enumerate(zip(row["final_energy"], row["energy"], strict=True), start=1)
    ]
    return pd.DataFrame(rows, columns=[*columns, "layer", "energy", "selected_energy"])


def save(table: pd.DataFrame, folder: Path) -> None:
    """``cells.csv``, a row per network, and ``layer_energies.csv``."""
    table.drop(columns=["energy", "final_energy"], errors="ignore").to_csv(folder / "cells.csv", index=False)
    layer_energies(table).to_csv(folder / "layer_energies.csv", index=False)
