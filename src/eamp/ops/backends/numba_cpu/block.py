"""The block of numbers that a task reads.

A task takes one pointer, to 64-bit integers: counts, addresses (0 if not given), a flag, and two
real numbers.
"""

TICKET, PARTS, NODES, FEATURES, EDGES, *_addresses = range(25)
ROWPTR, COL, REVERSE, WEIGHT, Q, R, X, Y, PER_EDGE, *_more = _addresses
PER_NODE, SCALE, ENERGY, OUT, BASE, UNIT, BIAS, FLAG, TEMPERATURE, FACTOR, SLOTS = _more
