"""Faults of processes other than SIGKILL: interrupted, terminated, and stopped for a while."""

import os
import random
import signal
from pathlib import Path

from tests.campaign.processes import Running, outlived, run
from tests.campaign.stores import Work, check, sweep, undisturbed
from tests.campaign.tally import Options, Tally


def signals(options: Options) -> Tally:
    """Send each signal to a sweep, and let it finish."""
    tally, chance = Tally("signals"), random.Random(f"{options.seed}/signals")
    work = sweep(options.folder / "recipe.yaml")
    if (calm := undisturbed(work, options, tally)) is None:
        return tally
    for name in ("SIGINT", "SIGTERM", "SIGSTOP"):
        disturbed = options.folder / name
        disturb(work, disturbed, name, chance, tally)
        ended = run(work.command(disturbed), options.folder / f"{name} output")
        if ended.status != 0:
            tally.fault(f"after {name} a sweep ended with {ended.last_words}")
        check(work, disturbed, calm, tally)
    return tally


def disturb(work: Work, folder: Path, name: str, chance: random.Random, tally: Tally) -> None:
    """Start a sweep and send a signal to it, or to one of its workers, while it trains."""
    running = Running(work.command(folder), folder.with_name(f"{name} first output"))
    while not work.busy(folder, running.children()):
        if running.wait(0.1):
            break
    running.wait(chance.uniform(0, 1))
    workers = running.children()
    tally.count("signals")
    if name == "SIGSTOP" and workers:
        victim = chance.choice(workers)
        os.kill(victim, signal.SIGSTOP)
        running.wait(chance.uniform(1, 5))
        os.kill(victim, signal.SIGCONT)
    elif running.process.poll() is None:
        running.process.send_signal(getattr(signal, name))
    ended = running.ended()
    tally.say(f"{name}: {ended.last_words}")
    if "Traceback" in ended.err:
        tally.fault(f"{name}: a traceback, {ended.last_words}")
    if late := outlived(workers, 15):
        tally.fault(f"{name}: {len(late)} workers outlived their parent by 15 s")
