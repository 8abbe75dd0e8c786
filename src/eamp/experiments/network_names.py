"""Names of networks: all that has one name, dataset and depth is one network, with many seeds."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

NETWORK = ["data", "name", "depth"]  # identifies a network up to its seed and split


class Clash(NamedTuple):
    """Two networks of one name.

    Attributes:
        network: dataset, name and depth of both.
        first: the place of the one.
        second: the place of the other.
        settings: the settings in which they differ.
    """

    network: tuple[Any, ...]
    first: int
    second: int
    settings: list[str]


def clash_of(
    networks: Iterable[Mapping[str, Any]], repeated: Iterable[str] = ("seed", "split")
) -> Clash | None:
    """Return the first two networks of one name that are not repetitions of each other.

    Tables show a row for all networks of one name, with their mean.

    Args:
        networks: the settings of every network.
        repeated: the settings in which networks of one name may differ.

    Example:
        >>> gcn = {"data": "cora", "name": "gcn", "depth": 2, "seed": 0, "width": 4}
        >>> clash_of([gcn, {**gcn, "seed": 1}])
        >>> clash_of([gcn, {**gcn, "seed": 1, "width": 8}]).settings
        ['width']
    """
    firsts: dict[tuple[Any, ...], tuple[int, Mapping[str, Any]]] = {}
    free = {*NETWORK, *repeated}
    for place, settings in enumerate(networks):
        network = tuple(settings[key] for key in NETWORK)
        first, found = firsts.setdefault(network, (place, settings))
        different = [name for name in settings if settings[name] != found[name]]
        if differing := [name for name in different if name not in free]:
            return Clash(network, first, place, differing)
    return None
