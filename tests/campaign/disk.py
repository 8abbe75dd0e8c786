"""Faults of the disk: full, read-only, and files of which the end is missing.

A full disk is a small one in memory if this process may mount it, or else a limit on the size of
files. After every fault the same command must finish, with the results of an undisturbed run.
"""

import json
import random
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.campaign.processes import EAMP, Ended, Running, kill, outlived, run
from tests.campaign.stores import CELLS, Work, check, sweep, training, undisturbed
from tests.campaign.tally import Options, Tally

SIZE = 64 * 2**20  # bytes of the small disk


def disk(options: Options) -> Tally:
    """Try all faults of the disk, on a sweep and on a training."""
    tally, chance = Tally("disk"), random.Random(f"{options.seed}/disk")
    for work in (sweep(options.folder / "recipe.yaml"), training()):
        folder, calm = options.folder / work.name, undisturbed(work, options, tally)
        if calm is None:
            continue
        for number in range(2 if work.name == "sweep" else 1):
            full(work, folder / f"full {number}", calm, chance, tally)
        read_only(work, folder / "read-only", calm, tally)
        damaged_checkpoints(work, folder / "damaged", calm, chance, tally)
        if work.name == "sweep":
            damaged_tables(work, folder / "tables", calm, chance, tally)
    return tally


@contextmanager
def small_disk(folder: Path) -> Iterator[bool]:
    """Mount a small disk at a folder, and give whether that was possible."""
    folder.mkdir(parents=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(folder)]
    mounted = shutil.which("mount") and subprocess.run(command, capture_output=True).returncode == 0
    try:
        yield bool(mounted)
    finally:
        if mounted:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)


def refused(ended: Ended, work: Work, what: str, tally: Tally) -> None:
    """Note a fault unless a command has ended with an error in words."""
    tally.count("faults")
    if ended.status in (None, 0) or ended.status < 0 or "Traceback" in ended.err:
        tally.fault(f"{work.name}, {what}: ended with {ended.last_words}")


def finishes(work: Work, folder: Path, calm: Path, what: str, tally: Tally) -> None:
    """Run a command after a fault: it must finish, with the results of an undisturbed run."""
    ended = run(work.command(folder), folder.with_name(f"{folder.name} output"))
    if ended.status != 0:
        tally.fault(f"{work.name}, after {what}: ended with {ended.last_words}")
    else:
        check(work, folder, calm, tally)


def full(work: Work, place: Path, calm: Path, chance: random.Random, tally: Tally) -> None:
    """Run on a disk that is too small, and again when there is room."""
    needed = sum(file.stat().st_size for file in calm.rglob("*"))
    room = int(needed * chance.uniform(0.3, 0.9))
    with small_disk(place) as mounted:
        disturbed, ballast, limits = place / "out", place / "ballast", {}
        what = f"a disk with room for {room // 1024} kB"
        if mounted:
            ballast.write_bytes(bytes(SIZE - room))
        else:
            what = f"files of at most {room // 8 // 1024} kB"
            limits = {"RLIMIT_FSIZE": room // 8}
        output = place.with_name(f"{place.name} output")
        ended = run(work.command(disturbed), output, limits=limits)
        tally.say(f"{work.name}, {what}: {ended.last_words}")
        if ended.status != 0:  # it may just have fitted
            refused(ended, work, what, tally)
        ballast.unlink(missing_ok=True)
        finishes(work, disturbed, calm, what, tally)


def read_only(work: Work, place: Path, calm: Path, tally: Tally) -> None:
    """Run into a folder that cannot be written to, and again when it can."""
    with small_disk(place) as mounted:
        if not mounted:
            tally.notes.append("no read-only disk: this process may not mount one")
            return

        def mount(how: str) -> None:
            subprocess.run(["mount", "-o", f"remount,{how}", str(place)], check=True)

        mount("ro")
        ended = run(work.command(place / "out"), place.with_name("read-only output"))
        tally.say(f"{work.name}, read-only: {ended.last_words}")
        refused(ended, work, "read-only folder", tally)
        mount("rw")
        finishes(work, place / "out", calm, "a read-only folder", tally)


def damaged_checkpoints(
    work: Work, folder: Path, calm: Path, chance: random.Random, tally: Tally
) -> None:
    """Kill everything, cut off the ends of all checkpoints, and go on."""
    running = Running(work.command(folder), folder.with_name("damaged output"))
    while not list(folder.rglob("*.safetensors")):
        if running.wait(0.05):
            tally.fault(f"{work.name}: wrote no checkpoint, {running.ended().last_words}")
            return
    workers = running.children()
    running.kill()
    for worker in workers:
        kill(worker)
    outlived(workers, 5)
    files = list(folder.rglob("*.safetensors"))
    for file in files:
        content = file.read_bytes()
        file.write_bytes(content[: chance.choice([0, chance.randrange(len(content))])])
    tally.count("faults")
    tally.count("damaged checkpoints", len(files))
    finishes(work, folder, calm, "checkpoints without their ends", tally)


def damaged_tables(
    work: Work, folder: Path, calm: Path, chance: random.Random, tally: Tally
) -> None:
    """Cut off the ends of tables: a sweep writes them again, and a report must not hide it."""
    shutil.copytree(calm, folder)
    (folder / "run.json").write_text(json.dumps({"command": "campaign"}), encoding="utf-8")
    table = folder / "cells.csv"
    whole = table.read_text(encoding="utf-8")
    # In the middle of a row, and not at its end.
    table.write_text(whole[: whole.rindex("gcn") - chance.randrange(2, 8)], encoding="utf-8")
    ended = run([*EAMP, "report", str(folder)], folder.with_name("report output"))
    tally.say(f"a report of a cut table: {ended.last_words}")
    tally.count("faults")
    if "Traceback" in ended.err or (ended.status == 0 and "cells.csv" not in ended.err + ended.out):
        tally.fault(f"a report of a cut table: {ended.last_words}")
    ended = run(work.command(folder), folder.with_name("tables output"))
    rows = table.read_text(encoding="utf-8").splitlines()
    if ended.status != 0 or len(rows) != CELLS + 1 or table.read_text(encoding="utf-8") != whole:
        tally.fault(f"a sweep does not write a cut table again: {ended.last_words}")
