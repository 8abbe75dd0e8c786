"""SHA-256 digests of every data file and of every dataset's arrays, and the checks against them.

The Planetoid files are Python pickles, and opening a pickle can run any program. Bytes are
therefore compared with this table before they are parsed, whatever source they come from.
"""

import hashlib
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

import numpy as np
import numpy.typing as npt
from torch_geometric.data import Data

from eamp.data.errors import RefusedError
from eamp.data.splits import MASKS

# By file name, from a list in the format of sha256sum: the files of
# https://github.com/kimiyoung/planetoid, cora.content of LINQS, files of
# https://github.com/yandex-research/heterophilous-graphs, MUTAG's text files, tables of typed
# graphs, molecules, and the archives of the package index that hold copies of them.
_LIST = files("eamp.data").joinpath("SHA256SUMS").read_text(encoding="utf-8")
FILE_DIGESTS = {file: digest for digest, file in map(str.split, _LIST.splitlines())}

# The result of digest_of for the arrays that are assembled from the files above. Every source of a
# dataset must give these.
ARRAY_DIGESTS = {
    "cora": "4bda983795c3eb743ed7744b9a706ef4b9f8c72b7c8aa1554b1b00e1a3f7cb41",
    "citeseer": "6525b278db9db172249af75a3467748aac23c133aea3736212331f517203f171",
    "pubmed": "44bc3714c2cba50240fbc0ad8ae0fffe011fabb34b9980b6d8c851c0394234b8",
    "minesweeper": "968fcf5dc315fa4f749d7249f468487021b7f0c80e47509622eac2e4a78f8245",
    "chameleon-filtered": "51868e120dc40530d66a5582e29300d18ca890d1f1c7ba2e2247f5aa50712124",
    "actor": "e612bbb0e4271ac53a03d808d32d6d288819fa51a3272261e3c8f918135ade5c",
    "imdb": "0b3e4b30d2ffbd03aa65c2274e3e022cd8cf4416aefb8670cad124597172b562",
    "lastfm": "d56a023a5f236c32fb6e161d7cd11b0447692c3529a260a31b3cf8eead905d32",
    "mutag": "affac33c4333b975f59971e096c82cb3cf5f8595d8105465525763b075031dd0",
    "solubility": "064b9cdfc59b09e80b210bf3d7d41a5bc181baa2b9171d4603ece90d2911858d",
}


def verify_file(file: str, content: bytes) -> bytes:
    """Return ``content`` if its SHA-256 is that of ``file``, a name without folders."""
    expected = FILE_DIGESTS.get(file, "a known file name")
    found = hashlib.sha256(content).hexdigest()
    if found != expected:
        raise RefusedError(
            f"{file} is refused: its SHA-256 is {found} ({len(content)} bytes), expected "
            f"{expected}. Fetch the file again, or from another source."
        )
    return content


def verify_arrays(name: str, arrays: Mapping[str, npt.NDArray[Any]], origin: str) -> None:
    """Raise an error that names ``origin`` unless dataset ``name`` has these arrays."""
    found = digest_of(arrays)
    if found != ARRAY_DIGESTS[name]:
        raise RefusedError(
            f"{origin} is refused: the digest of its arrays is {found}, "
            f"expected {ARRAY_DIGESTS[name]}."
        )


def digest_of(arrays: Mapping[str, npt.NDArray[Any]]) -> str:
    """Return the SHA-256 of the names, types, shapes and values of ``arrays``.

    The digest does not depend on the platform, its byte order, or the order of the arrays.
    """
    state = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        little_endian = array.astype(array.dtype.newbyteorder("<"), copy=False)
        state.update(f"{name} {little_endian.dtype.str} {array.shape}\n".encode())
        state.update(np.ascontiguousarray(little_endian).data.cast("B") if array.size else b"")
    return state.hexdigest()


def graph_digest(data: Data) -> str:
    """Return the SHA-256 of a graph's features, edges, edge weights, labels and masks.

    The digest covers types, shapes and values, and is the same in every process. Attributes that
    the graph does not have are left out.

    Example:
        >>> import torch
        >>> data = Data(torch.ones(2, 1), torch.tensor([[0, 1], [1, 0]]))
        >>> before = graph_digest(data)
        >>> data.x[0, 0] = 2.0
        >>> graph_digest(data) == before
        False
    """
    keys = ("x", "edge_index", "edge_weight", "y", *MASKS)
    found = {key: data[key] for key in keys if data.get(key) is not None}
    return digest_of({key: value.detach().cpu().numpy() for key, value in found.items()})
