"""The cures that a diagnosis proposes, as models that can be built and measured."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module

from eamp.diagnostics import Diagnosis, diagnose
from eamp.diagnostics.advice import Advice, arguments
from eamp.diagnostics.result import headline
from eamp.nn import MODELS, unwrap, wrap


@dataclass(frozen=True)
class Cure:
    """A model that follows the advice, and its diagnosis."""

    name: str
    diagnosis: Diagnosis

    @property
    def words(self) -> str:
        """The verdict on the cured model, in one sentence."""
        return ". ".join(verdict_of(self.diagnosis))


def cures(diagnosis: Diagnosis, model: Module, data: Any) -> tuple[Cure, ...]:
    """Return the cures of ``diagnosis.advice`` that can be built without training.

    These are ``eamp.wrap`` with options, around a copy of the model with its present weights, and
    networks of ``eamp.nn.MODELS``, untrained, of the same depth and widths.
    """
    found = []
    for name, cured in buildable(diagnosis, model, data):
        try:
            found.append(Cure(name, diagnose(cured, data)))
        except (ValueError, TypeError, RuntimeError):
            continue  # a network that takes other arguments than the model
    return tuple(found)


def buildable(diagnosis: Diagnosis, model: Module, data: Any) -> Iterator[tuple[str, Module]]:
    """Yield the name of every cure and its model."""
    for advice in diagnosis.advice:
        if not isinstance(advice, Advice):
            continue
        if advice.options is not None:
            wrapped = wrap(unwrap(copy.deepcopy(model)), **advice.options)
            yield f"eamp.wrap(model, {arguments(advice.options)})", wrapped
        x = data[0] if isinstance(data, tuple | list) else getattr(data, "x", None)
        if advice.model is not None and isinstance(x, Tensor) and x.dim() == 2:
            width = diagnosis.table["width"]
            sizes = (x.size(1), int(width.median()), int(width.iloc[-1]), len(width))
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(0)
                yield f"{advice.model}, untrained", MODELS[advice.model](*sizes).to(x.device)


def verdict_of(diagnosis: Diagnosis) -> tuple[str, str]:
    """Return the verdict, as a heading and a sentence with the numbers."""
    if diagnosis.findings:
        first = diagnosis.findings[0]
        return headline(first, len(diagnosis.table)), sentence(first.words)
    whole = " ".join(str(diagnosis).split())  # of a healthy model
    heading, _, words = whole.partition(": ")
    return heading, sentence(words)


def sentence(words: str) -> str:
    """Return the words with a capital and a full stop."""
    return f"{words[:1].upper()}{words[1:]}".removesuffix(".") + "."
