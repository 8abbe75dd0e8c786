"""A sampler of neighbours in Python, where neither pyg-lib nor torch-sparse is installed."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch_geometric.typing
from torch import Tensor


def give_sampler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give ``NeighborLoader`` a sampler in Python if neither pyg-lib nor torch-sparse is there."""
    if torch_geometric.typing.WITH_PYG_LIB or torch_geometric.typing.WITH_TORCH_SPARSE:
        return

    def neighbor_sample(
        colptr: Tensor, row: Tensor, seeds: Tensor, fanouts: list[int], *_: Any
    ) -> tuple[Tensor, ...]:
        place = {int(seed): number for number, seed in enumerate(seeds)}
        rows, cols, edges, new = [], [], [], seeds.tolist()
        for fanout in fanouts:
            before = len(place)
            for node in new:
                first, last = int(colptr[node]), int(colptr[node + 1])
                kept = (
                    first + torch.randperm(last - first)[: None if fanout < 0 else fanout]
                ).tolist()
                rows += [place.setdefault(int(row[entry]), len(place)) for entry in kept]
                cols += [place[node]] * len(kept)
                edges += kept
            new = list(place)[before:]
        return (
            torch.tensor(rows),
            torch.tensor(cols),
            torch.tensor(list(place)),
            torch.tensor(edges),
        )

    monkeypatch.setattr(torch_geometric.typing, "WITH_PYG_LIB", True)
    monkeypatch.setattr(
        torch.ops, "pyg", SimpleNamespace(neighbor_sample=neighbor_sample), raising=False
    )
