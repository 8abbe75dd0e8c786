"""Render a report as one HTML page that loads nothing: text, tables, charts and their libraries."""

import base64
from collections.abc import Mapping
from functools import cache
from typing import Any

from eamp.optional import extra
from eamp.report.colours import SOLID, Look
from eamp.report.figure import Figure, page_spec
from eamp.report.table import MARK, Table, csv
from eamp.report.theme import INKS, config, params

with extra("report"):
    import vl_convert
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

# The page may fetch nothing; its scripts and styles are inline. Vega compiles expressions, which
# needs 'unsafe-eval'.
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


def render(package: str, template: str, figures: Mapping[str, Figure], **values: Any) -> str:
    """Render a template in the folder ``templates`` of ``package`` that extends ``page.html``.

    ``values`` holds everything but the figures: ``page.html`` shows ``notices`` and ``facts``, and
    its macros ``tables``. Every text is escaped, and the charts are JSON in which no tag can begin.
    """
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader("eamp.report")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["tied"] = tied
    environment.globals.update(
        sample=sample, csv_link=csv_link, library=library, policy=POLICY, mark=MARK
    )
    specs = {
        f"{one.key}-{number}": page_spec(panel)
        for one in figures.values()
        for number, panel in enumerate(one.panels)
    }
    themes = {
        mode: {"config": config(mode, for_page=True), "params": params(mode)} for mode in INKS
    }
    page = environment.get_template(template)
    return page.render(figures=figures, specs=specs, themes=themes, **values)


def tied(text: str) -> str:
    """Put non-breaking spaces around signs, which keeps them on one line with their numbers."""
    for sign in ("±", "=", "×"):
        text = text.replace(f" {sign} ", f"\u00a0{sign}\u00a0")
    return text


def sample(look: Look) -> Markup:
    """Return an SVG sample of a line for the legend."""
    dash = " ".join(map(str, look.dash)) if look.dash != SOLID else "none"
    return Markup(
        '<svg class="sample" viewBox="0 0 28 12" width="28" height="12" aria-hidden="true">'
        '<line x1="0" x2="28" y1="6" y2="6" '
        'stroke="{0}" stroke-width="2.2" stroke-dasharray="{1}"/>'
        '<path d="{2}" transform="translate(14,6)" fill="{0}"/></svg>'
    ).format(look.colour, dash, SHAPES[look.shape])


def csv_link(table: Table) -> str:
    """Return a data URL with the unrounded numbers of a table."""
    return "data:text/csv;charset=utf-8;base64," + base64.b64encode(csv(table).encode()).decode()


@cache
def library() -> Markup:
    """Return the JavaScript of Vega, Vega-Lite and Vega-Embed in a scope of their own."""
    bundle = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    # The bundle has these two in strings only, where a backslash changes nothing. Without it, the
    # HTML parser would see a tag or a comment.
    bundle = bundle.replace("</script", "<\\/script").replace("<!--", "<\\!--")
    return Markup("(function () {\n" + bundle + "\n})();")
