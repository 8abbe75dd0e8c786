"""A torch operator that is called directly where nothing traces it.

``torch.compile`` needs an opaque operator. But the dispatch of an operator written in Python takes
as long as summing over Cora's edges: 66 µs forward and backward for an autograd function, 195 µs
for an operator. So both are made of the same functions, and a call outside of tracing takes the
first.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch._C import _len_torch_dispatch_stack
from torch.nn import Parameter

from eamp.graph import CSR
from eamp.graph.transforms import batched, transformed
from eamp.ops.backends import load

Save = Callable[[Any, tuple[Any, ...], Any], None]
"""A function of context, inputs and output that saves tensors for the backward pass."""
Backward = Callable[..., tuple[Tensor | None, ...]]
"""A function from the context and the gradients of the outputs to those of the inputs."""

# Other kinds of tensors may have no contents, or want to see which operator is called.
KNOWN = {Tensor, Parameter, type(None), bool, int, float, str}
CSR_SCHEMA = "Tensor rowptr, Tensor col, Tensor reverse, Tensor? edge_weight"


def traced() -> bool:
    """Return whether ``torch.compile``, fake tensors or a dispatch mode want to see operators."""
    return torch.compiler.is_compiling() or _len_torch_dispatch_stack() > 0


class Operator:
    """An operator under a name, which is called directly where nothing traces it.

    Args:
        name: ``namespace::name``, of a function that is never given another signature: compiled
            code on users' disks is keyed by it.
        compute: the function.
        like: the shapes: a function of the same arguments that returns empty tensors.
        plain: ``compute`` in torch's own operators, which transforms of ``torch.func``,
            forward-mode AD and batched gradients see through.
        schema: the types of arguments and results, in torch's notation; read off the annotations
            of ``compute`` when left out.
        constants: how many of the last arguments never have a derivative. Autograd gets them as
            one object, since every argument costs it half a microsecond.
    """

    def __init__(
        self,
        name: str,
        compute: Callable[..., Any],
        like: Callable[..., Any],
        plain: Callable[..., Any],
        schema: str | None = None,
        constants: int = 0,
    ) -> None:
        self.registered = torch.library.custom_op(name, compute, mutates_args=(), schema=schema)
        self.constants = constants
        self.registered.register_fake(like)
        self.compute, self.plain = compute, plain
        self.direct: type[torch.autograd.Function] | None = None

    def differentiated(self, backward: Backward, save: Save) -> "Operator":
        """Add a derivative, and return the operator."""
        self.registered.register_autograd(backward, setup_context=save)
        compute = self.compute

        def forward(ctx: Any, *given: Any) -> Any:
            *operands, constants = given
            out = compute(*operands, *constants)
            save(ctx, (*operands, *constants), out)
            return out

        def direct_backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
            return *backward(ctx, *grads)[: len(ctx.needs_input_grad) - 1], None

        name = self.registered._opoverload.name().replace("::", "_")
        methods = {"forward": staticmethod(forward), "backward": staticmethod(direct_backward)}
        self.direct = type(name, (torch.autograd.Function,), methods)
        return self

    def __call__(self, *given: Any) -> Any:
        """Compute directly, or through torch's dispatcher while something traces."""
        # Every operator takes a tensor first. One on the device "meta" has no contents.
        if traced() or given[0].is_meta or not KNOWN.issuperset(map(type, given)):
            return self.registered(*given)
        first = len(given) - self.constants
        if transformed() or batched(given[:first]):
            return self.plain(*given)
        if self.direct is None or not torch.is_grad_enabled():
            return self.compute(*given)
        return self.direct.apply(*given[:first], given[first:])


def graph_operator(
    name: str,
    inputs: str,
    like: Callable[..., Any],
    outputs: str = "Tensor",
    constants: int = 0,
) -> Callable[[Callable[..., Any]], Operator]:
    """Return a decorator for a function ``(*inputs, backend, csr)``.

    The last ``constants`` of the inputs never have a derivative.

    After its inputs, the operator takes the four tensors of a :class:`CSR` and a backend by name,
    because operators take neither objects nor tuples.
    """

    def decorate(function: Callable[..., Any]) -> "Operator":
        def compute(*given: Any) -> Any:
            *operands, rowptr, col, reverse, edge_weight, backend = given
            return function(*operands, load(backend), CSR(rowptr, col, reverse, edge_weight))

        def plain(*given: Any) -> Any:
            return compute(*given[:-1], "edges")

        schema = f"({inputs}, {CSR_SCHEMA}, str backend) -> {outputs}"
        return Operator(name, compute, like, plain, schema, constants + 5)

    return decorate


def like_first(x: Tensor, *_: Any) -> Tensor:
    """Return an empty tensor in the shape of the first argument."""
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def like_second(_: Any, x: Tensor, *__: Any) -> Tensor:
    """Return an empty tensor in the shape of the second argument."""
    return torch.empty_like(x, memory_format=torch.contiguous_format)
