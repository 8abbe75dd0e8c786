"""Measuring the step beside what a user would pick instead: ratios of things timed in one run."""
