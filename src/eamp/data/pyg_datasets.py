"""Single-graph datasets of torch_geometric by name: ``pyg:KarateClub``, ``pyg:WebKB/Cornell``.

PyG downloads and parses these itself, into a folder of the eamp cache. Their bytes are not
verified; the resulting graph is checked like a graph of your own.
"""

import inspect
from typing import Any

import torch
import torch_geometric.datasets as pyg
from torch import Tensor
from torch_geometric.data import Data

from eamp.data.cache import cache_folder
from eamp.data.errors import DataError
from eamp.data.npz_graphs import data_from_arrays
from eamp.data.splits import MASKS


def from_pyg(dataset: str) -> Data:
    """Return the graph of ``<Dataset>[/<name>]``, a PyG class and its argument ``name``."""
    class_name, _, name = dataset.partition("/")
    if class_name not in pyg.__all__:
        raise DataError(
            f"torch_geometric.datasets has no {class_name!r}. "
            "Expected pyg:<Dataset>[/<name>], as in pyg:WebKB/Cornell."
        )
    make = getattr(pyg, class_name)
    arguments = constructor_arguments(make, class_name, name)
    try:
        found = make(**arguments)
        graph = found[0]
    except Exception as error:  # whatever PyG's own download or parser raises
        raise DataError(
            f"torch_geometric could not make pyg:{dataset}: {type(error).__name__}: {error}"
        ) from error
    if len(found) != 1 or not isinstance(graph, Data):
        raise DataError(
            f"pyg:{dataset} has {len(found)} graphs of type {type(graph).__name__}; "
            "expected one Data with node labels. Choose a dataset for node classification."
        )
    return data_from_arrays(arrays_of(graph, dataset))


def constructor_arguments(make: Any, class_name: str, name: str) -> dict[str, str]:
    """Return ``root`` and ``name``, as far as the dataset's class takes them."""
    parameters = inspect.signature(make).parameters
    given = {}
    if "root" in parameters:
        given["root"] = str(cache_folder() / "pyg" / class_name)
    if name:
        if "name" not in parameters:
            raise DataError(
                f"pyg:{class_name} takes no name, but /{name} was given. Write pyg:{class_name}."
            )
        given["name"] = name
    missing = [
        p.name
        for p in parameters.values()
        if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD and p.name not in given
    ]
    if missing:
        hint = "Make the dataset yourself and save its arrays as an .npz file."
        if missing == ["name"]:
            hint = f"Write pyg:{class_name}/<name>."
        raise DataError(f"pyg:{class_name} needs {', '.join(missing)}. {hint}")
    return given


def arrays_of(graph: Data, dataset: str) -> dict[str, Any]:
    """Return the arrays that eamp uses, with masks only if all three are there."""
    names = ["edge_index", "x", "y", "edge_weight"]
    names += MASKS if all(graph.get(mask) is not None for mask in MASKS) else ()
    arrays = {name: graph[name] for name in names if graph.get(name) is not None}
    for name, value in arrays.items():
        kind = value.layout if isinstance(value, Tensor) else type(value).__name__
        if kind != torch.strided:
            raise DataError(
                f"{name} of pyg:{dataset} is {kind}, expected a dense tensor. "
                "Convert it and save the graph as an .npz file."
            )
    return {name: value.numpy() for name, value in arrays.items()}
