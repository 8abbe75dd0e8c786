"""Any single-graph dataset of torch_geometric by name: ``pyg:KarateClub``, ``pyg:WebKB/Cornell``.

PyG downloads and parses these itself, into a folder of the eamp cache; nothing here can vouch for their bytes.
"""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from eamp.data.cache import cache_folder
from eamp.data.digests import DataError
from eamp.data.npz_graphs import graph_of
from eamp.data.splits import MASKS


def from_pyg(dataset: str) -> Data:
    """The graph of ``<Dataset>`` or ``<Dataset>/<name>``, checked as a graph of your own is.

    Args:
        dataset: a class of ``torch_geometric.datasets``, and the ``name`` it takes, if it takes one.
    """
    import torch_geometric.datasets as pyg  # slow: hundreds of modules

    class_name, _, name = dataset.partition("/")
    if class_name not in pyg.__all__:
        raise DataError(
            f"torch_geometric.datasets has no {class_name!r}. Expected pyg:<Dataset>[/<name>], as in pyg:WebKB/Cornell."
        )
    make = getattr(pyg, class_name)
    try:
        found = make(**arguments(make, class_name, name))
        graph = found[0]
    except DataError:
        raise
    except Exception as error:  # whatever PyG's own download or parser raises
        raise DataError(
            f"torch_geometric could not make pyg:{dataset}: {type(error).__name__}: {error}"
        ) from error
    if len(found) != 1 or not isinstance(graph, Data):
        raise DataError(
            f"pyg:{dataset} is {len(found)} graphs of type {type(graph).__name__}; eamp wants one graph with node labels."
        )
    return graph_of(arrays_of(graph, dataset))


def arguments(make: Any, class_name: str, name: str) -> dict[str, str]:
    """``root`` and ``name``, as far as the class takes them."""
    parameters = inspect.signature(make).parameters
    given = {}
    if "root" in parameters:
        given["root"] = str(cache_folder() / "pyg" / class_name)
    if name:
        if "name" not in parameters:
            raise DataError(f"pyg:{class_name} takes no name, but /{name} was given.")
        given["name"] = name
    missing = [
        p.name
        for p in parameters.values()
        if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD and p.name not in given
    ]
    if missing:
        hint = (
            f" Write pyg:{class_name}/<name>."
            if missing == ["name"]
            else " Make it yourself and save its arrays as an .npz."
        )
        raise DataError(f"pyg:{class_name} needs {', '.join(missing)}.{hint}")
    return given


def arrays_of(graph: Data, dataset: str) -> dict[str, Any]:
    """The arrays eamp uses. Masks count only where all three are there: a lone train_mask is no split."""
    names = ["edge_index", "x", "y", "edge_weight"]
    names += MASKS if all(graph.get(mask) is not None for mask in MASKS) else ()
    arrays = {name: graph[name] for name in names if graph.get(name) is not None}
    if odd := [
        name
        for name, value in arrays.items()
        if not isinstance(value, Tensor) or value.layout != torch.strided
    ]:
        raise DataError(
            f"{', '.join(odd)} of pyg:{dataset} must be dense tensors; save them as an .npz of your own."
        )
    return {name: value.numpy() for name, value in arrays.items()}
