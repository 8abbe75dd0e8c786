"""The table of a sweep whose runs are compared with one of them, in pairs."""

from pathlib import Path

import pandas as pd

from eamp.experiments.statistics import HEADINGS, P_VALUES, Comparison, in_words
from eamp.optional import extra
from eamp.report.table import Table
from eamp.training import METRICS

with extra("experiments"):
    from rich.table import Table as TerminalTable
    from rich.text import Text


def comparison_table(
    compared: pd.DataFrame,
    reference: str,
    reading: str = "test accuracy",
    key: str = "comparison",
    metric: str = "accuracy",
) -> Table:
    """Return the table of :func:`eamp.experiments.statistics.compare` for print.

    Args:
        compared: what that function returns.
        reference: the name of the run that the others are compared with.
        reading: the figure that is compared, in words.
        key: the name of the table's files.
        metric: the metric of the figure, a key of :data:`eamp.training.METRICS`.

    Example:
        >>> from eamp.experiments.statistics import compare
        >>> rows = [("a", 0, 0.5), ("a", 1, 0.7), ("b", 0, 0.6), ("b", 1, 0.9)]
        >>> table = pd.DataFrame(rows, columns=["name", "seed", "test_accuracy"])
        >>> compared = compare(table.assign(data="cora", depth=2), "a")
        >>> comparison_table(compared, "a").rows[1][:5]
        ('cora', 'b', '2', '2', '+15.00')
    """
    numbers = {*Comparison.__annotations__, *(f"{name}_holm" for name in P_VALUES)}
    found = METRICS[metric]
    labels = [column for column in compared if column not in numbers]
    rows = tuple(
        (*(str(row[label]) for label in labels), str(row["pairs"] or ""), *in_words(row, found))
        for row in compared.to_dict("records")
    )
    caption = f"{reading[:1].upper()}{reading[1:]} minus that of “{reference}”"
    caption += ", in percentage points." if found.percent else "."
    caption += f" {found.described}." * (metric != "accuracy")
    note = (
        "Pairs have the same seed and split. Intervals are 95 % confidence intervals of the mean "
        "(t). In brackets: p-values with Holm's correction over the rows of the table."
    )
    heads = ("network" if label == "name" else label for label in labels)
    columns = (*heads, "pairs", *HEADINGS)
    return Table(key, caption, columns, rows, compared, len(labels), note)


def remove_comparisons(folder: Path) -> None:
    """Remove the comparisons of an earlier sweep in a folder, whose networks may be others now."""
    for place in (folder, folder / "tables"):
        for ending in ("md", "tex", "csv"):  # those of `eamp.report.table.save`
            for path in place.glob(f"comparison*.{ending}"):
                path.unlink()


def in_terminal(table: Table) -> TerminalTable:
    """Return a table for the terminal; square brackets are no markup, as names come from recipes.

    Example:
        >>> from eamp.report.table import Table
        >>> table = Table("key", "caption", ("network",), (("[b]",),), pd.DataFrame())
        >>> in_terminal(table).row_count
        1
    """
    shown = TerminalTable(*table.columns, title=Text(table.caption), caption=Text(table.note))
    for column in shown.columns[table.labels :]:
        column.justify = "right"
    for row in table.rows:
        shown.add_row(*map(Text, row))
    return shown
