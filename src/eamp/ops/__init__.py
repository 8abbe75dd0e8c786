"""Sums over the edges of a graph, on several backends; the README beside this file derives them."""

from eamp.ops.addition import added
from eamp.ops.backends import backend
from eamp.ops.channel_sums import channel_squares
from eamp.ops.dropout import dropout, row_dropout
from eamp.ops.normalisers import energy_normaliser, propagation_scale
from eamp.ops.precision import accumulate_dtype, in_dtype, widen
from eamp.ops.step import Variant, add_fused_step, entropy_step, is_fused
from eamp.ops.sums import (
    inner_differences,
    neighbour_sums,
    squared_differences,
    weighted_differences,
)

__all__ = [
    "Variant",
    "accumulate_dtype",
    "add_fused_step",
    "added",
    "backend",
    "channel_squares",
    "dropout",
    "energy_normaliser",
    "entropy_step",
    "in_dtype",
    "inner_differences",
    "is_fused",
    "neighbour_sums",
    "propagation_scale",
    "row_dropout",
    "squared_differences",
    "weighted_differences",
    "widen",
]
