"""Options of ``pandas.read_csv`` with which it returns the very numbers that were written."""

from typing import Any

import pandas as pd

# Pandas 3 does so by itself, and warns of the option that earlier versions need.
EXACT_BY_DEFAULT = int(pd.__version__.split(".")[0]) >= 3
EVERY_DIGIT: dict[str, Any] = {} if EXACT_BY_DEFAULT else {"float_precision": "round_trip"}
