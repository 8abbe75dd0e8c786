import re

import pandas as pd

from eamp.report import table as formats
from eamp.paper import tables
from eamp.paper.tables import Table


def test_table_1_says_three_readings_side_by_side(frames: dict[str, pd.DataFrame]) -> None:
    table = tables.table_1(frames["cells"])
    assert table.columns[3:] == (
        "paper",
        "ours: highest validation accuracy",
        "test accuracy at lowest validation loss",
    )
    assert ("Cora", "Basic GCN", "4", ".82", ".820 ± .014", ".800 ± .014") in table.rows
    assert ("Cora", "G2", "64", ".56", ".660 ± .014†", ".640 ± .014") in table.rows
    assert "† further than .06 from the paper's number." in table.note
    assert "2 seeds per cell; mean ± sample standard deviation." in table.note
    assert not any("," in row[1] for row in table.rows)  # variants have a table of their own


def test_one_seed_is_a_plain_number(frames: dict[str, pd.DataFrame]) -> None:
    table = tables.table_1(frames["cells"].query("seed == 0 and name == 'PairNorm'"))
    assert all("±" not in cell for row in table.rows for cell in row)
    assert table.note == "1 seed per cell."


def test_data_the_paper_does_not_have(frames: dict[str, pd.DataFrame]) -> None:
    table = tables.table_1(frames["cells"].query("data == 'cora'").assign(data="csbm"))
    assert {row[3] for row in table.rows} == {"–"}
    assert "†" not in formats.markdown(table)


def test_variants_beside_their_base(frames: dict[str, pd.DataFrame]) -> None:
    table = tables.variants(frames["cells"])
    assert table is not None
    row = next(row for row in table.rows if row[:3] == ("Entropic GCN, detached", "Cora", "64"))
    assert row[3:] == (".350", ".300", "−.050 ± .000", ".330", ".280", "−.050 ± .000")
    assert len(set(table.columns)) == len(table.columns)
    assert tables.variants(frames["cells"].query("name == 'G2'")) is None


def test_energies_that_are_zero_are_printed_as_zero(frames: dict[str, pd.DataFrame]) -> None:
    table = tables.figure_2(frames["depth_energies"])
    assert table is not None
    assert table.rows[0] == ("GCN", "0.0010", "1.0e−30", "0")


def test_u_curves_in_numbers(frames: dict[str, pd.DataFrame]) -> None:
    curve = tables.u_curves(frames["layer_energies"]).set_index("name").loc["Entropic GCN"]
    assert 0.12 < curve["lowest"] < 0.121
    assert curve["lowest_layer"] == 32
    assert curve["lowest"] < curve["middle"] < curve["first"] < curve["last"] * 1.001


HOSTILE = r"50% & <b>_#$^~\{[x]} | *λ*"


def hostile() -> Table:
    return Table(
        "t",
        HOSTILE,
        ("a", HOSTILE),
        ((HOSTILE, "1"), ("[b", "−.1 ± .2†")),
        pd.DataFrame({"a": [1]}),
        1,
        HOSTILE,
    )


def test_latex_escapes_what_it_would_act_upon() -> None:
    text = formats.latex(hostile())
    assert (
        r"50\% \& $<$b$>$\_\#\$\textasciicircum{}\textasciitilde{}\textbackslash{}\{{[}x]\}" in text
    )
    assert r"{[}b & $-$.1 $\pm$ .2$^\dagger$ \\" in text
    assert all(sign.isascii() for sign in text)


def test_latex_has_the_form_of_a_table(frames: dict[str, pd.DataFrame]) -> None:
    for table in (
        tables.table_1(frames["cells"]),
        tables.variants(frames["cells"]),
        tables.figure_3(frames["layer_energies"]),
        hostile(),
    ):
        assert table is not None
        text = formats.latex(table)
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


def test_markdown_cells_hold_what_is_in_them() -> None:
    lines = formats.markdown(hostile()).splitlines()
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines if line.startswith("|")} == {3}
    assert "<b>" not in formats.markdown(hostile()).replace(r"\<b\>", "")


def test_csv_keeps_every_digit(frames: dict[str, pd.DataFrame]) -> None:
    lines = formats.csv(tables.table_1(frames["cells"])).splitlines()
    assert len(lines) == 1 + 16
    assert "best_val_accuracy_deviation" in lines[0]
    assert "0.0141421356237" in lines[1]
