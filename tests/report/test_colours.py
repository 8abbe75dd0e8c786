import re
from itertools import product
from pathlib import Path

import pytest

import eamp
from eamp.report.colours import FAMILIES, looks


def test_variants_differ_in_their_dashes_and_their_parent_is_solid() -> None:
    found = looks(["Entropic GCN, detached", "Entropic GCN, exact gradient", "Entropic GCN"])
    assert list(found) == ["Entropic GCN, detached", "Entropic GCN, exact gradient", "Entropic GCN"]
    assert len({look.dash for look in found.values()}) == 3
    assert found["Entropic GCN"].dash == (1, 0)


def test_an_unlisted_model_looks_the_same_in_every_figure() -> None:
    assert looks(["Mine", "Other"])["Mine"] == looks(["Third", "Mine"])["Mine"]


def luminance(colour: str) -> float:
    """Relative luminance as WCAG 2 defines it."""
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("name", FAMILIES)
def test_colours_stand_out_on_light_and_on_dark(name: str) -> None:
    value = luminance(FAMILIES[name][0])
    assert 1.05 / (value + 0.05) >= 2.7
    assert (value + 0.05) / (luminance("#151a21") + 0.05) >= 3


def test_models_by_their_names_on_the_command_line_look_like_the_models() -> None:
    found = looks(["gcn", "GCNII", "gcnii", "entropic-deep-gcn"])
    assert found["gcn"].colour == looks(["Basic GCN"])["Basic GCN"].colour
    assert found["gcnii"].colour == found["GCNII"].colour
    assert len({look.colour for look in found.values()}) == 3


CSS = Path(eamp.__file__).parent / "report" / "templates" / "page.css"
MODES = [
    dict(re.findall(r"--([\w-]+): (#\w{6})", line)) for line in CSS.read_text().splitlines()[1:7]
]


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode], ids=["light", "dark"])
def test_the_words_of_a_page_have_the_contrast_of_wcag(mode: dict[str, str]) -> None:
    pairs = [*product(("ink", "soft", "faint", "accent", "far"), ("paper", "ground"))]
    for words, behind in [*pairs, ("warn", "warn-ground")]:
        low, high = sorted(luminance(mode[name]) for name in (words, behind))
        assert (high + 0.05) / (low + 0.05) >= 4.5, (words, behind)
