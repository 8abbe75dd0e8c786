"""``eamp`` and ``python -m eamp``."""

import sys

from eamp.optional import MissingPackageError


def main() -> int:
    """Run the command line; without its packages, say in one line what to install."""
    try:
        from eamp import cli  # needs the packages of an extra
    except MissingPackageError as error:
        sys.stderr.write(f"eamp: {error}\n")
        return 2
    return cli.main()


if __name__ == "__main__":
    sys.exit(main())
