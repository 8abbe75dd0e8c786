"""Checkpoints: one safetensors file with all that a run needs to continue bit for bit."""

import hashlib
import json
import os
import warnings
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor
from torch.nn import Module
from torch.optim import Optimizer

from eamp.files import check_writable, remove_leftovers, write_atomically
from eamp.training.digests import digest


class CheckpointError(ValueError):
    """A checkpoint that a run cannot continue from."""


class DamagedCheckpointError(CheckpointError):
    """A checkpoint that was not written to its end, or has changed since."""


class TrainingWarning(UserWarning):
    """Issued when training goes on in another way than expected, or its result means little."""


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
    metadata = {"history": json.dumps(history), "fingerprint": json.dumps(identity, sort_keys=True)}
    write_atomically(path, save(copies, {**metadata, "digest": content_digest(copies, metadata)}))


def content_digest(tensors: dict[str, Tensor], metadata: dict[str, str]) -> str:
    """Return the digest of all that a checkpoint holds, by which damage is found."""
    texts = [digest(tensors), metadata["history"], metadata["fingerprint"]]
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def prepare_checkpoint(path: Path) -> None:
    """Raise an error before training if the file could not be written; remove leftovers of it."""
    if path.is_dir():
        raise CheckpointError(
            f"a checkpoint is a file, but {path} is a folder; use {path / 'run.safetensors'}."
        )
    check_writable(path.parent)
    remove_leftovers(path)


def set_aside(path: Path, error: DamagedCheckpointError) -> None:
    """Rename a damaged checkpoint, so that the run can start anew, and say so."""
    aside = path.with_name(f"{path.name}.damaged")
    os.replace(path, aside)
    warnings.warn(
        f"{error} The run starts anew; the damaged file is now {aside}.",
        TrainingWarning,
        stacklevel=3,
    )


def load_checkpoint(
    content: bytes,
    path: Path,
    model: Module,
    optimizer: Optimizer,
    best: dict[str, Tensor],
    identity: dict[str, Any],
) -> list[list[float]]:
    """Load a run into ``model``, ``optimizer``, ``best`` and torch's generator.

    ``content`` is that of the file at ``path``.

    Returns:
        The history of the run.

    Raises:
        DamagedCheckpointError: if the file is not whole; nothing has been loaded then.
        CheckpointError: if it is no checkpoint, or one of a run with another identity.
    """
    tensors, metadata = parsed(content, path)
    try:
        saved, history = json.loads(metadata["fingerprint"]), json.loads(metadata["history"])
    except (ValueError, RecursionError) as error:
        raise DamagedCheckpointError(f"{path} is damaged: {error}.") from error
    if saved.get("graph") != identity["graph"]:
        raise CheckpointError(
            f"{path} was written by a run on other data: the graph has changed since. Delete the "
            "file to train on the new data, or choose another file."
        )
    if saved != (wanted := json.loads(json.dumps(identity))):
        names = ", ".join(differing(saved, wanted))
        raise CheckpointError(
            f"{path} was written by a run with other settings ({names}). Choose another file or, "
            "on the command line, another --output; or delete it."
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


def differing(saved: dict[str, Any], wanted: dict[str, Any]) -> list[str]:
    """Return the names of the settings in which two identities of runs differ.

    The settings of a cell stand in ``about`` as JSON; there, those of the protocol are a mapping.
    """
    names = [name for name in wanted if saved.get(name) != wanted[name]]
    with suppress(ValueError, AttributeError):  # another text than that of a cell
        one, other = (json.loads(each.get("about", "")) for each in (saved, wanted))
        if one.get("schema") == other.get("schema"):
            cell = [name for name in {**one, **other} if one.get(name) != other.get(name)]
            names = [*(name for name in cell if name not in ("changes", *names)), *names]
            names = [name for name in names if name != "about"]
    return names


def parsed(content: bytes, path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Return the tensors and the texts in a checkpoint, or raise an error if it is damaged."""
    try:
        tensors = load(content)
        # A safetensors file begins with the length of its header, which is JSON.
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    except (SafetensorError, ValueError, RecursionError) as error:
        raise DamagedCheckpointError(f"{path} is damaged: {error}.") from error
    metadata = header.get("__metadata__") or {}
    if not {"fingerprint", "history"} <= metadata.keys():
        raise CheckpointError(
            f"{path} is no checkpoint of eamp: it has no record of a run; delete it or choose "
            "another file."
        )
    if metadata.get("digest") != content_digest(tensors, metadata):
        raise DamagedCheckpointError(f"{path} is damaged: its content has changed.")
    return tensors, metadata
