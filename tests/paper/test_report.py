import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest

from eamp.paper import Frames, from_folder, write_report
from headings import jumps

pytestmark = pytest.mark.slow

KEYS = (
    "deep_networks",
    "figure_1a",
    "figure_1b",
    "figure_2",
    "figure_3",
    "table_1",
    "thresholds",
    "variants",
)
LOADING = dict.fromkeys(("script", "img", "iframe", "source", "embed"), "src")
LOADING |= {"link": "href", "object": "data"}


class Reader(HTMLParser):
    """Reads the tags of a page, its words, and the addresses that it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.words: list[str] = []
        self.tags: list[str] = []
        self.raw: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.loads += [str(value) for name, value in attrs if name == LOADING.get(tag)]

    def handle_data(self, data: str) -> None:
        code = bool(self.tags) and self.tags[-1] in ("script", "style")
        (self.raw if code else self.words).append(data)


def test_figures_and_tables_lie_beside_the_page(report: Path) -> None:
    starts = {"svg": b"<svg", "png": b"\x89PNG", "pdf": b"%PDF"}
    for key in KEYS:
        for kind, start in starts.items():
            assert (report.parent / "figures" / f"{key}.{kind}").read_bytes().startswith(start)
    for key in ("deep_networks", "table_1", "variants", "figure_2", "figure_3", "thresholds"):
        for kind in ("md", "tex", "csv"):
            assert (report.parent / "tables" / f"{key}.{kind}").stat().st_size > 50


def test_nothing_is_loaded_from_anywhere(report: Path) -> None:
    page = Reader(report.read_text(encoding="utf-8"))
    assert page.loads == ["data:,"]
    styles = "".join(page.raw)
    assert not re.search(r"@import|url\(\s*['\"]?https?:", styles)


def test_no_level_of_headings_is_left_out(report: Path) -> None:
    assert not jumps(report.read_text(encoding="utf-8"))


def test_page_says_what_was_found_and_how_it_was_run(report: Path) -> None:
    words = "".join(Reader(report.read_text(encoding="utf-8")).words)
    places = map(words.index, ("Read this first.", "With 64 layers", "In brief", "15 of the 16"))
    assert sorted(ordered := list(places)) == ordered
    for part in ("eamp reproduce", "torch-geometric", "Threads per network"):
        assert part in words
    for heading in ("What the paper's shortcuts cost", "The formula of P̄"):
        assert heading in words


def test_names_from_recipes_are_escaped(frames: dict[str, pd.DataFrame], tmp_path: Path) -> None:
    hostile = "</script><script>alert(1)</script><b>&"
    cells = frames["cells"].query("name == 'PairNorm' and data == 'cora' and seed == 0")
    cells = cells.assign(name=hostile)
    layers = frames["layer_energies"].query("name == 'G2' and seed == 0").assign(name=hostile)
    given = Frames(cells=cells, layer_energies=layers)
    path = write_report(tmp_path, given, notices=[hostile], command=hostile)
    text = path.read_text(encoding="utf-8")
    assert "<script>alert" not in text
    assert text.count("</script>") == text.count("<script") == 5
    assert "<b>&" not in text
    assert hostile in "".join(Reader(text).words)
    assert "<b>" not in (tmp_path / "figures" / "table_1.svg").read_text(encoding="utf-8")


def test_same_frames_give_the_same_files(
    frames: dict[str, pd.DataFrame], report: Path, tmp_path: Path
) -> None:
    given = {"notices": ["Read this first."], "command": "eamp reproduce"}
    again = write_report(tmp_path, Frames(**frames), **given)
    files = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file())
    dates = [
        json.loads((folder / "run.json").read_text(encoding="utf-8"))["date"]
        for folder in (report.parent, tmp_path)
    ]
    for file in files:
        first, second = (report.parent / file).read_bytes(), (tmp_path / file).read_bytes()
        if file.suffix in (".html", ".json"):
            first, second = (
                content.replace(date.encode(), b"")
                for content, date in zip((first, second), dates, strict=True)
            )
        if file.suffix == ".pdf":  # the converter lists the fonts in no fixed order
            assert len(first) == len(second), file
        else:
            assert first == second, file
    before = again.read_bytes()
    assert from_folder(tmp_path) == again
    assert again.read_bytes() == before


def test_a_quick_run_without_variants_thresholds_or_published_numbers(
    frames: dict[str, pd.DataFrame], tmp_path: Path
) -> None:
    cells = frames["cells"].query("data == 'cora' and seed == 0 and ~name.str.contains(',')")
    layers = frames["layer_energies"].query("seed == 0").assign(data="csbm", depth=32)
    given = {"cells": cells.assign(data="csbm"), "layer_energies": layers}
    path = write_report(tmp_path, Frames(**given, depth_energies=frames["depth_energies"]))
    words = "".join(Reader(path.read_text(encoding="utf-8")).words)
    assert "csbm (synthetic)" in words
    assert "has no numbers for this dataset" in words
    assert "What the paper's shortcuts cost" not in words
    assert not (tmp_path / "figures" / "variants.svg").exists()
    assert not (tmp_path / "figures" / "thresholds.svg").exists()


@pytest.mark.parametrize("given", ["cells", "layer_energies", "depth_energies", "thresholds", None])
def test_any_part_may_be_missing(
    frames: dict[str, pd.DataFrame], tmp_path: Path, given: str | None
) -> None:
    parts = {} if given is None else {given: frames[given]}
    text = write_report(tmp_path, Frames(**parts)).read_text(encoding="utf-8")
    assert ("No network was run." in text) == (given is None)
    assert 'id="figure_1a"' in text


def test_files_of_an_earlier_report_are_removed(tmp_path: Path) -> None:
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "thresholds.svg").write_text("old")
    (tmp_path / "figures" / "mine.svg").write_text("kept")
    write_report(tmp_path, Frames())
    assert [path.name for path in (tmp_path / "figures").glob("[mt]*.svg")] == ["mine.svg"]


def test_energies_that_are_not_numbers_do_not_stop_the_report(
    frames: dict[str, pd.DataFrame], tmp_path: Path
) -> None:
    cells = frames["cells"].query("data == 'cora' and seed == 0").copy()
    cells.loc[cells.index[0], ["best_val_accuracy", "test_accuracy"]] = float("nan")
    layers = frames["layer_energies"].query("seed == 0").copy()
    layers.loc[layers["name"] == "Basic GCN", "energy"] = float("nan")
    layers.loc[layers["name"] == "G2", "energy"] = float("inf")
    path = write_report(tmp_path, Frames(cells=cells, layer_energies=layers))
    text = path.read_text(encoding="utf-8")
    assert "Infinity" not in text.split('id="specs"')[1].split("</script>")[0]


def test_a_folder_without_a_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no run\.json"):
        from_folder(tmp_path)
