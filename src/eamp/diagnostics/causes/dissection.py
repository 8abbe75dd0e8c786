"""A probe that takes layers apart: what the weights do, the aggregation, and what follows."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import GradientEdge, get_gradient_edge, saved_tensors_hooks
from torch.nn import Module
from torch.utils.hooks import RemovableHandle

from eamp.diagnostics.causes.jacobian import largest_singular_value
from eamp.diagnostics.causes.linear_maps import LinearMaps
from eamp.diagnostics.causes.linear_probe import LabelledNodes
from eamp.diagnostics.causes.replay import without_aggregation
from eamp.diagnostics.measures.embedding import Embedding, embedding_of
from eamp.diagnostics.probing import Probe, Row
from eamp.diagnostics.watched_layers import LayerCall
from eamp.graph import Graph
from eamp.ops.precision import accumulate_dtype

# The rank of a wider input, such as words, would cost more than all layers together, and what the
# first layer's weights do to a gradient as much as ten layers.
WIDEST = 512
SEED = 0  # of the random gradient at the output


class Dissection(Probe):
    """A probe that also measures a layer's input, and its output without aggregation.

    ``input_...`` are measures of the embedding that enters a layer. It is the embedding behind
    everything that stands between two layers: activation, norm, residual connection.
    ``alone_...`` are measures of what the layer returns if every node is its own only neighbour.

    Args:
        model: the model.
        parts: whether to run every layer again without aggregation.
        backward: whether to send a gradient back.
        jacobians: whether to find the largest singular values of the layers' Jacobians.
        nodes: labelled nodes for linear probes.
        options: those of :class:`~eamp.diagnostics.Probe`.
    """

    def __init__(
        self,
        model: Module,
        parts: bool = True,
        backward: bool = True,
        jacobians: bool = False,
        nodes: LabelledNodes | None = None,
        **options: Any,
    ) -> None:
        super().__init__(model, **options)
        self.parts, self.backward, self.nodes = parts, backward, nodes
        self.jacobians, self.recording = jacobians, backward or jacobians
        self.linear_maps = LinearMaps()
        self.calls: list[Call] = []
        self.graph: Graph | None = None  # the first that a layer was measured on
        self.features: Tensor | None = None  # the first input of a layer that is dense and fits it

    def __enter__(self) -> Dissection:
        """Add the hooks."""
        super().__enter__()
        if self.recording:
            self._handles += [watch_input(layer) for layer in self.watched]
        if self.parts:
            self._handles += [h for layer in self.watched for h in self.linear_maps.watch(layer)]
        return self

    def _start_pass(self) -> None:
        super()._start_pass()
        self.calls, self.features, self.graph = [], None, None

    def _precision(self, x: Tensor) -> torch.dtype:
        # Only ratios are read, which need no more digits than the embedding itself has.
        return accumulate_dtype(x)

    def _also_measure(self, call: LayerCall) -> Row:
        entering, graph = call.entering, call.graph
        x: Tensor | None = None
        if entering is not None and is_dense(entering.x):
            x = call.args[0] if call.args else call.kwargs["x"]
        self.graph = graph if self.graph is None else self.graph
        if self.features is None and x is not None and self.graph is not None:
            self.features = x.detach() if x.size(0) == self.graph.num_nodes else None
        alone, leaf = None, None
        if self.parts and x is not None:
            leaf = x.detach().requires_grad_(self.recording)
            with (
                torch.set_grad_enabled(self.recording),
                self.linear_maps.reused(x, leaf),
                saved_as_they_are(),
            ):
                alone = without_aggregation(
                    call.layer, leaf, call.args, call.kwargs, call.out.shape
                )
        self.linear_maps.clear()
        row = {f"input_{name}": value for name, value in state(entering).items()}
        row |= {f"alone_{name}": value for name, value in state(embedding_of(alone, graph)).items()}
        if self.nodes is not None:
            row["probe_accuracy"] = self.nodes.accuracy(call.out)
        if self.recording:
            self.calls.append(Call(x, call.out, leaf, alone, self.jacobians))
        return row

    def finish(self, out: Any) -> tuple[str, ...]:
        """Measure the model's output, and send a random gradient back from there.

        ``after_...`` are measures of what follows a layer: the next one's input, or the output.
        ``gradient`` is the norm of the gradient at a layer's output, ``input_gradient`` at its
        input, over all paths, and ``layer_gradient`` at its input through the layer alone.
        ``alone_gradient`` is what the layer without aggregation would make of ``gradient``.

        Returns:
            A note if the model cannot be differentiated.
        """
        if not self.rows:
            raise ValueError(
                f"no layer of {type(self.model).__name__} ran in the forward pass, so there is "
                "nothing to diagnose; give the model one layer at least. A model compiled with "
                "torch.compile runs no hooks: pass the original."
            )
        out = out[0] if isinstance(out, tuple | list) and out else out
        seed = random_gradient(out) if self.backward and isinstance(out, Tensor) else None
        notes = self._differentiate(out, seed)
        matrix = isinstance(out, Tensor) and out.dim() == 2 and out.is_floating_point()
        fits = matrix and self.graph is not None and out.size(0) == self.graph.num_nodes
        last = state(embedding_of(out, self.graph) if fits else None)
        if self.backward:
            last["gradient"] = length(seed) if fits else math.nan
        following = [*self.rows[1:], {f"input_{name}": value for name, value in last.items()}]
        for row, after in zip(self.rows, following, strict=True):
            row |= {f"after_{name}": after.get(f"input_{name}", math.nan) for name in last}
        return notes

    def _differentiate(self, out: Any, seed: Tensor | None) -> tuple[str, ...]:
        if not self.recording or not isinstance(out, Tensor) or not out.requires_grad:
            return ()
        try:
            if seed is not None:
                self._record_gradients(out, seed)
            if self.jacobians:
                record_jacobians(self.rows, self.calls)
        except (RuntimeError, NotImplementedError) as error:
            reason = str(error).splitlines()[0]
            return (f"Note: gradients are unknown, because the model has none: {reason}",)
        finally:
            self.calls = []  # they hold the graph of derivatives
        return ()

    def _record_gradients(self, out: Tensor, seed: Tensor) -> None:
        edges = [edge for call in self.calls for edge in (call.out, call.x, call.inside)]
        wanted = [edge for edge in edges if edge is not None]
        found = iter(
            torch.autograd.grad(out, wanted, seed, allow_unused=True, retain_graph=self.jacobians)
        )
        gradients = [None if edge is None else next(found) for edge in edges]
        measured = {id(gradient): length(gradient) for gradient in gradients}
        lengths = [measured[id(gradient)] for gradient in gradients]  # some stand there twice
        at_outputs = gradients[::3]
        # The memory of the others, wide ones of features among them, serves the next gradients.
        del found, gradients
        for k, (row, call) in enumerate(zip(self.rows, self.calls, strict=True)):
            names = ("gradient", "input_gradient", "layer_gradient")
            row |= dict(zip(names, lengths[3 * k : 3 * k + 3], strict=True))
            # No verdict reads the parts of the first layer's gradient, whose input may be words.
            read = k > 0 or call.leaf is None or call.leaf.size(1) <= WIDEST
            back = call.back_alone(at_outputs[k], self.jacobians) if read else None
            row["alone_gradient"] = length(back)


class Call:
    """One call of a layer: where gradients are measured, and tensors if Jacobians are asked for."""

    def __init__(
        self,
        x: Tensor | None,
        out: Tensor,
        leaf: Tensor | None,
        alone: Tensor | None,
        keep: bool,
    ) -> None:
        original = getattr(x, "_eamp_original", None)
        self.x, self.inside, self.out = map(edge_of, (original, x, out))
        self.leaf, self.alone = leaf, alone
        self.tensors = (original, x, out) if keep else None

    def back_alone(self, gradient: Tensor | None, keep: bool) -> Tensor | None:
        """Send a gradient back through the layer without aggregation."""
        if gradient is None or self.leaf is None:
            return None
        if self.alone is None or not self.alone.requires_grad:
            return None
        (found,) = torch.autograd.grad(
            self.alone, self.leaf, gradient, allow_unused=True, retain_graph=keep
        )
        return found


def random_gradient(out: Tensor) -> Tensor:
    """Return the random gradient at the output."""
    generator = torch.Generator().manual_seed(SEED)
    return torch.randn(out.shape, generator=generator, dtype=torch.float64).to(out)


def record_jacobians(rows: list[Row], calls: list[Call]) -> None:
    """Record the largest singular values of the layers, with the factors of their parts.

    ``jacobian`` is that of everything from a layer's input to the next one's, or to the output of
    the last layer. It is the product of ``weights_jacobian``, that of the layer without
    aggregation, ``aggregation_jacobian`` and ``between_jacobian``.
    """
    for k, (row, call) in enumerate(zip(rows, calls, strict=True)):
        assert call.tensors is not None
        x, inside, out = call.tensors
        after = calls[k + 1].tensors if k + 1 < len(calls) else None
        following = after[0] if after is not None else out
        alone, layer = singular_value(call.alone, call.leaf), singular_value(out, inside)
        whole = singular_value(following, x)
        row["jacobian"], row["weights_jacobian"] = whole, alone
        row["aggregation_jacobian"] = layer / alone if alone > 0 else math.nan
        row["between_jacobian"] = whole / layer if layer > 0 else math.nan


def singular_value(out: Tensor | None, x: Tensor | None) -> float:
    """Return the largest singular value between two tensors; NaN if there is no derivative."""
    if out is None or x is None or not (out.requires_grad and x.requires_grad):
        return math.nan
    return largest_singular_value(out, x)


def watch_input(layer: Module) -> RemovableHandle:
    """Give the layer an alias of its input, whose gradient comes through this layer alone."""

    def alias(
        layer: Module, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        x = args[0] if args else kwargs.get("x")
        if not isinstance(x, Tensor) or not x.is_floating_point() or x.layout != torch.strided:
            return None
        if not torch.is_grad_enabled() or x.is_inference():
            return None
        inside = x.view_as(x) if x.requires_grad else x.detach().requires_grad_()
        # Through data that does not require gradients, other paths stay unknown.
        inside._eamp_original = x if x.requires_grad else None  # type: ignore[attr-defined]
        return ((inside, *args[1:]), kwargs) if args else (args, kwargs | {"x": inside})

    return layer.register_forward_pre_hook(alias, with_kwargs=True)


def saved_as_they_are() -> saved_tensors_hooks:
    """Keep the tensors of a backward pass, also inside of a checkpoint, which would count them."""
    return saved_tensors_hooks(lambda x: x, lambda x: x)


def edge_of(x: Tensor | None) -> GradientEdge | None:
    """Return the place of a tensor in the graph of derivatives; ``None`` if it has none."""
    return get_gradient_edge(x) if x is not None and x.requires_grad else None


def is_dense(x: Tensor) -> bool:
    """Return whether it is a dense matrix of floating-point numbers."""
    return x.is_floating_point() and x.layout == torch.strided


def state(found: Embedding | None) -> dict[str, float]:
    """Return scale, scale-free energy and rank of an embedding; NaN if there is none."""
    if found is None or not is_dense(found.x):
        return {"norm": math.nan, "energy": math.nan, "rank": math.nan}
    with torch.no_grad():
        energy = math.nan
        if found.on_graph:
            energy = float(torch.minimum(found.relative_energy(), found.rayleigh_quotient()))
        rank = float(found.effective_rank()) if min(found.x.shape) <= WIDEST else math.nan
        return {"norm": float(found.norm()), "energy": energy, "rank": rank}


def length(gradient: Tensor | None) -> float:
    """Return the norm of a gradient; NaN if there is none."""
    if gradient is None:
        return math.nan
    found = float(gradient.detach().norm())
    if 1e-12 < found < 1e12:
        return found
    return float(gradient.detach().double().norm())  # float32 cannot hold all squares
