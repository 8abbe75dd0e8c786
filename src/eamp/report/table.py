"""A table as Markdown, LaTeX and CSV."""

from __future__ import annotations

import textwrap
from pathlib import Path

from eamp.paper.tables import Table

HEADING_WIDTH = 19

LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "[": "{[}",  # after the end of a row it would begin an argument
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"$<$",
    ">": r"$>$",
    "±": r"$\pm$",
    "−": r"$-$",
    "–": "--",
    "×": r"$\times$",
    "λ": r"$\lambda$",
    "†": r"$^\dagger$",
    "∞": r"$\infty$",
    "→": r"$\to$",
}


def save(table: Table, folder: Path) -> None:
    """``folder/<key>.md``, ``.tex`` and ``.csv``."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{table.key}.md").write_text(markdown(table), encoding="utf-8")
    (folder / f"{table.key}.tex").write_text(latex(table), encoding="utf-8")
    (folder / f"{table.key}.csv").write_text(csv(table), encoding="utf-8")


def csv(table: Table) -> str:
    """The unrounded numbers."""
    return str(table.raw.to_csv(index=False, lineterminator="\n"))


def markdown(table: Table) -> str:
    """Caption, table, note."""
    rule = ["---"] * table.labels + ["---:"] * (len(table.columns) - table.labels)
    lines = [
        list(map(escape_markdown, table.columns)),
        rule,
        *(list(map(escape_markdown, row)) for row in table.rows),
    ]
    body = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    return (
        "\n\n".join(
            part
            for part in (escape_markdown(table.caption), body, escape_markdown(table.note))
            if part
        )
        + "\n"
    )


def escape_markdown(text: str) -> str:
    """Names come from recipes: a pipe must not end a cell, and no character may open a tag or emphasis."""
    for sign in "\\`*_|<>[]":
        text = text.replace(sign, f"\\{sign}")
    return " ".join(text.split())


def latex(table: Table) -> str:
    """A ``table`` environment with booktabs' rules, a thin one between blocks of one first word."""
    columns = "l" * table.labels + "r" * (len(table.columns) - table.labels)
    blocks = table.grouped() if table.labels > 1 else [list(table.rows)]
    body = "\n\\midrule\n".join("\n".join(latex_row(row) for row in block) for block in blocks)
    note = f"\n\\par\\smallskip\\footnotesize {escape_latex(table.note)}" if table.note else ""
    return (
        "% \\usepackage{booktabs}\n\\begin{table}\n\\centering\n"
        f"\\caption{{{escape_latex(table.caption)}}}\n\\label{{tab:{table.key.replace('_', '-')}}}\n"
        f"\\begin{{tabular}}{{{columns}}}\n\\toprule\n{latex_heading(table.columns)}\n\\midrule\n{body}\n\\bottomrule\n\\end{{tabular}}{note}\n"
        "\\end{table}\n"
    )


def latex_heading(columns: tuple[str, ...]) -> str:
    """Long headings are stacked, so that the table is no wider than its numbers."""
    stacks = [
        r" \\ ".join(map(escape_latex, textwrap.wrap(column, HEADING_WIDTH))) for column in columns
    ]
    return (
        " & ".join(rf"\shortstack[r]{{{stack}}}" if r"\\" in stack else stack for stack in stacks)
        + r" \\"
    )


def latex_row(row: tuple[str, ...]) -> str:
    """Cells between ampersands."""
    return " & ".join(map(escape_latex, row)) + r" \\"


def escape_latex(text: str) -> str:
    """Every sign that LaTeX would act upon, and those that pdflatex does not know."""
    return "".join(LATEX.get(sign, sign) for sign in " ".join(text.split()))
