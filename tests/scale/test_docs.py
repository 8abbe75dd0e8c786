"""The code in the documentation runs."""

import doctest
from pathlib import Path


def test_scale() -> None:
    failed, tried = doctest.testfile(
        str(Path(__file__).parents[2] / "docs" / "scale.md"), module_relative=False
    )
    assert tried > 5
    assert failed == 0
