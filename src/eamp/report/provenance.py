"""How a run was made: versions, machine and date. It is read once, after the run, and kept beside the numbers."""

from __future__ import annotations

import os
import platform
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pandas as pd

import eamp
from eamp.report import number_format as numbers

PACKAGES = ("torch", "torch-geometric", "numba", "numpy", "pandas", "altair", "vl-convert-python")


def provenance() -> dict[str, Any]:
    """Of this process, now."""
    return {
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "versions": {"eamp": eamp.__version__, "Python": platform.python_version(), **installed()},
        "processor": processor(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def installed() -> dict[str, str]:
    """Versions of the packages that a number may depend on."""
    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def processor() -> str:
    """The processor's name, which Python itself does not know on Linux."""
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.lower().startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def run_facts(run: dict[str, Any], cells: pd.DataFrame) -> list[tuple[str, str]]:
    """What the page says of the run, in the order it says it."""
    versions = ", ".join(f"{name} {number}" for name, number in run.get("versions", {}).items())
    facts = [
        ("Command", run.get("command", "")),
        ("Date", run.get("date", "")),
        ("Versions", versions),
    ]
    facts.append(
        (
            "Processor",
            f"{run.get('processor', '')}, {numbers.counted(int(run.get('cores') or 0), 'core')}, {run.get('system', '')}",
        )
    )
    if not cells.empty:
        facts += [
            (
                "Networks trained",
                f"{len(cells)}, width {listed(cells['width'])}, {listed(cells['epochs'])} epochs, protocol {listed(cells['protocol'])}",
            ),
            ("Seeds", listed(cells["seed"])),
            ("Threads per network", listed(cells["threads"])),
            (
                "Training time",
                f"{numbers.duration(float(cells['seconds'].sum()))}, summed over the networks",
            ),
        ]
    return [(fact, words) for fact, words in facts if words]


def listed(values: pd.Series) -> str:
    """Distinct values in order; runs of whole numbers as a range."""
    distinct = sorted(set(values.dropna()))
    whole = (
        all(float(value).is_integer() for value in distinct)
        if pd.api.types.is_numeric_dtype(values)
        else False
    )
    if whole:
        distinct = [int(value) for value in distinct]
        if len(distinct) > 2 and distinct[-1] - distinct[0] == len(distinct) - 1:
            return f"{distinct[0]} to {distinct[-1]}"
        if len(distinct) > 8:
            return f"{distinct[0]} to {distinct[-1]}"
    return ", ".join(map(str, distinct))
