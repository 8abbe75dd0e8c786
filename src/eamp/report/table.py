"""Tables of formatted cells, and their Markdown, LaTeX and CSV files."""

import textwrap
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import pandas as pd

from eamp.experiments.csv_text import to_csv
from eamp.files import write_atomically

MARK = "†"  # stands behind a number that a table's note explains; the page highlights it
HEADING_WIDTH = 19

MATHS = r"< > - \pm \times \lambda ^\dagger \infty \to"
LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "[": "{[}",  # behind the end of a row, a bare bracket would start an optional argument
    "–": "--",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    **{sign: f"${command}$" for sign, command in zip("<>−±×λ†∞→", MATHS.split(), strict=True)},
}


@dataclass(frozen=True)
class Table:
    """A table for print, and the numbers behind it.

    Attributes:
        key: File name without its ending.
        caption: Text above the table.
        columns: Headings; the first ``labels`` columns hold words, the others numbers.
        rows: Every cell as text.
        raw: The unrounded numbers, saved as CSV.
        labels: Number of columns of words.
        note: Text below the table.
    """

    key: str
    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    raw: pd.DataFrame
    labels: int = 1
    note: str = ""

    def grouped(self) -> list[list[tuple[str, ...]]]:
        """Return the rows in blocks of neighbours with the same first cell."""
        return [list(block) for _, block in groupby(self.rows, key=lambda row: row[0])]


def save(table: Table, folder: Path) -> None:
    """Write the table to ``folder/<key>.md``, ``.tex`` and ``.csv``."""
    for ending, text in (("md", markdown(table)), ("tex", latex(table)), ("csv", csv(table))):
        write_atomically(folder / f"{table.key}.{ending}", text)


def csv(table: Table) -> str:
    """Return the unrounded numbers as CSV."""
    return to_csv(table.raw)


def markdown(table: Table) -> str:
    """Return caption, table and note as Markdown."""
    rule = ["---"] * table.labels + ["---:"] * (len(table.columns) - table.labels)
    heading, *rows = (list(map(escape_markdown, row)) for row in (table.columns, *table.rows))
    body = "\n".join("| " + " | ".join(line) + " |" for line in (heading, rule, *rows))
    parts = (escape_markdown(table.caption), body, escape_markdown(table.note))
    return "\n\n".join(filter(None, parts)) + "\n"


def escape_markdown(text: str) -> str:
    """Escape characters that end a cell, open a tag or start emphasis: names come from recipes."""
    for sign in "\\`*_|<>[]":
        text = text.replace(sign, f"\\{sign}")
    return " ".join(text.split())


def latex(table: Table) -> str:
    """Return a ``table`` environment with the rules of booktabs, also between blocks of rows."""
    columns = "l" * table.labels + "r" * (len(table.columns) - table.labels)
    blocks = table.grouped() if table.labels > 1 else [list(table.rows)]
    body = "\n\\midrule\n".join(
        "\n".join(" & ".join(map(escape_latex, row)) + r" \\" for row in block) for block in blocks
    )
    note = f"\n\\par\\smallskip\\footnotesize {escape_latex(table.note)}" if table.note else ""
    return (
        "% \\usepackage{booktabs}\n\\begin{table}\n\\centering\n"
        f"\\caption{{{escape_latex(table.caption)}}}\n"
        f"\\label{{tab:{table.key.replace('_', '-')}}}\n"
        f"\\begin{{tabular}}{{{columns}}}\n\\toprule\n{latex_heading(table.columns)}\n\\midrule\n"
        f"{body}\n\\bottomrule\n\\end{{tabular}}{note}\n\\end{{table}}\n"
    )


def latex_heading(columns: tuple[str, ...]) -> str:
    """Return the row of headings; long headings are stacked to keep the columns narrow."""
    stacks = [
        r" \\ ".join(map(escape_latex, textwrap.wrap(column, HEADING_WIDTH))) for column in columns
    ]
    cells = (rf"\shortstack[r]{{{stack}}}" if r"\\" in stack else stack for stack in stacks)
    return " & ".join(cells) + r" \\"


def escape_latex(text: str) -> str:
    """Escape the characters that LaTeX interprets and those that pdflatex cannot print."""
    return "".join(LATEX.get(sign, sign) for sign in " ".join(text.split()))
