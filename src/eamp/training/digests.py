"""Digests of tensors: short texts that differ wherever the tensors differ."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric.data import Data

GRAPH = ("x", "edge_index", "edge_weight", "y", "train_mask", "val_mask", "test_mask")
LINKS = (*GRAPH, "edge_label", "edge_label_index")


def digest(tensors: Mapping[str, Tensor]) -> str:
    """Return the SHA-256 of names, types, shapes and values.

    Example:
        >>> digest({"x": torch.zeros(2)}) == digest({"x": torch.zeros(2, 1)})
        False
    """
    state = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        values = tensor.detach().cpu()
        if values.layout != torch.strided:
            values = values.to_sparse_coo().coalesce()
            state.update(digest({"indices": values.indices()}).encode())
            values = values.values()
        state.update(f"{name} {values.dtype} {tuple(tensor.shape)}\n".encode())
        state.update(values.contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return state.hexdigest()


def data_digest(data: Data, names: Sequence[str] = GRAPH) -> str:
    """Return the digest of everything that training reads from ``data``."""
    return digest({name: data[name] for name in names if data.get(name) is not None})


def joint_digest(digests: Mapping[str, str]) -> str:
    """Return the digest of the named digests of parts.

    Example:
        >>> joint_digest({"train": "a", "val": "b"}) == joint_digest({"train": "ab", "val": ""})
        False
    """
    return hashlib.sha256(json.dumps(sorted(digests.items())).encode()).hexdigest()


def model_digest(model: Module) -> str:
    """Return the digest of a model's layers, their options, and the shapes of its tensors.

    Values of tensors are left out, since process 0 sends its own to the others.
    """
    described = [repr(model)]
    for name, module in model.named_modules():
        values = {**vars(module), "training": None}  # the mode is set by the loop
        plain = {k: v for k, v in values.items() if isinstance(v, bool | int | float | str)}
        described.append(f"{name} {type(module).__name__} {sorted(plain.items())}")
    described += [f"{name} {t.dtype} {tuple(t.shape)}" for name, t in model.state_dict().items()]
    text = re.sub("0x[0-9a-fA-F]+", "", "\n".join(described))  # addresses in memory differ
    return hashlib.sha256(text.encode()).hexdigest()
