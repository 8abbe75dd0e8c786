"""List, fetch or check datasets."""

from pathlib import Path

from jsonargparse import ArgumentParser, Namespace

EXAMPLE = "eamp data get cora"


def add(parser: ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("action", choices=["list", "get", "check"], help="list, get or check")
    parser.add_argument("names", nargs="*", help="datasets; by default all that have been fetched")
    parser.add_argument("--folder", type=Path | None, help="a folder that holds the raw files")


def run(options: Namespace) -> int:
    """List, fetch or check; return 1 if a dataset is damaged."""
    from eamp.data import available, check, get  # heavy: imported when the command runs

    if options.action == "list":
        print("\n".join(map(str, available())))
        return 0
    names = options.names or [entry.name for entry in available() if entry.cached]
    if not names:
        raise ValueError(f"nothing has been fetched yet; name a dataset, as in `{EXAMPLE}`.")
    if options.action == "get":
        for name in names:
            print(get(name, folder=options.folder))
        return 0
    results = [check(name) for name in names]
    print("\n".join(map(str, results)))
    return 0 if all(result.ok for result in results) else 1
