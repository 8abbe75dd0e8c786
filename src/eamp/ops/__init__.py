"""Sums over the edges of a graph, on several backends; the README beside this file derives everything from them."""

from eamp.ops.backends import backend
from eamp.ops.channel_sums import channel_squares
from eamp.ops.degrees import accumulate_dtype, normaliser, rsqrt_degree_with_loop, without_degrees
from eamp.ops.gcn_layer import relu_gcn_layer
from eamp.ops.part import node_mean, node_sum
from eamp.ops.step import entropy_step
from eamp.ops.sums import (
    inner_differences,
    neighbour_sums,
    squared_differences,
    weighted_differences,
)
from eamp.ops.with_step import Step, with_step

__all__ = [
    "Step",
    "accumulate_dtype",
    "backend",
    "channel_squares",
    "entropy_step",
    "inner_differences",
    "neighbour_sums",
    "node_mean",
    "node_sum",
    "normaliser",
    "relu_gcn_layer",
    "rsqrt_degree_with_loop",
    "squared_differences",
    "weighted_differences",
    "with_step",
    "without_degrees",
]
