"""Code blocks of the README and the documentation, as a reader would paste them."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "src").rglob("README.md")]
)
FENCE = re.compile(r"^( *)```(\w+)[^\n]*\n(.*?)^\1```", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """One fenced block of a page."""

    place: str  # page:line
    language: str
    text: str


def blocks(language: str) -> list[Block]:
    """Return every block of a language."""
    found = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for match in FENCE.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            place = f"{page.relative_to(ROOT)}:{line}"
            found.append(Block(place, match[2], match[3]))
    return [block for block in found if block.language == language]


def commands(text: str) -> Iterator[list[str]]:
    """Yield the words of every command; a quotation or a backslash joins lines."""
    pending = ""
    for line in text.splitlines(keepends=True):
        pending += line
        if line.endswith("\\\n"):
            continue
        try:
            words = shlex.split(pending.replace("\\\n", ""), comments=True)
        except ValueError:  # a quotation is still open
            continue
        pending = ""
        if words:
            yield words
    assert not pending, f"the block ends inside a command: {pending}"
