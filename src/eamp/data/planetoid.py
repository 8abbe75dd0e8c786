"""Cora, CiteSeer and PubMed: from the verified Planetoid files to arrays, with the public split.

The graphs and the split are those of Yang, Cohen and Salakhutdinov, "Revisiting Semi-Supervised
Learning with Graph Embeddings", ICML 2016 (arXiv:1603.08861).
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from eamp.data.arrays import GraphArrays, canonical
from eamp.data.cora_labels import cora_labels
from eamp.data.errors import RefusedError
from eamp.data.safe_pickle import PickledMatrix, unpickle

SUFFIXES = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
NUM_VAL = 500  # of the public split, see the paper above
SIZES = {  # numbers of nodes, undirected edges, features and classes
    "cora": (2708, 5278, 1433, 7),
    "citeseer": (3327, 4552, 3703, 6),
    "pubmed": (19717, 44324, 500, 3),
}


def file_names(name: str) -> tuple[str, ...]:
    """Return the names of a dataset's eight files."""
    return tuple(f"ind.{name}.{suffix}" for suffix in SUFFIXES)


def assemble(name: str, files: Mapping[str, bytes]) -> GraphArrays:
    """Build a dataset's arrays from the verified contents of its files, by file name.

    The files are all eight ``ind.<name>.*``, or for Cora ``cora.content`` in place of the three
    label files.
    """
    try:
        return arrays_from_files(name, files)
    except RefusedError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise RefusedError(
            f"the files ind.{name}.* are refused: they do not fit together ({error})."
        ) from error


def arrays_from_files(name: str, files: Mapping[str, bytes]) -> GraphArrays:
    """Build a dataset's arrays; wrong files raise whatever NumPy and Python raise."""

    def content(suffix: str) -> Any:
        return unpickle(f"ind.{name}.{suffix}", files[f"ind.{name}.{suffix}"])

    def features(suffix: str) -> npt.NDArray[np.float32]:
        matrix = content(suffix)
        if not isinstance(matrix, PickledMatrix):
            raise TypeError(
                f"ind.{name}.{suffix} holds {type(matrix).__name__}, expected a sparse matrix"
            )
        return matrix.dense()

    known, test_rows, num_train = features("allx"), features("tx"), features("x").shape[0]
    test = np.array(files[f"ind.{name}.test.index"].split(), dtype=np.int64)
    nodes = int(test.max()) + 1

    # Row k of tx belongs to node test[k]. Nodes that test.index leaves out (15 isolated nodes of
    # CiteSeer) keep rows of zeros.
    x = np.zeros((nodes, known.shape[1]), dtype=np.float32)
    x[: len(known)], x[test] = known, test_rows
    if "cora.content" in files:
        y = cora_labels(x, files["cora.content"])
    else:
        one_hot = np.zeros((nodes, content("ally").shape[1]), dtype=np.int64)
        one_hot[: len(known)], one_hot[test] = content("ally"), content("ty")
        y = one_hot.argmax(axis=1)

    ids = np.arange(nodes)
    train, val = ids < num_train, (ids >= num_train) & (ids < num_train + NUM_VAL)
    neighbours = content("graph")
    pairs = np.array([(i, j) for i in neighbours for j in neighbours[i]], dtype=np.int64)
    return canonical(x, pairs.reshape(-1, 2).T, y, (train, val, np.isin(ids, test)))
