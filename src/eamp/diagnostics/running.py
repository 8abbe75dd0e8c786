"""Call a model on data as it wants to be called, with gradients where there are any."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import Module
from torch.nn.parameter import is_lazy
from torch_geometric.data import Data


def run_model(model: Module, data: Any, record: bool = False) -> Any:
    """Call ``model`` with a tuple of arguments, or with the attributes of ``data`` it names.

    A model that names none gets ``data`` as its only argument, or ``data.x`` and
    ``data.edge_index`` as its first two. With ``record``, features are passed as a tensor that
    requires gradients.
    """
    signature = inspect.signature(model.forward)
    args, named = arguments_of(signature, data)
    try:
        signature.bind(*args, **named)
    except TypeError as error:
        raise TypeError(
            f"{type(model).__name__}.forward{signature} does not fit the data: {error}. Pass its "
            "arguments as a tuple, as in (data.x, data.edge_index), or a function that calls it, "
            "run=lambda model, data: model(...)."
        ) from None
    if record:
        args = [recorded(value) if k == 0 else value for k, value in enumerate(args)]
        named = {k: recorded(value) if k == "x" else value for k, value in named.items()}
    return model(*args, **named)


def recorded(x: Any) -> Any:
    """Return features as a tensor that requires gradients, and anything else as it is."""
    features = isinstance(x, Tensor) and x.is_floating_point() and x.layout == torch.strided
    return x.detach().requires_grad_() if features and not x.requires_grad else x


def has_derivatives(model: Module, data: Any) -> bool:
    """Return whether gradients can be had: inference mode has none, nor have tensors made in it."""
    given = data.to_dict() if isinstance(data, Data) else data
    given = [*given.values()] if isinstance(given, Mapping) else given
    tensors = [x for x in (*model.parameters(), *model.buffers()) if not is_lazy(x)]
    if isinstance(given, tuple | list):
        tensors += [x for x in given if isinstance(x, Tensor)]
    return not (torch.is_inference_mode_enabled() or any(x.is_inference() for x in tensors))


def arguments_of(signature: inspect.Signature, data: Any) -> tuple[Sequence[Any], dict[str, Any]]:
    """Return the positional and the named arguments of a model that is run on ``data``."""
    if isinstance(data, tuple | list):
        if wrong := [type(each).__name__ for each in data if isinstance(each, np.ndarray | list)]:
            raise TypeError(
                f"a model is run on tensors, but got a {wrong[0]}: torch.as_tensor(it)."
            )
        return data, {}
    if not hasattr(data, "keys"):  # neither a Data nor a mapping
        raise TypeError(
            "data must be a torch_geometric Data, or the model's arguments as a tuple "
            f"(x, edge_index), but is a {type(data).__name__}."
        )
    parameters = signature.parameters
    named = {name: data[name] for name in parameters if name in data and data[name] is not None}
    needed = [
        p.name
        for p in parameters.values()
        if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    if ("x" in named or "edge_index" in named) and named.keys() >= set(needed):
        return (), named
    if len(needed) == 1 and not named:
        return (data,), {}
    if missing := [name for name in ("x", "edge_index") if name not in data]:
        raise ValueError(f"data has no {' and no '.join(missing)}, which the model needs.")
    return (data["x"], data["edge_index"]), {}


@contextmanager
def evaluation_mode(model: Module) -> Iterator[None]:
    """Put the model into evaluation mode, and afterwards every module back into its own mode."""
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        yield
    finally:
        for module, training in modes.items():
            module.training = training
