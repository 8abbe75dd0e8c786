"""Measures of an embedding, as plain functions."""
