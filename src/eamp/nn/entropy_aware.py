"""The entropy step around any message-passing layer."""

import math
from collections.abc import Mapping
from functools import partial
from typing import Any, TypeAlias, Unpack

import torch
from torch import Tensor
from torch.nn import Module, Parameter

from eamp.functional import energy_on
from eamp.graph import Graph, as_graph, check_features, graph_for
from eamp.nn.checks import check_calls, check_module, refuse_features
from eamp.nn.conv.from_pyg import call_with_edges
from eamp.nn.edge_index_position import edge_index_position
from eamp.nn.step.layer_state import LayerState, Position
from eamp.nn.step.metric import Metric, metric_of
from eamp.nn.step.options import (
    TEMPERATURE,
    WEIGHT,
    EntropyStep,
    StepOptions,
    Temperature,
)
from eamp.nn.step.weight import Weight, ahead, evaluate
from eamp.nn.typed_layers import add_typed_step, check_not_bipartite, check_typed
from eamp.ops import add_fused_step, added, entropy_step, in_dtype, is_fused, widen

Features: TypeAlias = Tensor | Mapping[str, Tensor]  # a dictionary has a tensor per type of node
TINY = torch.finfo(torch.float32).tiny


class EntropyAware(Module):
    r"""A message-passing layer followed by one step of gradient ascent on its entropy.

    It is the layer of `"Entropy Aware Message Passing in Graph Neural Networks"
    <https://arxiv.org/abs/2403.04636>`_ (Nazari et al., 2024).

    .. math::
        \mathbf{X}' = \phi(\mathbf{X}) + \lambda \, T \nabla S(\phi(\mathbf{X}))

    Weights of edges enter the step if it is given an :class:`eamp.Graph` with weights. They go to
    ``conv`` as well if that takes an ``edge_weight``. An ``edge_weight`` beside a bare
    ``edge_index`` is an argument of ``conv`` alone.

    Args:
        conv: the layer :math:`\phi`, called with the arguments that this layer is called with.
        weight: :math:`\lambda`, a number, a schedule or a function; by default twice the
            threshold above which the step wins over the contraction of a layer.
        temperature: :math:`T`, a number, or ``"auto"`` to measure it on the first training batch.
        **options: the other options of :class:`eamp.nn.EntropyStep`, which documents all of them.

    Shapes:
        - **input:** features :math:`(|\mathcal{V}|, F_{in})`, edge indices
          :math:`(2, |\mathcal{E}|)` or an :class:`eamp.Graph`, and anything else that ``conv``
          takes.
        - **output:** features :math:`(|\mathcal{V}|, F_{out})`.
        - **several types of nodes:** dictionaries of features and edge indices, as ``HeteroConv``
          takes and returns them.

    BibTeX key for ``eamp cite``: ``nazari2024entropy``.

    Example:
        >>> import torch, eamp
        >>> from torch_geometric.nn import GCNConv
        >>> conv = eamp.EntropyAware(GCNConv(16, 16), weight=1.0, temperature=10.0)
        >>> conv
        EntropyAware(
          weight=1.0, temperature=10.0
          (conv): GCNConv(16, 16)
        )
        >>> conv(torch.randn(3, 16), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])).shape
        torch.Size([3, 16])
    """

    calibrated: Tensor | None

    def __init__(
        self,
        conv: Module,
        weight: Weight | Mapping[str, Any] = WEIGHT,
        temperature: Temperature = TEMPERATURE,
        **options: Unpack[StepOptions],
    ) -> None:
        super().__init__()
        check_module(conv, "EntropyAware")
        check_calls(conv)
        given = {"weight": weight, "temperature": temperature, **options}
        self.step = step = EntropyStep.of(given)
        check_typed(conv, step)
        check_not_bipartite(conv)
        self.conv = conv
        self.weight: Any = step.weight
        if step.learn_weight:
            self.weight = Parameter(torch.tensor(float(step.weight)))  # type: ignore[arg-type]
        log_temperature = math.log(step.fixed_temperature()) if step.learn_temperature else 0.0
        self.log_temperature = (
            Parameter(torch.tensor(log_temperature)) if step.learn_temperature else None
        )
        # NaN until the first training batch has been seen; state_dict carries it either way.
        auto = step.temperature == "auto"
        self.register_buffer("calibrated", torch.tensor(math.nan) if auto else None)
        self.position: Position | None = None  # set by eamp.nn.number_layers
        # Whether the step is a detached one with constants for T and, perhaps, λ.
        learned = step.learn_weight or step.learn_temperature or auto
        detached = step.variant == "exact" and not step.normalize and step.detach
        self._constant = detached and not learned
        self._edge_index_position = edge_index_position(conv)

    @classmethod
    def of(cls, conv: Module, step: EntropyStep) -> "EntropyAware":
        """Return ``conv`` with the step of an :class:`EntropyStep`."""
        return cls(conv, **step.as_dict())

    def reset_parameters(self) -> None:
        """Reset the layer and everything that the step has learned or measured."""
        self.conv.reset_parameters()  # type: ignore[operator]  # torch types it Tensor | Module
        if isinstance(self.weight, Parameter):
            torch.nn.init.constant_(self.weight, float(self.step.weight))  # type: ignore[arg-type]
        elif isinstance(self.weight, Module) and hasattr(self.weight, "reset_parameters"):
            self.weight.reset_parameters()  # type: ignore[operator]  # torch types it Tensor | Module
        if self.log_temperature is not None:
            torch.nn.init.constant_(self.log_temperature, math.log(self.step.fixed_temperature()))
        if self.calibrated is not None:
            self.calibrated.fill_(math.nan)

    def forward(
        self, x: Features, *args: Any, position: Position | None = None, **kwargs: Any
    ) -> Any:
        """Run the layer and take the step.

        A layer that is applied several times is told by ``position`` which application this is.
        """
        if isinstance(x, Mapping):
            outs = self.conv(x, *args, **kwargs)
            edges = args[0] if args else kwargs.get("edge_index_dict")
            take = partial(self._with_step, position=position or self.position)
            return outs if self.is_bare else add_typed_step(self.conv, self.step, outs, edges, take)
        if not isinstance(x, Tensor):
            refuse_features(self.conv, x)
        # PyG's layers take node numbers [n] for features, but no table of them.
        if x.dim() == (1 if x.is_floating_point() else 2) and is_of_pyg(self.conv):
            check_features(x)
        place = self._edge_index_position - 1
        adjacency, args, kwargs = call_with_edges(self.conv, place, args, kwargs)
        if not self.is_bare:  # before the layer, whose own errors say less about a wrong edge_index
            options = {"symmetrize": self.step.symmetrize, "needs_batch": self.needs_batch}
            adjacency = as_graph(adjacency, x.size(0), **options)
        out = self.conv(x, *args, **kwargs)
        if not isinstance(out, Tensor):
            raise TypeError(
                f"EntropyAware needs a layer that returns one tensor, but "
                f"{type(self.conv).__name__} returned a {type(out).__name__} "
                "(return_attention_weights, perhaps?); call the wrapped layer .conv for that."
            )
        if self.step.residual:
            out = self._same_width(x, out, "residual=True") + out
        if self.is_bare:
            return out
        at = out
        if self.step.placement == "input":
            at = self._same_width(x, out, "placement='input'")
        graph = graph_for(at, adjacency)
        at = at.detach() if self.step.detach else at
        return self._with_step(out, at, graph, position or self.position)

    @property
    def is_bare(self) -> bool:
        """Whether no step is taken, because λ is 0."""
        return isinstance(self.weight, (int, float)) and self.weight == 0

    @property
    def needs_batch(self) -> bool:
        """Whether the step depends on more of a graph than the neighbours of a node."""
        step = self.step
        shuffled = step.variant == "permuted"
        return step.normalize or step.scale_free or shuffled or callable(step.weight)

    def _with_step(
        self, out: Tensor, at: Tensor, graph: Graph, position: Position | None
    ) -> Tensor:
        """Return ``out`` + λ·T∇S(``at``), in the dtype of ``out``."""
        step = self.step
        weight = self._constant_weight(at, graph, position)
        if weight is not None:
            options = (weight, step.energy == "propagation", step.scale_free)
            return add_fused_step(out, at, graph, step.fixed_temperature(), *options)
        at = widen(at)  # squares and sums of half precision
        metric = metric_of(at, graph, step.energy, step.scale_free)
        temperature = self._temperature(at, graph, metric)
        if isinstance(temperature, Tensor) and temperature.dim() == 1:  # one per graph
            metric, temperature = metric.in_units_of(graph.for_nodes(temperature)), 1.0
        at = metric.seen(at)
        number = isinstance(self.weight, (int, float))
        change, energy = entropy_step(
            at,
            graph,
            temperature if metric.unit is None else temperature * metric.unit,
            self.weight if number else 1.0,
            variant=step.variant,
            normalize=step.normalize,
            by_degree=metric.by_degree,
        )
        if number and metric.outward is None:
            return in_dtype(added(change, out), out.dtype)  # in place: memory is costly
        base = widen(out)
        if number and metric.outward is not None:
            return in_dtype(torch.addcmul(base, change, metric.outward), out.dtype)
        factor = self._weight_of(at, graph, position, temperature, energy, metric)
        if isinstance(factor, Tensor):
            factor = (factor.unsqueeze(1) if factor.dim() == 1 else factor).to(change.dtype)
        factor = factor if metric.outward is None else factor * metric.outward
        if isinstance(factor, Tensor):
            return in_dtype(torch.addcmul(base, change, factor), out.dtype)
        return in_dtype(torch.add(base, change, alpha=factor), out.dtype)

    def _constant_weight(self, at: Tensor, graph: Graph, position: Position | None) -> float | None:
        """Return λ if the step is one fused operator on constants, else ``None``."""
        one_unit = graph.batch is None or not self.step.scale_free
        if not self._constant or not one_unit or not is_fused(at, graph):
            return None
        return ahead(self.weight, position, at.size(1), self.step.energy)

    def _weight_of(
        self,
        at: Tensor,
        graph: Graph,
        position: Position | None,
        temperature: float | Tensor,
        energy: Tensor,
        metric: Metric,
    ) -> float | Tensor:
        """Return λ of a learned weight, a schedule or a function."""
        if isinstance(self.weight, Tensor):
            return self.weight
        step = self.step
        energy = energy if metric.unit is None else energy / metric.unit
        options = (step.symmetrize, step.variant, step.normalize, step.energy, metric.mobility)
        return evaluate(self.weight, LayerState(position, at, energy, temperature, graph, *options))

    def _temperature(self, at: Tensor, graph: Graph, metric: Metric) -> float | Tensor:
        """Return T; ``"auto"`` is the mean energy of the first training batch.

        Before training, in evaluation mode, it is the mean energy of every graph, ``[num_graphs]``
        for a batch.
        """
        if self.log_temperature is not None:
            return self.log_temperature.exp()
        if self.calibrated is None:
            return self.step.fixed_temperature()
        readable = not torch.compiler.is_compiling() and self.calibrated.device.type == "cpu"
        if readable and not bool(self.calibrated.isnan()):
            return self.calibrated
        with torch.no_grad():  # a checkpoint keeps the same tensors when T is known by then
            energy = energy_on(metric.seen(at.detach()), graph, metric.by_degree)
        if self.training or graph.batch is None:
            mean = graph.total(energy) / max(graph.total_nodes, 1)
        else:
            mean = graph.total_by_graph(energy) / graph.graph_sizes().to(energy.dtype)
        mean = mean if metric.unit is None else mean / metric.unit.detach()
        now = mean.clamp(min=TINY).to(self.calibrated.dtype)
        temperature = torch.where(self.calibrated.isnan(), now, self.calibrated)
        if self.training:  # a batch without edges has no energy to calibrate on
            self.calibrated.copy_(torch.where(mean > 0, temperature, self.calibrated))
        return temperature

    def _same_width(self, x: Tensor, out: Tensor, option: str) -> Tensor:
        """Return ``x``, after checking that the layer has kept its shape."""
        if x.shape != out.shape:
            raise ValueError(
                f"{option} needs a layer that keeps the shape of its input, but "
                f"{type(self.conv).__name__} turned {list(x.shape)} into {list(out.shape)}; leave "
                "such layers out, e.g. eamp.wrap(model, skip=[...])."
            )
        return x

    def extra_repr(self) -> str:
        """Return weight and temperature, and the options that are not the default."""
        return ", ".join(f"{name}={value!r}" for name, value in self.step.changed().items())


def is_of_pyg(conv: Module) -> bool:
    """Return whether ``conv`` is one of PyG's own layers, whose arguments are known."""
    return type(conv).__module__.startswith("torch_geometric.nn.conv.")
