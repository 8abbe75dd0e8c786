"""A torch operator, and a short way to it where nothing is traced.

``torch.compile`` has to see an opaque operator, but torch's way to one written in Python takes as long as summing over Cora's edges does:
66 µs forward and backward for an ordinary autograd function, 195 for an operator. So both are made of the same parts, and a call outside
of any tracing takes the first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch._C import _len_torch_dispatch_stack
from torch.nn import Parameter

Save = Callable[[Any, tuple[Any, ...], Any], None]
"""What to keep for the backward pass: of the context, the inputs and the output."""
Backward = Callable[..., tuple[Tensor | None, ...]]
"""From the context and the gradients of the outputs to those of the inputs; may call operators, to be differentiated again."""

KNOWN = {
    Tensor,
    Parameter,
    type(None),
    bool,
    int,
    float,
    str,
}  # other kinds of tensors may have no contents, or want to see what is called


def traced() -> bool:
    """Whether somebody wants to see operators rather than what they compute: ``torch.compile``, fake tensors, counters of any kind."""
    return torch.compiler.is_compiling() or _len_torch_dispatch_stack() > 0


class Operator:
    """The operator ``registered`` under a name, which is called directly where it can be.

    Args:
        name: ``namespace::name``, of a function that is never given another signature: compiled code on users' disks is keyed by it.
        compute: the function, annotated with types that torch understands.
        like: the shapes: a function of the same arguments that returns empty tensors.
    """

    def __init__(self, name: str, compute: Callable[..., Any], like: Callable[..., Any]) -> None:
        self.registered = torch.library.custom_op(name, compute, mutates_args=())
        self.registered.register_fake(like)
        self.compute = compute
        self.direct: type[torch.autograd.Function] | None = None

    def differentiated(self, backward: Backward, save: Save) -> Operator:
        """The operator, with a derivative."""
        self.registered.register_autograd(backward, setup_context=save)
        compute = self.compute

        def forward(ctx: Any, *given: Any) -> Any:
            out = compute(*given)
            save(ctx, given, out)
            return out

        name = self.registered._opoverload.name().replace("::", "_")
        self.direct = type(
            name,
            (torch.autograd.Function,),
            {"forward": staticmethod(forward), "backward": staticmethod(backward)},
        )
        return self

    def __call__(self, *given: Any) -> Any:
        if traced() or not KNOWN.issuperset(map(type, given)):
            return self.registered(*given)
        if self.direct is None or not torch.is_grad_enabled():
            return self.compute(*given)
        return self.direct.apply(*given)


def operator(name: str, like: Callable[..., Any]) -> Callable[[Callable[..., Any]], Operator]:
    """Make an operator of the decorated function; see :class:`Operator`."""
    return lambda compute: Operator(name, compute, like)


def like_first(x: Tensor, *_: Any) -> Tensor:
    """The shape of a result that is that of the first argument."""
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def like_second(_: Any, x: Tensor, *__: Any) -> Tensor:
    """The same of the second argument."""
    return torch.empty_like(x, memory_format=torch.contiguous_format)
