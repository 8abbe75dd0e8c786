"""Killed processes of ``torchrun`` that share one graph.

A training on two processes is resumed until it has finished. Its result must be that of an
undisturbed one on two processes, bit for bit.
"""

import json
import random
import sys
import time
from pathlib import Path

from tests.campaign.processes import Running, kill, outlived
from tests.campaign.stores import SMALL, Work, check, trained, undisturbed
from tests.campaign.tally import Options, Tally

EPOCHS = 600


def partitioned() -> Work:
    """Return a training on two processes."""
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    launcher += ["--nproc_per_node", "2", "-m", "eamp", "train", "--partition", "metis"]
    options = ["--data", SMALL, "--depth", "4", "--width", "8", "--model", "entropic-gcn"]
    options += ["--protocol", "paper", "--changes", json.dumps({"epochs": EPOCHS})]
    options += ["--timeout", "60"]

    def command(folder: Path) -> list[str]:
        return [*launcher, *options, "--output", str(folder)]

    def busy(folder: Path, processes: list[int]) -> bool:
        return any(folder.glob("*.safetensors"))

    return Work("torchrun", command, trained, busy)


def ranks(options: Options) -> Tally:
    """Kill so many processes of partitioned trainings."""
    tally, chance = Tally("ranks"), random.Random(f"{options.seed}/ranks")
    tally.counts |= dict.fromkeys(("killed ranks", "lost", "doubled", "changed"), 0)
    work = partitioned()
    if (calm := undisturbed(work, options, tally)) is None:
        return tally
    number = 0
    while tally.counts["killed ranks"] < options.ranks:
        number += 1
        folder = options.folder / f"disturbed {number}"
        if not resumed_until_finished(work, folder, options.ranks, chance, tally):
            break
        check(work, folder, calm, tally)
        tally.say(f"{tally.counts['killed ranks']} killed, {number} trainings finished")
    return tally


def resumed_until_finished(
    work: Work, folder: Path, goal: int, chance: random.Random, tally: Tally
) -> bool:
    """Start a training again and again until it has finished; return whether it has."""
    while True:
        running = Running(work.command(folder), folder.with_name(f"{folder.name} output"))
        members: list[int] = []
        if tally.counts["killed ranks"] < goal and moment_comes(work, running, folder, chance):
            members = running.children()
            victims = [each for each in members if "--partition" in arguments(each)]
            if victims:
                kill(chance.choice(victims))
                tally.count("killed ranks")
        ended = running.ended()
        if late := outlived(members, 30):
            tally.fault(f"{len(late)} processes outlived torchrun by 30 s")
        if ended.status == 0:
            return True
        if ended.status is None or ended.status < 0:
            tally.fault(f"torchrun ended with {ended.last_words}")
            return False


def moment_comes(work: Work, running: Running, folder: Path, chance: random.Random) -> bool:
    """Wait for a random moment, mostly one at which the ranks train."""
    before = newest(folder)
    if chance.random() < 0.2:
        return not running.wait(chance.uniform(1, 8))
    end = time.monotonic() + 120
    while time.monotonic() < end and newest(folder) == before:
        if running.wait(0.05):
            return False
    return not running.wait(chance.uniform(0, 1))


def newest(folder: Path) -> float:
    """Return when the newest checkpoint was written."""
    return max((file.stat().st_mtime for file in folder.glob("*.safetensors")), default=0.0)


def arguments(number: int) -> list[str]:
    """Return the command line of a process; that of torchrun itself names the ranks' options."""
    try:
        words = Path(f"/proc/{number}/cmdline").read_text().split("\0")
    except OSError:
        return []
    return [] if "torch.distributed.run" in words else words
