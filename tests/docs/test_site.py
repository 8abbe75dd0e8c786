"""The site, as `make docs` builds it: offline, with formulas, notebooks and every public name."""

import importlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

import eamp

pytestmark = pytest.mark.slow

MODULES = ("nn", "data", "training", "scale", "diagnostics", "paper")
# Attributes by which a page loads something. Links that a reader may follow are no such thing.
LOADING = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
HARMLESS = {"canonical", "next", "prev", "license"}  # relations of <link> that load nothing
TEX = re.compile(
    r"arithmatex|<m[ion]>(\\|&(amp;)?<)"
)  # formulas, commands and columns as they were


class Loaded(HTMLParser):
    """Collects the addresses that a page loads."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if tag in LOADING and not HARMLESS & set((found.get("rel") or "").split()):
            self.addresses.append(found.get(LOADING[tag]) or "")


def pages(site: Path) -> dict[str, str]:
    return {str(path.relative_to(site)): path.read_text("utf-8") for path in site.rglob("*.html")}


def test_no_page_or_style_loads_anything_from_elsewhere(site: Path) -> None:
    found = pages(site)
    assert len(found) > 40
    for name, page in found.items():
        addresses = Loaded(page).addresses
        assert addresses, name  # the parser sees the styles and scripts of every page
        assert not [a for a in addresses if re.match(r"(https?:)?//", a)], name
    for style in site.rglob("*.css"):
        text = style.read_text("utf-8")
        assert not re.search(r"(url\(|@import)\s*[\"']?(https?:)?//", text), style


def test_every_public_name_is_in_the_reference(site: Path) -> None:
    reference = "".join(path.read_text("utf-8") for path in (site / "api").glob("*.html"))
    anchors = set(re.findall(r'id="(eamp[\w.]*)"', reference))
    names = [f"eamp.{name}" for name in eamp.__all__]
    for module in MODULES:
        names += [f"eamp.{module}.{n}" for n in importlib.import_module(f"eamp.{module}").__all__]
    assert not [n for n in names if not {n, f"{n}.{n.rpartition('.')[2]}"} & anchors]
    # These modules have no list of their own.
    assert {"eamp.experiments.sweep.sweep", "eamp.report.figure.Figure"} <= anchors


def test_formulas_are_mathml(site: Path) -> None:
    found = pages(site)
    assert found["index.html"].count("<math") > 5
    assert found["api/nn.html"].count("<math") > 50
    for name, page in found.items():
        article = page.partition("<article")[2].partition("</article")[0]
        assert not TEX.search(article), name


def test_docstrings_have_no_markup_of_sphinx(site: Path) -> None:
    for name, page in pages(site).items():
        if name.startswith("api/"):
            assert not re.search(r":(class|func|meth|mod|data|math|attr):|\.\. math", page), name


def test_notebooks_are_pages_with_their_pictures(site: Path) -> None:
    page = (site / "tutorials" / "ten_minutes.html").read_text("utf-8")
    assert 'src="ten_minutes-1.png"' in page
    assert (site / "tutorials" / "ten_minutes-1.png").read_bytes().startswith(b"\x89PNG")
    assert 'href="ten_minutes.ipynb"' in page


def test_search_knows_the_words_of_pages_and_docstrings(site: Path) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text("utf-8"))
    where = {entry["location"] for entry in index["docs"] if "EntropyAware" in entry["title"]}
    assert any(place.startswith("api/") for place in where)
