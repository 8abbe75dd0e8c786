"""Benchmarks of eamp: ratios of things timed in one run, and memory measured in fresh processes.

They are not part of the installed package. Run them from a checkout; README.md here says how.
"""
