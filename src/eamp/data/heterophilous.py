"""Three graphs whose neighbours mostly differ in class, each with ten splits.

``minesweeper`` and ``chameleon-filtered`` are those of Platonov, Kuznedelev, Diskin, Babenko and
Prokhorenkova, "A critical look at the evaluation of GNNs under heterophily: are we really making
progress?", ICLR 2023 (arXiv:2302.11640). ``actor`` is the graph of Pei, Wei, Chang, Lei and Yang,
"Geom-GCN", ICLR 2020 (arXiv:2002.05287), as the same authors distribute it.
"""

import io
from collections.abc import Mapping

import numpy as np

from eamp.data.arrays import GraphArrays, canonical
from eamp.data.errors import RefusedError

SIZES = {  # numbers of nodes, undirected edges, features and classes
    "minesweeper": (10000, 39402, 7, 2),
    "chameleon-filtered": (890, 8854, 2325, 5),
    "actor": (7600, 26659, 932, 5),
}


def file_names(name: str) -> tuple[str]:
    """Return the name of a dataset's only file."""
    return (f"{name.replace('-', '_')}.npz",)


def assemble(name: str, files: Mapping[str, bytes]) -> GraphArrays:
    """Build a dataset's arrays from the verified content of its file."""
    (file,) = file_names(name)
    try:
        with np.load(io.BytesIO(files[file]), allow_pickle=False) as stored:
            train, val, test = (
                np.ascontiguousarray(stored[f"{part}_masks"].T) for part in ("train", "val", "test")
            )
            x, pairs, y = stored["node_features"], stored["edges"].T, stored["node_labels"]
            return canonical(x, pairs, y, (train, val, test))
    except Exception as error:  # a damaged zip or array header can raise nearly anything
        raise RefusedError(f"{file} is refused: {error}.") from error
