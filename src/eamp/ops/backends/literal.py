"""The reference backend: the equations of :mod:`eamp.ops.reference`, edge by edge."""

from eamp.ops import reference
from eamp.ops.backends import Backend


class ReferenceBackend(Backend):
    """The oracle that all other backends are tested against."""

    squared_differences = staticmethod(reference.squared_differences)
    inner_differences = staticmethod(reference.inner_differences)
    weighted_differences = staticmethod(reference.weighted_differences)
    neighbour_sums = staticmethod(reference.neighbour_sums)
    channel_products = staticmethod(reference.channel_products)
    channel_differences = staticmethod(reference.channel_differences)
