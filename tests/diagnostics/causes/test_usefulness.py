import math

import pytest

from eamp.diagnostics.causes.usefulness import Usefulness
from eamp.diagnostics.verdict import Finding


@pytest.mark.parametrize(
    ("nodes", "then", "harmless", "words"),
    [
        (1000, 0.85, True, "This is harmless"),
        (1000, 0.60, False, "This hurts"),
        (20, 0.85, True, "This is harmless"),
        (20, 0.60, None, "cannot be told from 20 labelled nodes"),
        (20, 0.20, False, "This hurts"),
    ],
)
def test_a_fall_of_accuracy_needs_enough_nodes_to_be_called_harmful_or_harmless(
    nodes: int, then: float, harmless: bool | None, words: str
) -> None:
    found = Usefulness(nodes, 0.9, {}, (0.9, then), math.nan, None)
    judged = found.judged(Finding("smoothing", 2, 2, "neighbours become alike"))
    assert judged.harmless is harmless
    assert words in judged.words
    assert f"0.90 before and {then:.2f} then" in judged.words
