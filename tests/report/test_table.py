import re

import pandas as pd
import pytest

from eamp.report.table import Table, csv, latex, markdown

HOSTILE = r"50% & <b>_#$^~\{[x]} | *λ*"
PLAIN = Table(
    "plain",
    "A caption.",
    ("data", "model", "accuracy"),
    (("Cora", "GCN", ".82"), ("Cora", "G2", ".54†"), ("CiteSeer", "GCN", ".69")),
    pd.DataFrame({"accuracy": [0.1 + 0.2]}),
    2,
    "A note.",
)
HOSTILE_TABLE = Table(
    "hostile",
    HOSTILE,
    ("a", HOSTILE),
    ((HOSTILE, "1"), ("[b", "−.1 ± .2†")),
    pd.DataFrame({"a": [1]}),
    1,
    HOSTILE,
)


def test_latex_escapes_the_characters_that_it_interprets() -> None:
    text = latex(HOSTILE_TABLE)
    assert (
        r"50\% \& $<$b$>$\_\#\$\textasciicircum{}\textasciitilde{}\textbackslash{}\{{[}x]\}" in text
    )
    assert r"{[}b & $-$.1 $\pm$ .2$^\dagger$ \\" in text
    assert all(sign.isascii() for sign in text)


@pytest.mark.parametrize("table", [PLAIN, HOSTILE_TABLE], ids=lambda table: table.key)
def test_latex_has_the_form_of_a_table(table: Table) -> None:
    text = latex(table)
    rules = [text.index(rf"\{rule}") for rule in ("toprule", "midrule", "bottomrule")]
    assert rules == sorted(rules)
    assert text.count(r"\begin{") == text.count(r"\end{") == 2
    bare = re.sub(r"\\[{}]", "", text)
    assert bare.count("{") == bare.count("}")
    columns = re.search(r"\\begin\{tabular\}\{([lr]+)\}", text)
    assert columns is not None
    body = text[text.index(r"\midrule") : text.index(r"\bottomrule")]
    rows = [line for line in body.splitlines() if line.endswith(r"\\")]
    assert len(rows) == len(table.rows)
    assert all(len(re.findall(r"(?<!\\)&", row)) == len(columns[1]) - 1 for row in rows)


def test_latex_has_a_rule_between_blocks() -> None:
    assert latex(PLAIN).count(r"\midrule") == 2  # below the heading, and between the datasets


def test_markdown_cells_hold_their_texts() -> None:
    lines = markdown(HOSTILE_TABLE).splitlines()
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines if line.startswith("|")} == {3}
    assert "<b>" not in markdown(HOSTILE_TABLE).replace(r"\<b\>", "")
    assert markdown(PLAIN).startswith(
        "A caption.\n\n| data | model | accuracy |\n| --- | --- | ---: |"
    )


def test_csv_keeps_every_digit() -> None:
    assert csv(PLAIN) == "accuracy\n0.30000000000000004\n"
