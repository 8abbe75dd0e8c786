"""Accuracies of docs/remedies.md are those of the table that is made from raw figures."""

import re

from docs.code_blocks import ROOT


def test_accuracies_are_those_of_the_evidence() -> None:
    page = (ROOT / "docs" / "remedies.md").read_text("utf-8")
    evidence = (ROOT / "docs" / "results" / "evidence" / "README.md").read_text("utf-8")
    table = evidence.split("<!-- table: remedies -->")[1].split("<!-- end -->")[0]
    found = re.findall(r"\d+\.\d ± \d+\.\d", page)
    assert len(found) == 8
    assert not set(found) - set(re.findall(r"\d+\.\d ± \d+\.\d", table))
