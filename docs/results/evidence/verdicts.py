"""Diagnose networks that the thresholds of the verdict were not set on, into ``verdicts.csv``.

    python docs/results/evidence/verdicts.py          # some minutes
    python docs/results/evidence/verdicts.py --table  # the table of docs/diagnosis.md only

No network is trained. Seeds, widths and graphs are others than those of
``benchmarks/verdict_thresholds.py`` and of the tests.
"""

import csv
import sys
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import networkx
import numpy as np
import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric.nn import GAT, GCN, GIN, GraphSAGE
from torch_geometric.utils import from_networkx

import eamp
from eamp.diagnostics.causes.attribution import scale_free_energy

FILE = Path(__file__).parent / "verdicts.csv"
SEEDS = range(200, 205)
WIDTHS = (48, 96)
FEATURES, CLASSES, NODES = 40, 5, 400
COLLAPSE = ("smoothing", "shrinking", "rank loss")
COLUMNS = ("network", "layers", "width", "graph", "seed", "expected", "found", "lowest energy")
HEADS = ("network", "layers", "should be", "networks", "collapse found", "anything found")

GRAPHS: dict[str, Callable[[int], networkx.Graph]] = {
    "random": lambda seed: networkx.gnp_random_graph(NODES, 8 / NODES, seed=seed),
    "preferential attachment": lambda seed: networkx.barabasi_albert_graph(NODES, 4, seed=seed),
    "small world": lambda seed: networkx.watts_strogatz_graph(NODES, 8, 0.2, seed=seed),
}
NETWORKS: dict[str, Callable[[int, int], Module]] = {
    "GCN": lambda width, layers: GCN(FEATURES, width, layers, CLASSES),
    "SAGE": lambda width, layers: GraphSAGE(FEATURES, width, layers, CLASSES),
    "GIN": lambda width, layers: GIN(FEATURES, width, layers, CLASSES),
    "GAT": lambda width, layers: GAT(FEATURES, width, layers, CLASSES),
    "GATv2": lambda width, layers: GAT(FEATURES, width, layers, CLASSES, v2=True),
    "GCNII": lambda width, layers: eamp.nn.MODELS["gcnii"](FEATURES, width, CLASSES, layers),
}
# Networks, numbers of layers, and whether they should be found healthy.
CASES = (
    (("GCN", "SAGE", "GIN", "GAT", "GATv2"), (2, 3, 4), "healthy"),
    (("GCNII",), (64,), "healthy"),
    (("GCN", "SAGE", "GAT"), (24,), "collapsed"),
)


def diagnoses() -> Iterator[dict[str, str]]:
    """Yield what is found in every network on every graph."""
    for names, depths, expected in CASES:
        for case in product(names, depths, WIDTHS, GRAPHS, SEEDS):
            yield diagnosis(*case, expected)


def diagnosis(
    name: str, layers: int, width: int, kind: str, seed: int, expected: str
) -> dict[str, str]:
    """Return a row of the file: a network, its graph and what is found."""
    x, edge_index = graph_of(kind, seed)
    torch.manual_seed(seed)
    found = eamp.diagnose(NETWORKS[name](width, layers), (x, edge_index))
    kinds = ";".join(finding.kind for finding in found.findings)
    energy = f"{np.nanmin(scale_free_energy(found.table)):.3g}"
    values = (name, str(layers), str(width), kind, str(seed), expected, kinds, energy)
    return dict(zip(COLUMNS, values, strict=True))


def graph_of(kind: str, seed: int) -> tuple[Tensor, Tensor]:
    """Return random features and the edges of a graph."""
    edge_index = from_networkx(GRAPHS[kind](seed)).edge_index
    return torch.randn(NODES, FEATURES, generator=torch.Generator().manual_seed(seed)), edge_index


def counts(rows: list[dict[str, str]]) -> Iterator[tuple[str, ...]]:
    """Yield a row of the table for every network and depth."""
    keys = [(row["network"], row["layers"], row["expected"]) for row in rows]
    for key in dict.fromkeys(keys):
        found = [row["found"].split(";") for row, of in zip(rows, keys, strict=True) if of == key]
        collapsed = sum(any(kind in COLLAPSE for kind in kinds) for kinds in found)
        anything = sum(kinds != [""] for kinds in found)
        yield (*key, str(len(found)), str(collapsed), str(anything))


def table(rows: list[dict[str, str]]) -> str:
    """Return the table of docs/diagnosis.md, and a sentence with the rates."""
    found = list(counts(rows))
    lines = [HEADS, ("---",) * len(HEADS), *found]
    healthy = [row for row in found if row[2] == "healthy"]
    ill = [row for row in found if row[2] == "collapsed"]
    total, alarms = (sum(int(row[k]) for row in healthy) for k in (3, 5))
    deep, seen = (sum(int(row[k]) for row in ill) for k in (3, 4))
    wrong = [row for row in rows if row["expected"] == "healthy" and row["found"]]
    kinds = sorted({kind for row in wrong for kind in row["found"].split(";")})
    energies = [float(row["lowest energy"]) for row in wrong]
    of_which = (
        f", all of them {' or '.join(kinds)}, at energies between {min(energies)} and "
        f"{max(energies)}"
        if wrong
        else ""
    )
    words = (
        f"False alarms: {alarms} of {total} ({alarms / total:.1%}){of_which}.\n"
        f"Missed collapses: {deep - seen} of {deep} ({(deep - seen) / deep:.1%})."
    )
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + f"\n\n{words}"


def read() -> list[dict[str, str]]:
    """Return the rows of ``verdicts.csv``."""
    with FILE.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def main() -> None:
    """Diagnose, write and print."""
    if "--table" not in sys.argv:
        rows = list(diagnoses())
        with FILE.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    sys.stdout.write(f"{table(read())}\n")


if __name__ == "__main__":
    main()
