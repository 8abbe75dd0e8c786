"""One network, trained once: everything that has to be said to repeat it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch.nn import Module
from torch_geometric.data import Data
from torch_geometric.transforms import NormalizeFeatures

from eamp.data import load
from eamp.nn.models import MODELS
from eamp.scale.process_group import Alone
from eamp.training import PROTOCOLS, Epoch, Protocol, Result, train


@dataclass(frozen=True)
class Cell:
    """A model on a dataset, its depth and seed, and the protocol it is trained under.

    Attributes:
        name: what tables and figures call it.
        entropy: arguments of :class:`eamp.EntropyAware`.
        options: what else the model takes.
        changes: what of the protocol is different here.
        normalize_features: divide every node's features by their sum.
    """

    model: str
    data: str
    depth: int
    name: str = ""
    width: int = 64
    dropout: float = 0.0
    entropy: dict[str, Any] | None = None
    options: dict[str, Any] | None = None
    protocol: str = "standard"
    changes: dict[str, Any] | None = None
    normalize_features: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        if self.model not in MODELS:
            raise ValueError(f"no model named {self.model!r}; there are {', '.join(MODELS)}.")
        if self.protocol not in PROTOCOLS:
            raise ValueError(
                f"no protocol named {self.protocol!r}; there are {', '.join(PROTOCOLS)}."
            )
        if unknown := set(self.changes or {}) - {field.name for field in fields(Protocol)}:
            raise ValueError(
                f"a protocol has no {sorted(unknown)}; it has {', '.join(field.name for field in fields(Protocol))}."
            )
        _ = self.rules  # which says what of the changes cannot be
        object.__setattr__(self, "name", self.name or self.model)

    @property
    def key(self) -> str:
        """All of it as text, the same for the same cell."""
        return json.dumps(asdict(self), sort_keys=True)

    @property
    def rules(self) -> Protocol:
        """The protocol with its changes."""
        return PROTOCOLS[self.protocol].with_changes(**(self.changes or {}))

    def build(self) -> Module:
        """The untrained network, initialised under the seed."""
        graph = load_graph(self.data, self.normalize_features)
        torch.manual_seed(self.seed)
        sizes, options = (
            (graph.num_features, self.width, graph.num_classes, self.depth),
            self.options or {},
        )
        try:
            return MODELS[self.model](*sizes, dropout=self.dropout, entropy=self.entropy, **options)
        except TypeError as error:  # an option that the model does not have
            raise ValueError(
                f"{self.model} cannot be made with {options or self.entropy}: {error}."
            ) from error

    def train(
        self,
        checkpoint: Path | None = None,
        checkpoint_every: int = 50,
        progress: bool = False,
        on_epoch: Callable[[int, Epoch], None] | None = None,
        peers: Alone | None = None,
    ) -> Result:
        """Build it and train it; with ``checkpoint``, go on from there; with ``peers``, on this process' part of the graph."""
        return train(
            self.build(),
            load_graph(self.data, self.normalize_features),
            self.rules,
            seed=self.seed,
            checkpoint=checkpoint,
            checkpoint_every=checkpoint_every,
            progress=progress,
            on_epoch=on_epoch,
            peers=peers,
            about=self.key,
        )


@lru_cache(maxsize=4)
def load_graph(name: str, normalize_features: bool = False) -> Data:
    """A dataset, its features divided by their sum for every node if asked to."""
    graph = load(name)
    return NormalizeFeatures()(graph) if normalize_features else graph
