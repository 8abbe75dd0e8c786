"""Cache data frames in CSV files that are named after the settings behind their numbers."""

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from eamp.paper.frames import read_frame

DIGITS = (
    12  # of the digest: 48 bits, so that a collision among thousands of files is out of question
)


def cached(
    folder: Path, label: str, settings: Mapping[str, Any], compute: Callable[[], pd.DataFrame]
) -> pd.DataFrame:
    """Return the frame for these settings from its file, or compute it and write the file.

    Args:
        folder: Folder of the files; it is created if needed.
        label: Readable start of the file name; letters, digits, dots and underscores remain.
        settings: Everything that the numbers depend on, as JSON can hold it.
        compute: Computes the frame.
    """
    slug = re.sub(r"[^\w.]+", "-", label, flags=re.ASCII).strip("-")
    text = json.dumps(settings, sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:DIGITS]
    file = folder / f"{slug}-{digest}.csv"
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = file.with_suffix(".part")
        compute().to_csv(unfinished, index=False)
        unfinished.replace(file)
    return read_frame(file)
