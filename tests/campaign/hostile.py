"""Hostile inputs: each must be refused in a sentence, or do no harm.

Every input is given to eamp in a process of its own. That process must not run the program that
the input carries (it would leave a marker file), must not end with a traceback or a signal, must
not compute for more than a minute, and must not take a gigabyte more than an ordinary training.
"""

import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.campaign.hostile_inputs import INPUTS, SMALL, TINY, Input, Place
from tests.campaign.processes import EAMP, Ended, run
from tests.campaign.tally import Options, Tally

SECONDS = 60  # of computing; a process that waits may last twice as long, or longer if others do
QUICK = 10.0  # seconds that a training of nothing special lasts on a machine that is not busy
BYTES = 2**30
LONGEST = 15  # lines of an error; that of a dataset that no source has names all sources
# No input may be excused because the machine has no network, or wait for it.
OFFLINE = dict.fromkeys(
    ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9"
)
OFFLINE |= {"PIP_INDEX_URL": "http://127.0.0.1:9/", "PIP_RETRIES": "0", "PIP_TIMEOUT": "1"}


def hostile(options: Options) -> Tally:
    """Try all hostile inputs, or so many of them, chosen at random."""
    tally = Tally("hostile")
    chosen = list(INPUTS)
    if options.hostile is not None:
        chosen = random.Random(options.seed).sample(chosen, options.hostile)
    # A training of nothing special; it also compiles what is compiled once.
    idle = run([*EAMP, "train", *TINY, "--data", SMALL], options.folder / "idle", watched=True)
    tally.counts |= dict.fromkeys(("inputs", "refused", "harmless", "executed"), 0)
    with ThreadPoolExecutor(options.cores) as pool:
        tries = [
            pool.submit(attempt, each, options.folder / f"{number}", idle)
            for number, each in enumerate(chosen)
        ]
        for each, tried in zip(chosen, tries, strict=True):
            ended, faults = tried.result()
            tally.count("inputs")
            tally.count("executed", sum("executed" in fault for fault in faults))
            if not faults:
                tally.count("refused" if ended.status else "harmless")
            tally.say(f"{each.__name__}: {ended.last_words}")
            for fault in faults:
                tally.fault(f"{words(each)}: {fault}")
    return tally


def words(each: Input) -> str:
    """Return the first line of an input's description."""
    return (each.__doc__ or each.__name__).splitlines()[0].rstrip(".")


def attempt(each: Input, folder: Path, idle: Ended) -> tuple[Ended, list[str]]:
    """Give one input to eamp, and return how that ended and everything that is wrong with it."""
    place = Place(folder / "input", folder / "input" / "executed")
    place.folder.mkdir(parents=True)
    tried = each(place)
    environment = {"EAMP_CACHE": str(place.folder / "cache"), **OFFLINE, **tried.environment}
    # Far above what is allowed: it protects the machine, and must not be what ends the process.
    limits = {"RLIMIT_DATA": 8 * 2**30, "RLIMIT_CPU": SECONDS}
    command = [str(word) for word in tried.command]
    patience = 2 * SECONDS * max(1.0, idle.seconds / QUICK)
    how = {"environment": environment, "limits": limits, "watched": True}
    ended = run(command, folder / "output", patience, **how)
    faults = list(tried.check(ended)) if ended.status == 0 else []
    if place.marker.exists():
        faults.append("executed the program inside")
    if ended.status is None:
        faults.append(f"does not end within {patience:.0f} s")
    elif ended.status not in tried.statuses:
        faults.append(f"ended with {ended.last_words}")
    if "Traceback" in ended.err:
        faults.append(f"a traceback, {ended.last_words}")
    elif ended.status == 2 and not 0 < len(ended.err.strip().splitlines()) <= LONGEST:
        faults.append(f"an error of {len(ended.err.splitlines())} lines")
    if ended.peak > idle.peak + BYTES:
        faults.append(f"took {(ended.peak - idle.peak) / 2**30:.1f} GiB")
    return ended, faults
