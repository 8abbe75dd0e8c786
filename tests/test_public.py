"""What a user meets first: the names, their documentation, the version."""

import importlib.metadata
import inspect
import subprocess
import sys

import pytest

import eamp


@pytest.mark.parametrize("name", eamp.__all__)
def test_every_public_name_is_there_and_documented(name: str) -> None:
    thing = getattr(eamp, name)
    text = inspect.getdoc(thing) or ""
    assert text, name
    if not (inspect.isclass(thing) and issubclass(thing, Exception)):
        assert ">>>" in text, f"{name} has no example"


def test_nothing_heavy_is_imported_before_it_is_used() -> None:
    subprocess.run(
        [sys.executable, "-c", "import sys, eamp; sys.exit('torch' in sys.modules)"], check=True
    )


def test_the_package_knows_its_version() -> None:
    assert importlib.metadata.version("eamp") == eamp.__version__


def test_unknown_names_are_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = eamp.nothing
    assert set(eamp.__all__) <= set(dir(eamp))
    assert {"nn", "data", "training", "scale", "report"} <= set(dir(eamp))
    assert all(getattr(eamp, name) is not None for name in dir(eamp))
