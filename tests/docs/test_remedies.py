"""Accuracies of docs/remedies.md are those of tables that are made from raw figures."""

import re

from docs.code_blocks import ROOT

FIGURE = re.compile(r"\d+\.\d ± \d+\.\d")


def test_accuracies_are_those_of_the_evidence() -> None:
    page = (ROOT / "docs" / "remedies.md").read_text("utf-8")
    evidence = (ROOT / "docs" / "results" / "evidence" / "README.md").read_text("utf-8")
    order, rest = page.split("## Mirrored weights")
    tables = [
        evidence.split(f"<!-- table: {name} -->")[1].split("<!-- end -->")[0]
        for name in ("remedies", "remedies_rates")
    ]
    found = FIGURE.findall(order)
    assert len(found) >= 8
    assert not set(found) - set(FIGURE.findall("".join(tables)))
    assert len(FIGURE.findall(rest)) >= 4
    assert not set(FIGURE.findall(rest)) - set(FIGURE.findall(evidence))
