"""The verdicts on networks that no threshold was set on are those that the documentation prints."""

from __future__ import annotations

import pytest

from printed import RESULTS, script, text_of

VERDICTS = script(RESULTS / "evidence" / "verdicts.py")
ROWS = VERDICTS.read()


def test_the_page_prints_the_table_of_the_file() -> None:
    page = text_of("docs/diagnosis.md")
    printed = page.split("<!-- table: verdicts -->\n\n")[1].split("\n\n<!-- end -->")[0]
    assert printed == VERDICTS.table(ROWS), "run python docs/results/evidence/verdicts.py --table"


def test_the_file_holds_every_case_once() -> None:
    cases = [tuple(row[name] for name in VERDICTS.COLUMNS[:5]) for row in ROWS]
    assert len(set(cases)) == len(cases) == 570


@pytest.mark.parametrize("number", [7, 100, 239, 390, 465, 500])
def test_verdicts_can_be_made_again(number: int) -> None:
    row = ROWS[number]
    again = VERDICTS.diagnosis(
        row["network"],
        int(row["layers"]),
        int(row["width"]),
        row["graph"],
        int(row["seed"]),
        row["expected"],
    )
    energies = float(again.pop("lowest energy")), float(row["lowest energy"])
    assert energies[0] == pytest.approx(energies[1], rel=0.01)
    assert again == {name: row[name] for name in again}


def test_rates_count_findings_of_the_right_networks() -> None:
    def row(network: str, expected: str, found: str) -> dict[str, str]:
        values = (network, "4", "32", "random", "0", expected, found, "0.01")
        return dict(zip(VERDICTS.COLUMNS, values, strict=True))

    rows = [
        row("a", "healthy", ""),
        row("a", "healthy", "dead units"),
        row("b", "collapsed", "dead units"),
        row("b", "collapsed", "dead units;smoothing"),
    ]
    counted = [("a", "4", "healthy", "2", "0", "1"), ("b", "4", "collapsed", "2", "1", "2")]
    assert list(VERDICTS.counts(rows)) == counted
    assert "False alarms: 1 of 2 (50.0%), all of them dead units" in VERDICTS.table(rows)
    assert "Missed collapses: 1 of 2 (50.0%)." in VERDICTS.table(rows)
    assert "False alarms: 0 of 1 (0.0%).\n" in VERDICTS.table([rows[0], rows[2]])
