"""Results of linear maps that are reused are those that would be computed again."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
import torch
from torch import Tensor
from torch.nn import Linear, Module
from torch_geometric.nn import GATConv, GCNConv, SAGEConv

import eamp
from diagnostics.faulty_models import features, grid
from eamp.diagnostics.causes import linear_maps
from eamp.diagnostics.causes.linear_maps import LinearMaps
from eamp.diagnostics.causes.replay import without_aggregation


class InPlace(Module):
    """A layer that changes what its linear map returned."""

    def __init__(self) -> None:
        super().__init__()
        self.lin = Linear(32, 8)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.lin(x).relu_()


def replayed(layer: Module, reuse: bool) -> tuple[Tensor, Tensor, int]:
    """Return the output without aggregation, its gradient and the number of reused results."""
    torch.manual_seed(0)
    maps, x, reused = LinearMaps(), features().requires_grad_(), []
    real = linear_maps.Remembered.apply

    def counted(*given: Tensor) -> Tensor:
        reused.append(given)
        result: Tensor = real(*given)  # type: ignore[no-untyped-call]  # torch does not say
        return result

    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        patch.setattr(linear_maps.Remembered, "apply", counted)
        for handle in maps.watch(layer) if reuse else ():
            stack.callback(handle.remove)
        out = layer(x, grid())
        leaf = x.detach().requires_grad_()
        with maps.reused(x, leaf):
            alone = without_aggregation(layer, leaf, (x, grid()), {}, out.shape)
    assert alone is not None
    (gradient,) = torch.autograd.grad(alone.square().sum(), leaf)
    return alone.detach(), gradient, len(reused)


@pytest.mark.parametrize(
    ("layer", "count"),
    [
        (GCNConv(32, 8), 1),
        (GATConv(32, 8), 1),
        (SAGEConv(32, 8), 1),  # the map of the neighbours' mean has another input
        (eamp.nn.conv.gcn_conv.GCNConv(32, 8), 1),
        (InPlace(), 0),
    ],
)
def test_outputs_and_gradients_are_those_of_a_second_run(layer: Module, count: int) -> None:
    *expected, none = replayed(layer, reuse=False)
    *found, some = replayed(layer, reuse=True)
    assert (none, some) == (0, count)
    torch.testing.assert_close(found, expected)
    assert not any("forward" in module.__dict__ for module in layer.modules())


def test_linear_maps_with_hooks_or_another_forward_are_left_alone() -> None:
    conv = GCNConv(32, 8)
    conv.lin.register_forward_hook(lambda module, args, out: 2 * out)
    assert LinearMaps().watch(conv) == []
    conv = GCNConv(32, 8)
    conv.lin.forward = lambda x: x[:, :8]
    assert LinearMaps().watch(conv) == []
