import pandas as pd

from eamp.paper import tables
from eamp.report.table import csv, latex, markdown


def test_table_1_shows_three_accuracies_side_by_side(frames: dict[str, pd.DataFrame]) -> None:
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


def test_data_that_the_paper_does_not_have(frames: dict[str, pd.DataFrame]) -> None:
    table = tables.table_1(frames["cells"].query("data == 'cora'").assign(data="csbm"))
    assert {row[3] for row in table.rows} == {"–"}
    assert "†" not in markdown(table)


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
    assert table.rows[0] == ("Basic GCN", "0.0010", "1.0e−30", "0")


def test_every_row_has_a_cell_per_column(frames: dict[str, pd.DataFrame]) -> None:
    found = (
        tables.table_1(frames["cells"]),
        *tables.table_1_by_dataset(frames["cells"]),
        tables.variants(frames["cells"]),
        tables.figure_2(frames["depth_energies"]),
        tables.figure_3(frames["layer_energies"]),
        tables.thresholds(frames["thresholds"]),
    )
    for table in found:
        assert table is not None
        assert table.rows
        assert {len(row) for row in table.rows} == {len(table.columns)}
        assert latex(table).isascii()


def test_csv_keeps_every_digit(frames: dict[str, pd.DataFrame]) -> None:
    lines = csv(tables.table_1(frames["cells"])).splitlines()
    assert len(lines) == 1 + 16
    assert "best_val_accuracy_deviation" in lines[0]
    assert "0.0141421356237" in lines[1]
