"""Docstrings in reStructuredText, as PyG writes them, turned into the Markdown of the site."""

import re
import textwrap
from typing import Any

import griffe

ROLE = re.compile(r":(?:class|func|meth|attr|data|mod|exc):`([^`]+)`")
INLINE_MATH = re.compile(r":math:`([^`]+)`")
BLOCK_MATH = re.compile(r"^( *)\.\. math::([^\n]*\n(?:\1 +[^\n]*\n|\n)*)", re.MULTILINE)
LINK = re.compile(r"`([^`<]+?)\s*<(https?://[^>]+)>`_+")


def markdown(text: str) -> str:
    """Return a docstring in Markdown."""
    text = BLOCK_MATH.sub(block, text + "\n")
    text = INLINE_MATH.sub(r"$\1$", text)
    text = LINK.sub(lambda match: f"[{' '.join(match[1].split())}]({match[2]})", text)
    text = ROLE.sub(reference, text)
    # Griffe knows the section by this name.
    return re.sub(r"^( *)Example:$", r"\1Examples:", text, flags=re.MULTILINE).rstrip()


def block(match: re.Match[str]) -> str:
    """Return a formula on lines of its own."""
    formula = textwrap.dedent(match[2]).strip()
    return textwrap.indent(f"\n$$\n{formula}\n$$\n\n", match[1])


def reference(match: re.Match[str]) -> str:
    """Return a name as code, with a link if the site documents it."""
    name = match[1].removeprefix("~")
    shown = name.rpartition(".")[2] if match[1].startswith("~") else name
    if name.startswith("eamp."):
        return f'<autoref identifier="{name}" optional><code>{shown}</code></autoref>'
    return f"`{shown}`"


class Markdown(griffe.Extension):
    """Turn every docstring into Markdown before Griffe parses it."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Change the docstring of one object."""
        if obj.docstring:
            obj.docstring.value = markdown(obj.docstring.value)
