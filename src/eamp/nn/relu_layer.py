"""A graph convolution, the entropy step around it and the ReLU after it, in one go where nobody looks in between."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import Module
from torch.nn.modules.module import _has_any_global_hook
from torch_geometric.nn.dense.linear import Linear

from eamp import ops
from eamp.functional import prepare
from eamp.graph import Adjacency
from eamp.nn.conv.gcn_conv import GCNConv
from eamp.nn.entropy_aware import EntropyAware
from eamp.ops.backends import choose
from eamp.ops.operator import KNOWN, traced
from eamp.ops.part import PartCSR


def relu_layer(conv: Module, x: Tensor, edge_index: Adjacency, as_one: bool) -> Tensor:
    """``conv(x, edge_index).relu()``; if ``as_one``, which :func:`can_be_one` says, through :func:`eamp.ops.relu_gcn_layer`.

    Example:
        >>> import torch
        >>> conv = GCNConv(4, 2)
        >>> relu_layer(conv, torch.randn(3, 4), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), can_be_one(conv)).min() >= 0
        tensor(True)
    """
    out = (
        fused(conv, x, edge_index) if as_one and isinstance(conv, GCNConv | EntropyAware) else None
    )
    return conv(x, edge_index).relu() if out is None else out


def can_be_one(conv: Module) -> bool:
    """Whether a layer, as it is now, is one that :func:`fused` knows all of, and nobody looks on.

    Hooks, whoever traces (``torch.compile``, fake tensors), autocast, other backends, subclasses and what has been put in the place of
    a part get what they would expect to see. To be asked once per forward pass: a second one, of a checkpointed model, has to do the same.
    """
    if traced() or torch.is_autocast_enabled("cpu"):
        return False
    inner = conv.conv if type(conv) is EntropyAware else conv
    if type(inner) is not GCNConv or type(inner.lin) is not Linear or inner.lin.bias is not None:
        return False
    watched = _has_any_global_hook() or any(map(observed, (conv, inner, inner.lin)))
    return (
        not watched
        and inner.in_channels >= inner.out_channels
        and choose(torch.device("cpu")) == "numba"
    )


def observed(module: Module) -> bool:
    """Whether a hook wants to see what goes into ``module`` or comes out of it, or it is called in another way."""
    hooks = (
        module._forward_hooks
        or module._forward_pre_hooks
        or module._backward_hooks
        or module._backward_pre_hooks
    )
    return bool(hooks) or "forward" in vars(module)


def fused(conv: GCNConv | EntropyAware, x: Tensor, edge_index: Adjacency) -> Tensor | None:
    """The layer in one go, or ``None`` where it cannot be."""
    inner = conv.conv if isinstance(conv, EntropyAware) else conv
    if not isinstance(inner, GCNConv):
        return None
    weight, bias = inner.lin.weight, inner.bias
    ours = (
        type(x) in KNOWN
        and x.layout == torch.strided
        and x.dtype in (torch.float32, torch.float64)
        and x.device.type == "cpu"
    )
    if (
        not ours
        or weight.dtype != x.dtype
        or not (bias is None or (bias.dtype, bias.numel()) == (x.dtype, inner.out_channels))
    ):
        return None
    csr, batch, _ = prepare(x, edge_index)
    if isinstance(csr, PartCSR):
        return None
    if isinstance(conv, GCNConv):
        return ops.relu_gcn_layer(x, weight, bias, csr, None)
    if (
        conv.weight == 0
        or conv.options["residual"]
        or conv.options["placement"] != "output"
        or conv.options["symmetrize"]
    ):
        return None
    step = conv.step_ahead(inner.out_channels, x.dtype, csr, batch, conv.position)
    return None if step is None else ops.relu_gcn_layer(x, weight, bias, csr, step)
