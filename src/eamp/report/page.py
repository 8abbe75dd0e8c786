"""The report as one HTML page that needs nothing but itself: text, tables, charts, and the libraries that draw them."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from functools import cache
from typing import Any

import vl_convert
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from eamp.paper.differences_from_paper import Difference
from eamp.paper.findings import Finding
from eamp.report import table as formats
from eamp.report.colours import Look
from eamp.report.figure import Figure, page_spec
from eamp.paper.tables import MARK, Table
from eamp.report.theme import INKS, config, params

# Nothing may be fetched; scripts and styles are the page's own. Vega compiles its expressions, hence 'unsafe-eval'.
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; "
    "img-src data: blob:; base-uri 'none'; form-action 'none'"
)
SHAPES = {
    "circle": "M-3.6,0a3.6,3.6 0 1,0 7.2,0a3.6,3.6 0 1,0 -7.2,0",
    "square": "M-3.4,-3.4h6.8v6.8h-6.8z",
    "diamond": "M0,-4.6L4,0L0,4.6L-4,0z",
    "triangle-up": "M0,-4L4.2,3.4H-4.2z",
    "triangle-down": "M0,4L4.2,-3.4H-4.2z",
    "triangle-right": "M4,0L-3.4,4.2V-4.2z",
    "triangle-left": "M-4,0L3.4,4.2V-4.2z",
    "cross": "M-4,-1.4h2.6v-2.6h2.8v2.6h2.6v2.8h-2.6v2.6h-2.8v-2.6h-2.6z",
    "stroke": "",
}


@dataclass(frozen=True)
class Page:
    """Everything the page says."""

    findings: list[Finding]
    figures: dict[str, Figure]
    tables: dict[str, Table]
    by_dataset: list[Table]
    differences: list[Difference]
    notices: list[str]
    protocol_notes: list[str]
    facts: list[tuple[str, str]]
    date: str

    def html(self) -> str:
        """The page; every word is escaped, and all data are JSON in which no tag can begin."""
        themes = {
            mode: {"config": config(mode, for_page=True), "params": params(mode)} for mode in INKS
        }
        specs = {
            f"{one.key}-{at}": page_spec(panel)
            for one in self.figures.values()
            for at, panel in enumerate(one.panels)
        }
        values: dict[str, Any] = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return (
            templates()
            .get_template("page.html")
            .render(values | {"themes": themes, "specs": specs, "policy": POLICY, "mark": MARK})
        )


def templates() -> Environment:
    """Jinja with escaping everywhere, and undefined names as errors."""
    environment = Environment(
        loader=PackageLoader("eamp.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["tied"] = tied
    environment.globals.update(sample=sample, csv_link=csv_link, library=library, asset=asset)
    return environment


def tied(text: str) -> str:
    """No line may end between a sign and its numbers."""
    for sign in ("±", "=", "×"):
        text = text.replace(f" {sign} ", f"\u00a0{sign}\u00a0")
    return text


def sample(look: Look) -> Markup:
    """A line as it is drawn, for the key."""
    path = Markup('<path d="{}" transform="translate(14,6)" fill="{}"/>').format(
        SHAPES[look.shape], look.colour
    )
    dash = " ".join(map(str, look.dash)) if look.dash != (1, 0) else "none"
    line = Markup(
        '<line x1="0" x2="28" y1="6" y2="6" stroke="{}" stroke-width="2.2" stroke-dasharray="{}"/>'
    ).format(look.colour, dash)
    return Markup(
        '<svg class="sample" viewBox="0 0 28 12" width="28" height="12" aria-hidden="true">{}{}</svg>'
    ).format(line, path)


def csv_link(table: Table) -> str:
    """The unrounded numbers, inside the page itself."""
    return (
        "data:text/csv;charset=utf-8;base64,"
        + base64.b64encode(formats.csv(table).encode()).decode()
    )


@cache
def library() -> Markup:
    """Vega, Vega-Lite and Vega-Embed, in a scope of their own."""
    bundle = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    # These two occur in strings alone, where a backslash changes nothing; the page's parser would see a tag or a comment.
    return Markup(
        "(function () {\n"
        + bundle.replace("</script", "<\\/script").replace("<!--", "<\\!--")
        + "\n})();"
    )


def asset(name: str) -> Markup:
    """The page's own style sheet or script."""
    environment = templates()
    assert environment.loader is not None
    return Markup(environment.loader.get_source(environment, name)[0])
