"""Print the BibTeX entries of the methods that you name."""

from jsonargparse import ArgumentParser, Namespace

from eamp.report.citations import cite

EXAMPLE = "eamp cite gcnii"


def add(parser: ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "names", nargs="*", help="models or keys; the paper behind eamp is always included"
    )


def run(options: Namespace) -> int:
    """Print the entries."""
    print(cite(*options.names))
    return 0
