"""The reproduction of the paper: its recipes, published numbers, figures, findings and report."""

from eamp.paper.frames import Frames
from eamp.paper.report import from_folder, write_report

__all__ = ["Frames", "from_folder", "write_report"]
