"""Statistics of energies: of the layers of trained networks, and of untrained ones by depth."""

import pandas as pd

from eamp.paper.published import WIDTH
from eamp.report.number_format import NOTHING

# A network keeps its energy if its deepest version has at least this share of its shallowest's.
KEPT = 0.1


def deepest(layer_energies: pd.DataFrame) -> pd.DataFrame:
    """Return the layers of the deepest networks on each dataset, which Figure 3 shows."""
    greatest = layer_energies.groupby("data")["depth"].transform("max")
    return layer_energies[layer_energies["depth"] == greatest]


def u_curves(layer_energies: pd.DataFrame) -> pd.DataFrame:
    """Summarise the energy by layer of each dataset, model and depth.

    The columns ``first``, ``last`` and ``lowest`` hold energies of single layers, ``lowest_layer``
    the number of the last of them, and ``middle`` the median of the middle third.
    """
    rows = []
    for keys, part in layer_energies.groupby(["data", "name", "depth"], sort=False):
        curve = part.groupby("layer")["energy"].mean().sort_index()
        third = len(curve) // 3
        middle = curve.iloc[third : len(curve) - third].median()
        lowest_layer = curve.idxmin() if curve.notna().any() else NOTHING
        rows.append((*keys, curve.iloc[0], curve.iloc[-1], middle, curve.min(), lowest_layer))
    columns = ["first", "last", "middle", "lowest", "lowest_layer"]
    return pd.DataFrame(rows, columns=["data", "name", "depth", *columns])


def energy_kept(depth_energies: pd.DataFrame) -> pd.DataFrame:
    """Return for every untrained network whether its energy is ``kept`` to its greatest ``depth``.

    ``first`` and ``last`` are the energies of its shallowest and its deepest version.
    """
    means = depth_energies.groupby(["network", "depth"], sort=False)["energy"].mean().reset_index()
    rows = []
    for network, part in means.groupby("network", sort=False):
        by_depth = part.set_index("depth")["energy"].sort_index()
        depth, first, last = int(by_depth.index[-1]), by_depth.iloc[0], by_depth.iloc[-1]
        rows.append((network, depth, first, last, bool(last >= KEPT * first and last > 0)))
    return pd.DataFrame(rows, columns=["network", "depth", "first", "last", "kept"])


def figure_2_threshold(thresholds: pd.DataFrame) -> pd.Series | None:
    """Return the threshold on the grid at the paper's width, or else at the greatest width."""
    grid = thresholds[thresholds["graph"].astype(str).str.startswith("grid")]
    if grid.empty:
        return None
    wanted = grid[grid["width"] == WIDTH]
    return wanted.iloc[0] if not wanted.empty else grid.loc[grid["width"].idxmax()]
