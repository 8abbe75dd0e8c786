"""Checkpoints: one safetensors file with weights, optimizer, best weights, random state and history, written in one piece."""

from __future__ import annotations

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
    """A checkpoint that cannot be gone on from."""


def save_checkpoint(
    path: Path,
    model: Module,
    optimizer: Optimizer,
    best: dict[str, Tensor],
    history: Sequence[Sequence[float]],
    fingerprint: dict[str, Any],
) -> None:
    """Write everything that a run needs to go on; a reader sees the old file or the new one, never half of it."""
    tensors = {f"model.{name}": tensor for name, tensor in model.state_dict().items()}
    tensors |= {f"best.{name}": tensor for name, tensor in best.items()}
    tensors |= {
        f"optimizer.{index}.{name}": value
        for index, state in optimizer.state_dict()["state"].items()
        for name, value in state.items()
    }
    tensors["random"] = torch.get_rng_state()
    metadata = {
        "history": json.dumps(history),
        "fingerprint": json.dumps(fingerprint, sort_keys=True),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    try:
        save_file(
            {name: tensor.contiguous().clone() for name, tensor in tensors.items()},
            temporary,
            metadata,
        )
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def load_checkpoint(
    path: Path,
    model: Module,
    optimizer: Optimizer,
    best: dict[str, Tensor],
    fingerprint: dict[str, Any],
    same_run: Callable[[str, str], bool] = eq,
) -> list[list[float]]:
    """Put a saved run back into ``model``, ``optimizer``, ``best`` and torch's random state; returns its history."""
    try:
        with safe_open(path, "pt") as file:
            metadata, tensors = (
                file.metadata(),
                {name: file.get_tensor(name) for name in file.keys()},
            )  # not a dict
    except (SafetensorError, OSError) as error:
        raise CheckpointError(
            f"{path} is no checkpoint of eamp ({error}); delete it to start anew."
        ) from error
    saved = json.loads(metadata["fingerprint"])
    if same_run(saved.get("about", ""), fingerprint.get("about", "")):
        saved["about"] = fingerprint.get("about", "")
    if saved != json.loads(json.dumps(fingerprint)):
        raise CheckpointError(
            f"{path} was written by a run with other settings; delete it or choose another file."
        )

    def part(prefix: str) -> dict[str, Tensor]:
        return {
            name.removeprefix(prefix): tensor
            for name, tensor in tensors.items()
            if name.startswith(prefix)
        }

    try:
        model.load_state_dict(part("model."))
    except RuntimeError as error:
        raise CheckpointError(
            f"{path} holds another network; delete it or choose another file."
        ) from error
    best.update(part("best."))
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in part("optimizer.").items():
        index, key = name.split(".", 1)
        state.setdefault(int(index), {})[key] = tensor
    optimizer.load_state_dict(
        {"state": state, "param_groups": optimizer.state_dict()["param_groups"]}
    )
    torch.set_rng_state(tensors["random"])
    return list(json.loads(metadata["history"]))
