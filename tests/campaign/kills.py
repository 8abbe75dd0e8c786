"""SIGKILL at random moments, to workers and parents of sweeps, searches and trainings.

Each is resumed until it has finished. Then every cell must be there once, with the result of an
undisturbed run, bit for bit.
"""

import random
import time
from pathlib import Path

from tests.campaign.processes import Running, kill, outlived
from tests.campaign.stores import Work, check, search, sweep, training, undisturbed
from tests.campaign.tally import Options, Tally

PARENT = 0.2  # share of the kills that hit the parent
END = 15.0  # seconds in which the workers of a killed parent must end
SHARES = {"sweep": 0.7, "tune": 0.2, "train": 0.1}  # of the kills
GAVE_UP = "workers died one after the other"  # after five kills in a row; a resumed sweep goes on


def kills(options: Options) -> Tally:
    """Kill so many processes, and compare all results with those of undisturbed runs."""
    tally, chance = Tally("kills"), random.Random(f"{options.seed}/kills")
    for name in ("kills", "lost", "doubled", "changed"):
        tally.counts[name] = 0
    works = [sweep(options.folder / "recipe.yaml"), search(), training()]
    for work in works:
        wanted = round(SHARES[work.name] * options.kills)
        calm = undisturbed(work, options, tally) if wanted else None
        if calm is not None:
            storm(work, wanted, chance, calm, options.folder / work.name, tally)
    return tally


def storm(
    work: Work, wanted: int, chance: random.Random, calm: Path, folder: Path, tally: Tally
) -> None:
    """Kill so many processes of one kind of work, in as many folders as that takes."""
    goal, number = tally.counts["kills"] + wanted, 0
    while tally.counts["kills"] < goal:
        number += 1
        disturbed = folder / f"disturbed {number}"
        if not resumed_until_finished(work, disturbed, goal, chance, tally):
            return
        check(work, disturbed, calm, tally)
        tally.say(f"{work.name}: {tally.counts['kills']} kills, {tally.counts['cells']} cells")


def resumed_until_finished(
    work: Work, folder: Path, goal: int, chance: random.Random, tally: Tally
) -> bool:
    """Start a command again and again until it has finished; return whether it has."""
    while True:
        running = Running(work.command(folder), folder.with_name(f"{folder.name} output"))
        workers: list[int] = []
        while tally.counts["kills"] < goal and not ends_before_the_moment(
            work, running, folder, chance
        ):
            workers = running.children()
            tally.count("kills")
            if not workers or chance.random() < PARENT:
                tally.count("parents killed")
                running.kill()
                break
            kill(chance.choice(workers))
        ended = running.ended()
        if late := outlived(workers, END):
            tally.fault(f"{work.name}: {len(late)} workers outlived their parent by {END:.0f} s")
        if ended.status == 0:
            return True
        if ended.status == 2 and GAVE_UP in ended.err:
            tally.count("sweeps that gave up and were resumed")
        elif ended.status != -9:
            tally.fault(f"{work.name} in {folder} ended with {ended.last_words}")
            return False


def ends_before_the_moment(
    work: Work, running: Running, folder: Path, chance: random.Random
) -> bool:
    """Wait for a random moment, mostly one at which a worker trains."""
    if chance.random() < 0.3:
        return running.wait(chance.uniform(0.2, 6))
    end = time.monotonic() + 120
    while time.monotonic() < end and not work.busy(folder, running.children()):
        if running.wait(0.2):
            return True
    return running.wait(chance.uniform(0, 1.5))
