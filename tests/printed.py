"""Raw figures of docs/results, and the formats in which the pages print them."""

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pandas as pd

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "docs" / "results"
CELLS = pd.read_csv(RESULTS / "depth" / "cells.csv")
MAP = pd.read_csv(RESULTS / "depth" / "where_it_helps.runs.csv")


def text_of(path: str) -> str:
    return (ROOT / path).read_text("utf-8")


def script(path: Path) -> ModuleType:
    """Import a script that stands outside the package, with the modules beside it."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent))
    try:
        sys.modules[path.stem] = module  # dataclasses look their module up
        spec.loader.exec_module(module)
    finally:
        sys.path.pop(0)
    return module


TABLES = script(RESULTS / "tables.py")
COMPARISONS = script(RESULTS / "comparisons.py")


def trained(name: str, depth: int = 64, data: str = "cora") -> pd.DataFrame:
    at = (CELLS["name"] == name) & (CELLS["depth"] == depth) & (CELLS["data"] == data)
    return CELLS[at].set_index("seed")


def mean(part: pd.DataFrame) -> str:
    return COMPARISONS.percent(part["test_accuracy"])


def short(part: pd.DataFrame) -> str:
    """The same as ``mean``, in the style of docs/depth.md: 85.2 ± .7."""
    return mean(part).replace("± 0.", "± .")


PLAIN, RESIDUAL = "plain, identity", "initial residual"
STEP, THROUGH = f"{RESIDUAL}, step", f"{PLAIN}, step differentiated"


def leading_zero(text: str) -> str:
    """Print .5 instead of 0.5."""
    return re.sub(r"\b0\.", ".", text)
