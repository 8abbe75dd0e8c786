"""One colour and one shape per model, in every figure; a variant has its parent's colour and shape, and dashes of its own."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass

# Readable on white and on near-black alike (contrast above 3), and told apart in the common forms of colour blindness; shapes say it again.
FAMILIES: dict[str, tuple[str, str]] = {
    "Basic GCN": ("#7c8593", "circle"),
    "Entropic GCN": ("#2b7bba", "square"),
    "PairNorm": ("#d55e00", "triangle-up"),
    "G2": ("#0f9d75", "diamond"),
    "GCNII": ("#b8599b", "cross"),
    "Residual GCN": ("#a0783c", "triangle-down"),
    "Linear": ("#b39a00", "triangle-right"),
    "EGNN": ("#3aa3c4", "triangle-left"),
    "GRAND": ("#8a6fd1", "circle"),
}
ALIASES = {"GCN": "Basic GCN", "Entropic GRAND": "GRAND"}
PROMINENT = ("Basic GCN", "Entropic GCN", "PairNorm", "G2")
SPARE_COLOURS = ("#c98a9b", "#5b8c2a", "#a26a5c", "#5a7d9a", "#9a5ea8")
SPARE_SHAPES = ("circle", "square", "diamond", "triangle-up")
DASHES: tuple[tuple[int, ...], ...] = ((1, 0), (6, 3), (2, 2), (8, 3, 2, 3), (1, 3))

# The entropy term itself, where no model is meant: pushes in the colour of the network that has it, pulls in one that no model has.
PUSH = FAMILIES["Entropic GCN"][0]
PULL = "#c2405b"
INK = "currentColor"  # neither: the colour of the text around it


@dataclass(frozen=True)
class Look:
    """How a model is drawn; the shape ``stroke`` means a line without points."""

    colour: str
    shape: str
    dash: tuple[int, ...]
    prominent: bool  # one of the paper's four


def family(name: str) -> str:
    """The model a variant is a variant of: what stands before the first comma.

    Example:
        >>> family("Entropic GCN, detached"), family("GCN")
        ('Entropic GCN', 'Basic GCN')
    """
    parent = name.split(",")[0].strip()
    return ALIASES.get(parent, parent)


def looks(names: Iterable[str]) -> dict[str, Look]:
    """A look for every name of one figure. Colour and shape depend on the name alone; dashes tell members of a family apart."""
    names = list(dict.fromkeys(names))
    taken: dict[str, int] = {}
    found: dict[str, Look] = {}
    for name in sorted(
        names, key=lambda name: name not in (family(name), "GCN")
    ):  # a model under its own name is drawn solid
        parent = family(name)
        colour, shape = FAMILIES.get(parent) or spare(parent)
        found[name] = Look(
            colour, shape, DASHES[taken.get(parent, 0) % len(DASHES)], parent in PROMINENT
        )
        taken[parent] = taken.get(parent, 0) + 1
    return {name: found[name] for name in names}


def spare(name: str) -> tuple[str, str]:
    """A colour and a shape for a model that is not listed above, the same in every figure."""
    number = zlib.crc32(name.encode())
    return SPARE_COLOURS[number % len(SPARE_COLOURS)], SPARE_SHAPES[
        number // len(SPARE_COLOURS) % len(SPARE_SHAPES)
    ]
