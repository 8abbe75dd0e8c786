"""The reproduction of the paper: its recipes, published numbers, figures, findings and report."""

from eamp.paper.differences_from_paper import PROTOCOL_NOTES
from eamp.paper.report import from_folder, write_report

__all__ = ["PROTOCOL_NOTES", "from_folder", "write_report"]
