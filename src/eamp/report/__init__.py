"""Charts, tables and the HTML page of a report, for the results of any recipe."""
