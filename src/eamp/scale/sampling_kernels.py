"""Kernels of the neighbour sampler: lists of incoming edges, and uniform samples from them."""

from typing import Any

import numpy as np
from numba import njit

from eamp.graph.neighbour_lists import OPTIONS, Indices, add_up, mix_long


def incoming_edges(target: Indices, num_nodes: int) -> tuple[Indices, Indices]:
    """Return where the incoming edges of every node begin, and the numbers of these edges.

    Example:
        >>> incoming_edges(np.array([1, 0, 1]), 3)
        (array([0, 1, 3, 3]), array([1, 0, 2]))
    """
    start = np.zeros(num_nodes + 1, np.int64)
    edges = np.empty(target.size, np.int64)
    put_under_targets(target, start, edges)
    return start, edges


@njit(**OPTIONS)
def put_under_targets(target, start, edges):
    """List the edges of every target by counting sort."""
    for e in range(target.size):
        start[target[e] + 1] += 1
    add_up(start)
    place = start[:-1].copy()
    for e in range(target.size):
        edges[place[target[e]]] = e
        place[target[e]] += 1


@njit(**OPTIONS)
def draw_below(state, bound):
    """Return a random number from 0 to ``bound`` − 1, by the generator SplitMix64."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    return np.int64((mix_long(state[0]) >> np.uint64(11)) * (1.0 / 9007199254740992.0) * bound)


@njit(**OPTIONS)
def insert(chosen, count, drawn, last):
    """Put ``drawn`` behind ``count`` chosen numbers, or ``last`` if it is among them.

    This is one step of Floyd's algorithm: with ``drawn`` uniform from 0 to ``last``, the numbers
    chosen for ``last`` = d − k, …, d − 1 are a uniform sample of k out of d.
    """
    for i in range(count):
        if chosen[i] == drawn:
            drawn = last
            break
    chosen[count] = drawn


@njit(**OPTIONS)
def sample_hops(start, edges, source, seeds, fanouts, state, place, nodes, picked, hops):
    """Sample neighbours of the seeds, then of the nodes found, and so on.

    Args:
        start: ``[n + 1]``, where the incoming edges of a node begin.
        edges: ``[m]``, the numbers of incoming edges.
        source: ``[m]``, the source of every edge.
        seeds: the nodes to start from, each once.
        fanouts: neighbours per node and hop; all of them if negative.
        state: ``[1]``, of the random generator.
        place: ``[n]`` of −1, filled with the place of every node that is reached.
        nodes: ``[n]``, filled with the nodes that are reached.
        picked: ``[m]``, filled with the edges that are sampled.
        hops: ``[2, 1 + number of hops]``, filled with the numbers of nodes and edges after it.
    """
    reached = seeds.size
    for i in range(reached):
        nodes[i] = seeds[i]
        place[seeds[i]] = i
    chosen = np.empty(max(fanouts.max(), 1), np.int64)
    begin, count = 0, 0
    hops[0, 0] = reached
    for hop in range(fanouts.size):
        end = reached
        for i in range(begin, end):
            first = start[nodes[i]]
            degree = start[nodes[i] + 1] - first
            size = degree if fanouts[hop] < 0 else min(fanouts[hop], degree)
            if size < degree:
                for k in range(size):
                    last = degree - size + k
                    insert(chosen, k, draw_below(state, last + 1), last)
            for k in range(size):
                edge = edges[first + (chosen[k] if size < degree else k)]
                picked[count] = edge
                count += 1
                if place[source[edge]] < 0:
                    place[source[edge]] = reached
                    nodes[reached] = source[edge]
                    reached += 1
        begin = end
        hops[0, hop + 1], hops[1, hop + 1] = reached, count


def sample(
    start: Indices, edges: Indices, source: Indices, seeds: Indices, fanouts: list[int], seed: Any
) -> tuple[Indices, Indices, Indices, Indices]:
    """Return the nodes that are reached, the edges, the places of all nodes, and the hops.

    Example:
        >>> source, target = np.array([1, 2, 3, 0]), np.array([0, 0, 0, 3])
        >>> incoming = incoming_edges(target, 4)
        >>> nodes, picked, place, hops = sample(*incoming, source, np.array([0]), [-1, 1], 0)
        >>> nodes.tolist(), picked.tolist()
        ([0, 1, 2, 3], [0, 1, 2, 3])
    """
    place = np.full(start.size - 1, -1, np.int64)
    # Pages that are not written to take no memory.
    nodes, picked = np.empty(start.size - 1, np.int64), np.empty(edges.size, np.int64)
    hops = np.zeros((2, 1 + len(fanouts)), np.int64)
    state = np.random.SeedSequence(seed).generate_state(1, np.uint64)
    limits = np.asarray(fanouts, np.int64)
    sample_hops(start, edges, source, seeds, limits, state, place, nodes, picked, hops)
    return nodes[: hops[0, -1]], picked[: hops[1, -1]], place, hops
