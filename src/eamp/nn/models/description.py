"""What the models of the dictionary are, in words: from their signatures and docstrings."""

import inspect
import re
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple

from torch.nn import Module

from eamp.nn.models.registry import MODELS, from_pyg, with_entropy

SHARED = ("dropout", "entropy", "checkpoint", "default")  # arguments of all models, and a preset


class Description(NamedTuple):
    """A model in words.

    Attributes:
        name: its name on the command line.
        summary: one line about it.
        entropy: whether it takes the entropy step ``"always"``, if ``"asked"`` to, or ``"never"``.
        options: the names of its own arguments; those of PyG's models are not known here.
    """

    name: str
    summary: str
    entropy: Literal["always", "asked", "never"]
    options: tuple[str, ...]


def describe(name: str) -> Description:
    """Return a model of :data:`MODELS` in words.

    Example:
        >>> describe("gcnii")
        Description(name='gcnii', summary='GCNII: DeepGCN with layers of GCNIIConv.',
                    entropy='asked', options=('alpha', 'theta'))
        >>> describe("entropic-gcnii").summary
        'gcnii, with the entropy step.'
    """
    builders, kind = unpacked(MODELS[name])
    taken = [option for part in (*builders, kind) for option in arguments(part)]
    entropy: Literal["always", "asked", "never"] = "asked" if "entropy" in taken else "never"
    if with_entropy in builders:
        entropy = "always"
    own = dict.fromkeys(option for option in taken if option not in SHARED)
    return Description(name, summary(name), entropy, () if from_pyg in builders else tuple(own))


def unpacked(model: Callable[..., Module]) -> tuple[list[Callable[..., Any]], Callable[..., Any]]:
    """Return the functions that build a model of the dictionary, and the class inside them."""
    builders: list[Callable[..., Any]] = []
    while isinstance(model, partial):
        builders.append(model.func)
        model = model.args[0]
    return builders, model


def arguments(part: Callable[..., Any]) -> list[str]:
    """Return the keyword arguments of a class or function.

    If it takes any others, the entry ``**...`` of its docstring says which they are.
    """
    parameters = inspect.signature(part).parameters.values()
    names = [each.name for each in parameters if each.kind is inspect.Parameter.KEYWORD_ONLY]
    if any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters):
        entry = re.search(r"^ *\*\*\w+: (.*?)\n\n", inspect.getdoc(part) or "", re.S | re.M)
        names += re.findall(r"``(\w+)``", entry[1]) if entry else []
    return names


def summary(name: str) -> str:
    """Return one line about a model of the dictionary."""
    model = MODELS[name]
    first = next(other for other, known in MODELS.items() if known is model)
    if first != name:
        return f"Another name of {first}."
    builders, kind = unpacked(model)
    if not builders:
        return first_line(kind)
    inner = next((other for other, known in MODELS.items() if known is kind), "")
    if builders[0] is with_entropy:
        return f"{inner}, with the entropy step."
    if builders[0] is from_pyg:
        return f"{kind.__name__} of PyG, with its options."
    return f"{first_line(inspect.signature(builders[0]).return_annotation)[:-1]}; here {inner}."


def first_line(documented: object) -> str:
    """Return the first line of a docstring as plain text."""
    line = (inspect.getdoc(documented) or "").partition("\n")[0]
    return re.sub(r":\w+:`(?:[\w.]*\.)?(\w+)`|``(.*?)``|\*(\w+)\*", r"\1\2\3", line)
