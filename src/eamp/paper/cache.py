"""Cache data frames in CSV files that are named after the settings behind their numbers."""

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from eamp.experiments.csv_text import write_csv
from eamp.paper.frames import read_frame

# 48 bits of a digest, so that a collision among thousands of files is out of question.
DIGITS = 12


def cached(
    folder: Path, label: str, settings: Mapping[str, Any], compute: Callable[[], pd.DataFrame]
) -> pd.DataFrame:
    """Return the frame for these settings from its file, or compute it and write the file.

    The name of the file starts with the letters, digits, dots and underscores of ``label``.
    ``settings`` holds everything that the numbers depend on, in a form that JSON can hold.
    """
    slug = re.sub(r"[^\w.]+", "-", label, flags=re.ASCII).strip("-")
    text = json.dumps(settings, sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:DIGITS]
    file = folder / f"{slug}-{digest}.csv"
    if not file.exists():
        write_csv(compute(), file)
    return read_frame(file)
