"""The fault campaign: ``python -m tests.campaign``, or ``make campaign``.

It prints its seed, its progress and a table of figures. The exit status is 1 if anything was lost,
executed or silently wrong.
"""

import argparse
import importlib
import random
import sys
import tempfile
import time
from pathlib import Path

from tests.campaign.tally import Options, Tally

KINDS = ("graphs", "kills", "signals", "hostile", "disk", "database", "ranks")


def main() -> int:
    """Run all parts of the campaign, or some of them."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaign", description=__doc__)
    parser.add_argument("--seed", type=int, help="of all random choices; by default a new one")
    parser.add_argument("--only", nargs="+", choices=KINDS, default=KINDS, help="by default all")
    parser.add_argument("--graphs", type=int, default=Options.graphs, help="random graphs")
    parser.add_argument("--kills", type=int, default=Options.kills, help="killed processes")
    parser.add_argument("--ranks", type=int, default=Options.ranks, help="killed ranks of torchrun")
    parser.add_argument("--hostile", type=int, help="hostile inputs; by default all")
    parser.add_argument("--cores", type=int, default=Options.cores, help="processes at a time")
    parser.add_argument("--folder", type=Path, help="keep all files here; by default temporary")
    given = parser.parse_args()
    seed = random.SystemRandom().randrange(10**6) if given.seed is None else given.seed
    print(f"seed {seed}; the same again: python -m tests.campaign --seed {seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="eamp-campaign-") as temporary:
        folder = given.folder or Path(temporary)
        tallies = []
        for kind in given.only:
            (folder / kind).mkdir(parents=True, exist_ok=False)
            numbers = given.graphs, given.kills, given.ranks, given.hostile, given.cores
            tallies.append(timed(kind, Options(seed, folder / kind, *numbers)))
    print_summary(seed, tallies)
    return 1 if any(tally.faults for tally in tallies) else 0


def timed(kind: str, options: Options) -> Tally:
    """Run one part."""
    began = time.monotonic()
    print(f"{kind}:", flush=True)
    tally: Tally = getattr(importlib.import_module(f"tests.campaign.{kind}"), kind)(options)
    tally.counts["seconds"] = round(time.monotonic() - began)
    return tally


def print_summary(seed: int, tallies: list[Tally]) -> None:
    """Print the figures, and everything that went wrong."""
    print(f"\nseed {seed}\n{'':10}{'faults':>8}  figures")
    for tally in tallies:
        figures = ", ".join(f"{name} {number}" for name, number in tally.counts.items())
        print(f"{tally.kind:10}{len(tally.faults):8}  {figures}")
        for note in tally.notes:
            print(f"{'':20}{note}")
    for tally in tallies:
        for fault in tally.faults:
            print(f"FAULT {tally.kind}: {fault}")
    total = sum(len(tally.faults) for tally in tallies)
    print(f"{total} faults" if total else "Nothing lost, executed or silently wrong.")


if __name__ == "__main__":
    sys.exit(main())
