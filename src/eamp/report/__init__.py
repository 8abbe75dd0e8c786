"""Charts, tables and pages of any recipe."""
