"""A graph convolution, the entropy step around it and the ReLU after it, in one go where nobody looks in between."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import Module
from torch.nn.modules.module import _has_any_global_hook

from eamp import ops
from eamp.functional import prepare
from eamp.graph import Adjacency
from eamp.nn.entropy_aware import EntropyAware
from eamp.nn.propagation import GCNConv
from eamp.ops.backends import choose
from eamp.ops.operator import KNOWN
from eamp.ops.part import PartCSR


def relu_layer(conv: Module, x: Tensor, edge_index: Adjacency) -> Tensor:
    """``conv(x, edge_index).relu()``: through :func:`eamp.ops.relu_gcn_layer` where that computes the same, otherwise as it is written.

    Hooks, whoever traces (``torch.compile``), autocast and subclasses of what is fused here get what they would expect to see.

    Example:
        >>> import torch
        >>> relu_layer(GCNConv(4, 2), torch.randn(3, 4), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])).min() >= 0
        tensor(True)
    """
    out = fused(conv, x, edge_index) if isinstance(conv, GCNConv | EntropyAware) else None
    return conv(x, edge_index).relu() if out is None else out


def fused(conv: GCNConv | EntropyAware, x: Tensor, edge_index: Adjacency) -> Tensor | None:
    """The layer in one go, or ``None`` where it cannot be."""
    inner = conv.conv if isinstance(conv, EntropyAware) else conv
    if type(inner) is not GCNConv or inner.in_channels < inner.out_channels or not plain(x) or observed(conv, inner, inner.lin):
        return None
    csr, batch, _ = prepare(x, edge_index)
    if isinstance(csr, PartCSR):
        return None
    if isinstance(conv, GCNConv):
        return ops.relu_gcn_layer(x, inner.lin.weight, inner.bias, csr, None)
    if conv.weight == 0 or conv.options["residual"] or conv.options["placement"] != "output" or conv.options["symmetrize"]:
        return None
    step = conv.step_ahead(inner.out_channels, x.dtype, csr, batch, conv.position)
    return None if step is None else ops.relu_gcn_layer(x, inner.lin.weight, inner.bias, csr, step)


def plain(x: Tensor) -> bool:
    """Whether ``x`` is what the kernels of the CPU take, and is not being traced or cast."""
    if torch.compiler.is_compiling() or torch.is_autocast_enabled("cpu"):
        return False
    return type(x) in KNOWN and x.layout == torch.strided and x.dtype in (torch.float32, torch.float64) and choose(x.device) == "numba"


def observed(*modules: Module) -> bool:
    """Whether a hook wants to see what goes into one of ``modules`` or comes out of it."""
    return _has_any_global_hook() or any(
        module._forward_hooks or module._forward_pre_hooks or module._backward_hooks or module._backward_pre_hooks for module in modules
    )
