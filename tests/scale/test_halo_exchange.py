"""Sums over edges and statistics over nodes in three processes, compared with the whole graph."""

from scale.jobs import sums_and_derivatives, together


def test_sums_and_their_derivatives_of_both_orders_are_exact() -> None:
    for found in together(3, sums_and_derivatives):
        assert max(found.values()) < 1e-12, found
