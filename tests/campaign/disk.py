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
from tests.campaign.stores import CELLS, Work, check, sweep, training
from tests.campaign.tally import Options, Tally

SIZE = 64 * 2**20  # bytes of the small disk


def disk(options: Options) -> Tally:
    """Try all faults of the disk, on a sweep and on a training."""
    tally, chance = Tally("disk"), random.Random(f"{options.seed}/disk")
    for work in (sweep(options.folder / "recipe.yaml"), training()):
        folder = options.folder / work.name
        calm = folder / "undisturbed"
        ended = run(work.command(calm), folder / "output")
        undisturbed = dict(work.results(calm))
        if ended.status != 0 or not undisturbed:
            tally.fault(f"{work.name}: an undisturbed run ended with {ended.last_words}")
            continue
        full(work, folder, undisturbed, chance, tally)
        read_only(work, folder, undisturbed, tally)
        damaged_checkpoints(work, folder, undisturbed, chance, tally)
        if work.name == "sweep":
            damaged_tables(work, folder, chance, tally)
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


def finishes(
    work: Work, folder: Path, undisturbed: dict[str, str], what: str, tally: Tally
) -> None:
    """Run a command after a fault: it must finish, with the results of an undisturbed run."""
    ended = run(work.command(folder), folder.with_name(f"{folder.name} output"))
    if ended.status != 0:
        tally.fault(f"{work.name}, after {what}: ended with {ended.last_words}")
    else:
        check(work, folder, undisturbed, tally)


def full(
    work: Work, folder: Path, undisturbed: dict[str, str], chance: random.Random, tally: Tally
) -> None:
    """Run on a disk that is too small, and again when there is room."""
    needed = sum(file.stat().st_size for file in (folder / "undisturbed").rglob("*"))
    for number in range(2):
        room = int(needed * chance.uniform(0.3, 0.9))
        place = folder / f"full {number}"
        with small_disk(place) as mounted:
            disturbed, ballast = place / "out", place / "ballast"
            what = f"a disk with room for {room // 1024} kB"
            limits = {}
            if mounted:
                with ballast.open("wb") as file:
                    for _ in range((SIZE - room) // 4096):
                        file.write(bytes(4096))
            else:
                what = f"files of at most {room // 8 // 1024} kB"
                limits = {"RLIMIT_FSIZE": room // 8}
            ended = run(work.command(disturbed), folder / "full output", limits=limits)
            tally.say(f"{work.name}, {what}: {ended.last_words}")
            if ended.status != 0:  # it may just have fitted
                refused(ended, work, what, tally)
            ballast.unlink(missing_ok=True)
            finishes(work, disturbed, undisturbed, what, tally)


def read_only(work: Work, folder: Path, undisturbed: dict[str, str], tally: Tally) -> None:
    """Run into a folder that cannot be written to, and again when it can."""
    place = folder / "read-only"
    with small_disk(place) as mounted:
        if not mounted:
            tally.notes.append("no read-only disk: this process may not mount one")
            return

        def mount(how: str) -> None:
            subprocess.run(["mount", "-o", f"remount,{how}", str(place)], check=True)

        mount("ro")
        ended = run(work.command(place / "out"), folder / "read-only output")
        tally.say(f"{work.name}, read-only: {ended.last_words}")
        refused(ended, work, "read-only folder", tally)
        mount("rw")
        finishes(work, place / "out", undisturbed, "a read-only folder", tally)


def damaged_checkpoints(
    work: Work, folder: Path, undisturbed: dict[str, str], chance: random.Random, tally: Tally
) -> None:
    """Kill everything, cut off the ends of all checkpoints, and go on."""
    for number in range(2):
        disturbed = folder / f"damaged {number}"
        running = Running(work.command(disturbed), folder / "damaged output")
        while not (files := list(disturbed.rglob("*.safetensors"))):
            if running.wait(0.05):
                tally.fault(f"{work.name}: wrote no checkpoint, {running.ended().last_words}")
                return
        workers = running.children()
        running.kill()
        for worker in workers:
            kill(worker)
        outlived(workers, 5)
        files = list(disturbed.rglob("*.safetensors"))
        for file in files:
            content = file.read_bytes()
            kept = content[: chance.randrange(len(content))] if number else b""
            file.write_bytes(kept)
        tally.count("faults")
        tally.count("damaged checkpoints", len(files))
        finishes(work, disturbed, undisturbed, "checkpoints without their ends", tally)


def damaged_tables(work: Work, folder: Path, chance: random.Random, tally: Tally) -> None:
    """Cut off the ends of tables: a sweep writes them again, and a report must not hide it."""
    disturbed = folder / "tables"
    shutil.copytree(folder / "undisturbed", disturbed)
    (disturbed / "run.json").write_text(json.dumps({"command": "campaign"}), encoding="utf-8")
    table = disturbed / "cells.csv"
    whole = table.read_text(encoding="utf-8")
    # In the middle of a row, and not at its end.
    table.write_text(whole[: whole.rindex("gcn") - chance.randrange(2, 8)], encoding="utf-8")
    ended = run([*EAMP, "report", str(disturbed)], folder / "report output")
    tally.say(f"a report of a cut table: {ended.last_words}")
    tally.count("faults")
    if "Traceback" in ended.err or (ended.status == 0 and "cells.csv" not in ended.err + ended.out):
        tally.fault(f"a report of a cut table: {ended.last_words}")
    ended = run(work.command(disturbed), folder / "tables output")
    rows = table.read_text(encoding="utf-8").splitlines()
    if ended.status != 0 or len(rows) != CELLS + 1 or table.read_text(encoding="utf-8") != whole:
        tally.fault(f"a sweep does not write a cut table again: {ended.last_words}")
