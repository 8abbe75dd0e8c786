"""Time the entropy step beside its alternatives, in one run."""

import sys
from importlib import import_module
from pathlib import Path

from jsonargparse import ArgumentParser, Namespace

import eamp
from eamp.files import check_writable

EXAMPLE = "eamp bench --quick --output bench.json"


def add(parser: ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--output", type=Path | None, help="JSON file for the figures")
    parser.add_argument("--quick", action="store_true", help="small graphs only, a few seconds")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"], help="where to run")


def run(options: Namespace) -> int:
    """Run the benchmarks, which are no part of the installed package."""
    places = [Path(eamp.__file__).parents[2], Path.cwd()]  # a source checkout has src/eamp
    found = [place for place in places if (place / "benchmarks" / "report.py").exists()]
    if not found:
        raise FileNotFoundError(
            "the benchmarks are not installed with eamp: clone its repository and run `make bench` "
            "there, or run `eamp bench` in the cloned folder."
        )
    if options.output is not None:
        check_writable(options.output.parent)  # before the benchmarks, not after
    sys.path.insert(0, str(found[0]))
    report = import_module("benchmarks.report")  # heavy: imported when the command runs
    report.run(options.output, quick=options.quick, device=options.device)
    return 0
