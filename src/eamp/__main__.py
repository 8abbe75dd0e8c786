"""``python -m eamp``."""

import sys

from eamp.cli import main

sys.exit(main())
