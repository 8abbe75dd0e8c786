"""Experiments: runs that are compared with each other, and with the paper."""
