"""Checkpoints: one safetensors file with all that a run needs to continue bit for bit."""

import json
import os
import tempfile
from collections.abc import Callable, Sequence
from operator import eq
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor
from torch.nn import Module
from torch.optim import Optimizer


class CheckpointError(ValueError):
    """A checkpoint that a run cannot continue from."""


def save_checkpoint(
    path: Path,
    model: Module,
    optimizer: Optimizer,
    best: dict[str, Tensor],
    history: Sequence[Sequence[float]],
    identity: dict[str, Any],
) -> None:
    """Write weights, optimizer, best weights, random state, history and the identity of the run.

    The file is replaced at once: a reader sees the old one or the new one.
    """
    tensors = {f"model.{name}": tensor for name, tensor in model.state_dict().items()}
    tensors |= {f"best.{name}": tensor for name, tensor in best.items()}
    tensors |= {
        f"optimizer.{index}.{name}": value
        for index, state in optimizer.state_dict()["state"].items()
        for name, value in state.items()
    }
    tensors["random"] = torch.get_rng_state()
    copies = {name: tensor.contiguous().clone() for name, tensor in tensors.items()}
    written = json.dumps(identity, sort_keys=True)
    metadata = {"history": json.dumps(history), "fingerprint": written}
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    try:
        save_file(copies, temporary, metadata)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def load_checkpoint(
    path: Path,
    model: Module,
    optimizer: Optimizer,
    best: dict[str, Tensor],
    identity: dict[str, Any],
    same_run: Callable[[str, str], bool] = eq,
) -> list[list[float]]:
    """Load a run into ``model``, ``optimizer``, ``best`` and torch's generator.

    ``same_run`` decides whether the ``about`` in the file and that of ``identity`` mean the same.
    Returns the history of the run; raises a CheckpointError for a file that is no checkpoint, or
    one of a run with another identity.
    """
    try:
        with safe_open(path, "pt") as file:
            names = file.keys()  # the file itself is not iterable
            metadata, tensors = file.metadata(), {name: file.get_tensor(name) for name in names}
        saved, history = json.loads(metadata["fingerprint"]), json.loads(metadata["history"])
    except (SafetensorError, OSError, KeyError, TypeError) as error:
        raise CheckpointError(
            f"{path} is no checkpoint of eamp ({error}); delete it to start anew."
        ) from error
    if same_run(saved.get("about", ""), identity["about"]):
        saved["about"] = identity["about"]
    if saved != json.loads(json.dumps(identity)):
        raise CheckpointError(
            f"{path} was written by a run with other settings; delete it or choose another file."
        )

    def part(prefix: str) -> dict[str, Tensor]:
        return {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}

    try:
        model.load_state_dict(part("model."))
    except RuntimeError as error:
        raise CheckpointError(
            f"{path} holds the weights of another network; delete it or choose another file."
        ) from error
    best.update(part("best."))
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in part("optimizer.").items():
        index, key = name.split(".", 1)
        state.setdefault(int(index), {})[key] = tensor
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": state, "param_groups": groups})
    torch.set_rng_state(tensors["random"])
    return list(history)
