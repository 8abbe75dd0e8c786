"""Tables of results on the command line: all of a name is printed, however long it is."""

import os

from eamp.optional import extra

with extra("experiments"):
    from rich.console import Console
    from rich.table import Table

WIDE = 1000  # columns of a pipe or a file; a table takes what it needs


def show(table: Table) -> None:
    """Print a table; a terminal folds long names, and a pipe or a file has room for them."""
    for column in table.columns:
        column.overflow = "fold"
    console = Console()
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console = Console(width=WIDE)
    console.print(table)
