"""Classes of wrapped models of PyG, whose ``repr`` shows the wrapped layers.

PyG's models print a single line, ``GCN(8, 16, num_layers=3)``, and Python takes ``repr`` from the
class. ``wrap`` therefore gives such a model a subclass of its class that prints all modules, as
torch's ``fully_shard`` and ``parametrize`` do in place, and ``unwrap`` gives it back its own.
"""

from functools import cache
from typing import Any

from torch.nn import Module

from eamp.nn.entropy_aware import EntropyAware


class WrappedClass(Module):
    """What :func:`wrapped_class` adds to a class of PyG."""

    def __repr__(self) -> str:
        """Return all modules, or the line of PyG if no layer is wrapped."""
        return Module.__repr__(self) if has_steps(self) else super().__repr__()

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Return how to pickle and copy the model, since no module has its class by name."""
        if own_class(self) is type(self):  # a class that another library has made of it
            return super().__reduce_ex__(protocol)
        parts: Any = super().__reduce_ex__(max(2, protocol))
        _, arguments, *state = parts
        return (new_instance, (own_class(self), *arguments[1:]), *state)


@cache
def wrapped_class(own: Any) -> type[Module]:
    """Return the subclass of a model's own class for its wrapped instances."""
    return type(
        f"{EntropyAware.__name__}{own.__name__}", (WrappedClass, own), {"__doc__": own.__doc__}
    )


def new_instance(own: Any, *arguments: Any) -> Module:
    """Return an empty instance for pickle to fill."""
    kind = wrapped_class(own)
    return kind.__new__(kind, *arguments)


def show_steps(module: Module) -> None:
    """Give a module that has wrapped layers a class that prints them, if PyG's does not."""
    by_pyg = type(module).__repr__.__module__.startswith("torch_geometric.")
    if by_pyg and has_steps(module) and EntropyAware.__name__ not in repr(module):
        module.__class__ = wrapped_class(own_class(module))


def restore_class(module: Module) -> None:
    """Give a module back the class that it had before :func:`show_steps`."""
    if own_class(module) is not type(module):
        module.__class__ = own_class(module)


def own_class(module: Module) -> Any:
    """Return the class that a module had before :func:`show_steps`."""
    kind = type(module)
    return kind.__bases__[1] if kind.__bases__[:1] == (WrappedClass,) else kind


def has_steps(module: Module) -> bool:
    """Return whether a module has wrapped layers."""
    return any(isinstance(child, EntropyAware) for child in module.modules())
