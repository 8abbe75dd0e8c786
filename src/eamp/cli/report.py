"""Write the page, figures and tables of a reproduction again from its saved results."""

from pathlib import Path

from jsonargparse import ArgumentParser, Namespace

EXAMPLE = "eamp report out"


def add(parser: ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("folder", type=Path, help="the output folder of `eamp reproduce`")


def run(options: Namespace) -> int:
    """Write the page."""
    from eamp.paper import from_folder  # heavy: imported when the command runs

    print(f"Written to {from_folder(options.folder)}")
    return 0
