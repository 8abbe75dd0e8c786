"""Colour, marker shape and dash pattern of every model, the same in all figures."""

import zlib
from collections.abc import Iterable
from dataclasses import dataclass

# The colours have a contrast of about 3 or more against both white and near-black backgrounds. They
# differ under the common forms of colour blindness, and the marker shapes repeat the distinction.
FAMILIES: dict[str, tuple[str, str]] = {
    "Basic GCN": ("#7c8593", "circle"),
    "Entropic GCN": ("#2b7bba", "square"),
    "PairNorm": ("#d55e00", "triangle-up"),
    "G2": ("#0f9d75", "diamond"),
    "GCNII": ("#b8599b", "cross"),
    "entropic-deep-gcn": ("#5a9e1f", "diamond"),
    "Mirrored GCN": ("#6f66cc", "triangle-down"),
    "Residual GCN": ("#a0783c", "triangle-down"),
    "Linear": ("#b39a00", "triangle-right"),
    "EGNN": ("#3aa3c4", "triangle-left"),
    "GRAND": ("#8a6fd1", "circle"),
}
# Other names of the same models, among them those of `eamp models`.
ALIASES = {
    "GCN": "Basic GCN",
    "gcn": "Basic GCN",
    "entropic-gcn": "Entropic GCN",
    "pairnorm": "PairNorm",
    "g2": "G2",
    "gcnii": "GCNII",
    "residual-gcn": "Residual GCN",
    "egnn": "EGNN",
    "grand": "GRAND",
    "Entropic GRAND": "GRAND",
}
SPARE_COLOURS = ("#c98a9b", "#5b72c9", "#a26a5c", "#5a7d9a", "#9a5ea8")
SPARE_SHAPES = ("circle", "square", "diamond", "triangle-up")
SOLID = (1, 0)
DASHES: tuple[tuple[int, ...], ...] = (SOLID, (6, 3), (2, 2), (8, 3, 2, 3), (1, 3))

# Colours of the entropy term in charts without models: where it pushes embeddings apart, that of
# Entropic GCN; where it pulls them together, one that no model has.
PUSH = FAMILIES["Entropic GCN"][0]
PULL = "#c2405b"
SHADES = (PUSH, "#6c9fd0", "#41698c", "#8496a8", "#5b7f8f")  # for several settings of the term
INK = "currentColor"  # the colour of the surrounding text


@dataclass(frozen=True)
class Look:
    """Colour, marker shape and dash pattern of a line; the shape ``stroke`` draws no markers."""

    colour: str
    shape: str = "stroke"
    dash: tuple[int, ...] = SOLID


def family(name: str) -> str:
    """Return the model that a variant belongs to: the text before the first comma.

    Example:
        >>> family("Entropic GCN, detached"), family("GCN")
        ('Entropic GCN', 'Basic GCN')
    """
    parent = name.split(",")[0].strip()
    return ALIASES.get(parent, parent)


def looks(names: Iterable[str]) -> dict[str, Look]:
    """Return the look of every name in one figure.

    Colour and shape depend on the name alone; members of a family differ in their dash pattern.
    """
    names = list(dict.fromkeys(names))
    taken: dict[str, int] = {}
    found: dict[str, Look] = {}
    # The model itself comes before its variants, so that it gets the solid line.
    for name in sorted(names, key=lambda name: name not in (family(name), "GCN")):
        parent = family(name)
        colour, shape = FAMILIES.get(parent) or spare(parent)
        found[name] = Look(colour, shape, DASHES[taken.get(parent, 0) % len(DASHES)])
        taken[parent] = taken.get(parent, 0) + 1
    return {name: found[name] for name in names}


def spare(name: str) -> tuple[str, str]:
    """Return a colour and a shape for an unlisted model, the same in every figure."""
    number = zlib.crc32(name.encode())
    shape = SPARE_SHAPES[number // len(SPARE_COLOURS) % len(SPARE_SHAPES)]
    return SPARE_COLOURS[number % len(SPARE_COLOURS)], shape
