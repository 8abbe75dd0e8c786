"""Show and write what was measured. Ratios come first: they can be compared between machines."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def add_output(parser: argparse.ArgumentParser) -> None:
    """Add the option ``--output``."""
    parser.add_argument("--output", type=Path, help="write the figures to this JSON file, too")


def write_results(results: Any, path: Path | None) -> None:
    """Write ``results`` to ``path``, if there is one."""
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


def both(ratio: Mapping[str, float]) -> str:
    """Format a ratio: the median, and in brackets that of the fastest rounds."""
    return f"{ratio['median']:.2f} ({ratio['fastest']:.2f})"


def size_of(result: dict[str, Any]) -> str:
    """Return the size of a graph and its features in words."""
    return f"{result['nodes']:,} nodes, {result['edges']:,} edges, {result['features']} features"
