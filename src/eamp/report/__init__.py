"""The report of a run: one page that needs nothing but itself, figures, and tables. It trains nothing."""

from eamp.report.differences import PROTOCOL_NOTES
from eamp.report.writing import from_folder, write_report

__all__ = ["PROTOCOL_NOTES", "from_folder", "write_report"]
