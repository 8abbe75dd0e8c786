"""The options of the entropy step, its schedules, its metric and its threshold."""
