"""Record how a run was made: date, versions and machine."""

import os
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pandas as pd

import eamp
from eamp.report.number_format import format_count, format_duration

PACKAGES = ("torch", "torch-geometric", "numba", "numpy", "pandas", "altair", "vl-convert-python")
MOST_LISTED = 8  # distinct whole numbers; more are shown as a range


def provenance() -> dict[str, Any]:
    """Return date, versions and machine of the running process."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "versions": {"eamp": eamp.__version__, "Python": platform.python_version(), **installed()},
        "processor": processor(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def installed() -> dict[str, str]:
    """Return the versions of the packages that a number may depend on."""
    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def processor() -> str:
    """Return the processor's name; :mod:`platform` does not know it on Linux."""
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.lower().startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def run_facts(
    run: Mapping[str, Any], cells: pd.DataFrame, planned: int | None = None
) -> list[tuple[str, str]]:
    """Return the facts that the page states about a run and its cells, as names and texts.

    Args:
        run: what :func:`provenance` returns, and the ``command``.
        cells: a row for every trained network.
        planned: how many networks were to be trained.
    """
    cores = format_count(int(run.get("cores") or 0), "core")
    facts = {
        "Command": run.get("command", ""),
        "Date": run.get("date", ""),
        "Versions": ", ".join(f"{name} {text}" for name, text in run.get("versions", {}).items()),
        "Processor": f"{run.get('processor', '')}, {cores}, {run.get('system', '')}",
    }
    if not cells.empty:
        width, epochs, protocol = (either(cells[name]) for name in ("width", "epochs", "protocol"))
        seconds = format_duration(float(cells["seconds"].sum()))
        number = f"{len(cells)} of {planned}" if len(cells) < (planned or 0) else str(len(cells))
        trained = f"{number}; width {width}; {epochs} epochs; protocol {protocol}"
        facts |= {
            "Networks trained": trained,
            "Seeds": seeds_in_words(cells["seed"]),
            "Threads per network": listed(cells["threads"]),
            "Training time": f"{seconds}, summed over the networks",
        }
    return [(fact, words) for fact, words in facts.items() if words]


def seeds_in_words(seeds: pd.Series) -> str:
    """Return how many seeds there are, and which.

    Example:
        >>> seeds_in_words(pd.Series([0, 0])), seeds_in_words(pd.Series([0, 1, 2]))
        ('1 seed (number 0)', '3 seeds (numbers 0 to 2)')
    """
    number = seeds.nunique()
    which = "number" if number == 1 else "numbers"
    return f"{format_count(number, 'seed')} ({which} {listed(seeds)})"


def either(values: pd.Series) -> str:
    """List the distinct values as :func:`listed` does, with "or" before the last.

    Example:
        >>> either(pd.Series([64, 16, 32])), either(pd.Series([64]))
        ('16, 32 or 64', '64')
    """
    return " or ".join(listed(values).rsplit(", ", 1))


def listed(values: pd.Series) -> str:
    """List the distinct values in order; many or consecutive whole numbers become a range.

    Example:
        >>> listed(pd.Series([2, 0, 1, 1])), listed(pd.Series([4, 8]))
        ('0 to 2', '4, 8')
    """
    distinct = sorted(set(values.dropna()))
    if pd.api.types.is_numeric_dtype(values) and all(float(v).is_integer() for v in distinct):
        distinct = [int(value) for value in distinct]
        consecutive = len(distinct) > 2 and distinct[-1] - distinct[0] == len(distinct) - 1
        if consecutive or len(distinct) > MOST_LISTED:
            return f"{distinct[0]} to {distinct[-1]}"
    return ", ".join(map(str, distinct))
