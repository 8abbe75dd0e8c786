"""Formulas as MathML, made when the site is built, so that pages load no script for them."""

import re
from html import unescape

from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

INLINE = re.compile(r'<span class="arithmatex">\\\((.*?)\\\)</span>', re.DOTALL)
BLOCK = re.compile(r'<div class="arithmatex">\s*\\\[(.*?)\\\]\s*</div>', re.DOTALL)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Replace every formula of a page."""
    html = INLINE.sub(lambda match: mathml(match[1], "inline"), html)
    return BLOCK.sub(lambda match: f'<div class="formula">{mathml(match[1], "block")}</div>', html)


def mathml(formula: str, display: str) -> str:
    """Return the MathML of a formula in TeX."""
    formula = unescape(formula).strip()
    if ("&" in formula or r"\\" in formula) and r"\begin" not in formula:
        formula = rf"\begin{{split}}{formula}\end{{split}}"  # as Sphinx does
    return str(convert(formula, display=display))
