"""The entropy step around any message-passing layer."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn import Module, Parameter

from eamp import ops
from eamp.functional import Variant, check_temperature, energy_of, entropy_step, prepare
from eamp.graph import CSR, Graph
from eamp.nn.conv.from_pyg import with_weights
from eamp.nn.conv.gcn_conv import MessagePassingLayer
from eamp.nn.step.layer_state import LayerState, Position
from eamp.nn.step.metric import Normalization, coordinates, step_ahead
from eamp.nn.step.weight import Weight, ahead, as_weight, evaluate
from eamp.ops.part import PartCSR

TINY = torch.finfo(torch.float32).tiny


class EntropyAware(Module):
    r"""A message-passing layer followed by one step of gradient ascent on the entropy of its embedding, from
    `"Entropy Aware Message Passing in Graph Neural Networks" <https://arxiv.org/abs/2403.04636>`_ (Nazari et al., 2024).

    .. math::
        \mathbf{X}' = \phi(\mathbf{X}) + \lambda \, T \nabla S(\phi(\mathbf{X}))

    Args:
        conv: the layer :math:`\phi`, called with whatever this layer is called with.
        weight: :math:`\lambda`. Zero gives the bare layer, bit for bit. Also a schedule of :mod:`eamp.nn.step.schedules`, as an object or as
            plain data, ``{"schedule": "gain", "of": 1.3}``; or your own function, which is given the energies ``[n]`` and the temperature
            in every forward pass and returns :math:`\lambda`, one number or one per node ``[n]``.
        temperature: :math:`T > 0`, the energy per node that the step aims at. ``"auto"`` takes the mean energy of the first training
            batch and keeps it (a temperature that followed the energy at every step would have no fixed point).
        learn_weight: make :math:`\lambda` a parameter that starts at ``weight``.
        learn_temperature: make :math:`\ln T` a parameter that starts at ``temperature``.
        detach: treat the step as a constant in the backward pass, as the paper does. ``False`` differentiates through it
            exactly, at the price of two more passes over the edges, each over twice the features.
        placement: take the gradient at the layer's ``"output"``, as the authors' code does, or at its ``"input"``, as the paper's
            equation says; the latter needs as many input as output channels.
        residual: add the layer's input, the paper's :math:`\mathbf{X} + \phi(\mathbf{X})`; needs as many input as output channels.
        variant: ``"exact"``, or ``"paper"`` for the published gradient; see :func:`eamp.entropy_gradient`.
        normalize: use the entropy of the normalised distribution. For a mini-batch of graphs pass an :class:`eamp.Graph` that
            knows its ``batch`` in place of ``edge_index``.
        symmetrize: let the step see a directed graph as undirected; the layer itself still gets it as it is.
        normalization: ``"sym"`` compares neighbours by :math:`x_i/\sqrt{k_i + 1}`, in the energy that graph convolutions lower, in which
            hubs count no more than others; ``None`` as they are, as the paper does. See :func:`eamp.nn.step.metric.coordinates`.
        scale_free: measure energies in units of the embedding's mean square, so that :math:`T` means the same however large or many the
            features are, and a shrinking embedding does not pass for a smooth one.

    The step weighs edges where it is given an :class:`eamp.Graph` with weights, which go to ``conv`` as well if that takes an
    ``edge_weight``. An ``edge_weight`` beside a bare ``edge_index`` is an argument of ``conv`` alone.

    Shapes:
        - **input:** features :math:`(|\mathcal{V}|, F_{in})`, edge indices :math:`(2, |\mathcal{E}|)` or an :class:`eamp.Graph`,
          and anything else that ``conv`` takes.
        - **output:** features :math:`(|\mathcal{V}|, F_{out})`.

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
        weight: Weight | Mapping[str, Any] = 1.0,
        temperature: float | Literal["auto"] = 10.0,
        *,
        learn_weight: bool = False,
        learn_temperature: bool = False,
        detach: bool = True,
        placement: Literal["output", "input"] = "output",
        residual: bool = False,
        variant: Variant = "exact",
        normalize: bool = False,
        symmetrize: bool = False,
        normalization: Normalization = None,
        scale_free: bool = False,
    ) -> None:
        super().__init__()
        if placement not in ("output", "input"):
            raise ValueError(f"placement must be 'output' or 'input', but is {placement!r}.")
        if normalization not in (None, "sym"):
            raise ValueError(f"normalization must be 'sym' or None, but is {normalization!r}.")
        if variant not in ("exact", "paper"):
            raise ValueError(f"variant must be 'exact' or 'paper', but is {variant!r}.")
        weight = as_weight(weight)
        if callable(weight) and learn_weight:
            raise ValueError(
                "learn_weight=True needs a number to start from; a schedule that learns holds its own parameters."
            )
        if temperature == "auto":
            if learn_temperature:
                raise ValueError(
                    "temperature='auto' is measured, learn_temperature=True is learned: choose one."
                )
        elif isinstance(temperature, str):
            raise ValueError(f"temperature must be a number > 0 or 'auto', but is {temperature!r}.")
        else:
            check_temperature(temperature)
        self.conv = conv
        self.options: dict[str, Any] = {
            "weight": weight,
            "temperature": temperature,
            "learn_weight": learn_weight,
            "learn_temperature": learn_temperature,
            "detach": detach,
            "placement": placement,
            "residual": residual,
            "variant": variant,
            "normalize": normalize,
            "symmetrize": symmetrize,
            "normalization": normalization,
            "scale_free": scale_free,
        }
        self.weight = (
            Parameter(torch.tensor(float(weight)))
            if learn_weight and not callable(weight)
            else weight
        )
        self.log_temperature = (
            Parameter(torch.tensor(math.log(temperature)))
            if learn_temperature and temperature != "auto"
            else None
        )
        # NaN until the first training batch has been seen; state_dict carries it either way.
        self.register_buffer(
            "calibrated", torch.tensor(math.nan) if temperature == "auto" else None
        )
        self.position: Position | None = (
            None  # among the entropy-aware layers of a model, which numbers them
        )
        self._edge_index_position = edge_index_position(conv)

    def reset_parameters(self) -> None:
        """Reset the layer, the learned weight and temperature, and the calibration of ``temperature="auto"``."""
        self.conv.reset_parameters()  # type: ignore[operator]  # torch types every attribute of a Module as Tensor | Module
        if isinstance(self.weight, Parameter):
            torch.nn.init.constant_(self.weight, self.options["weight"])
        elif isinstance(self.weight, Module) and hasattr(self.weight, "reset_parameters"):
            self.weight.reset_parameters()  # type: ignore[operator]  # torch types every attribute of a Module as Tensor | Module
        if self.log_temperature is not None:
            torch.nn.init.constant_(self.log_temperature, math.log(self.options["temperature"]))
        if self.calibrated is not None:
            self.calibrated.fill_(math.nan)

    def forward(
        self, x: Tensor, *args: Any, position: Position | None = None, **kwargs: Any
    ) -> Tensor:
        """Run the layer and take the step; ``position`` tells a layer that is applied several times which application this is."""
        if not isinstance(x, Tensor):
            raise TypeError(
                f"EntropyAware needs one feature tensor [num_nodes, F], but got a {type(x).__name__} for {type(self.conv).__name__}: "
                "the energy compares a node with its neighbours, so both must be the same set of nodes. Leave bipartite layers unwrapped."
            )
        adjacency, args, kwargs = self._split_adjacency(args, kwargs)
        out = self.conv(x, *args, **kwargs)
        if not isinstance(out, Tensor):
            raise TypeError(
                f"EntropyAware needs a layer that returns one tensor, but {type(self.conv).__name__} returned a {type(out).__name__} "
                "(return_attention_weights, perhaps?); call the wrapped layer .conv for that."
            )
        if self.options["residual"]:
            out = self._same_width(x, out, "residual=True") + out
        if not isinstance(self.weight, Tensor) and not callable(self.weight) and self.weight == 0:
            return out
        at = (
            out
            if self.options["placement"] == "output"
            else self._same_width(x, out, "placement='input'")
        )
        return self._step(
            out, at.detach() if self.options["detach"] else at, adjacency, position or self.position
        )

    def _step(self, out: Tensor, at: Tensor, adjacency: Any, position: Position | None) -> Tensor:
        """``out`` + λ·T∇S(``at``)."""
        variant, normalize, symmetrize = (
            self.options["variant"],
            self.options["normalize"],
            self.options["symmetrize"],
        )
        csr, batch, num_graphs = prepare(at, adjacency, symmetrize=symmetrize)
        normalization = self.options["normalization"]
        if (
            known := self.step_ahead(at.size(1), ops.accumulate_dtype(at), csr, batch, position)
        ) is not None:
            return ops.with_step(out, at, known)
        view = coordinates(at, csr, batch, num_graphs, normalization, self.options["scale_free"])
        at, csr = view.seen(at), view.csr
        temperature = self._temperature(at, csr, view.unit)
        in_units = temperature if view.unit is None else temperature * view.unit
        factor = 1.0 if callable(self.weight) or isinstance(self.weight, Tensor) else self.weight
        step, energy = entropy_step(
            at, csr, in_units, variant, normalize, batch, num_graphs, factor
        )
        scale: float | Tensor | None = view.outward
        if callable(self.weight):
            energy = energy if view.unit is None else energy / view.unit
            how = (
                symmetrize,
                csr,
                batch,
                num_graphs,
                variant,
                normalize,
                normalization,
                view.mobility,
            )
            weight = evaluate(
                self.weight, LayerState(position, at, energy, temperature, adjacency, *how)
            )
            if isinstance(weight, Tensor):
                weight = (weight.unsqueeze(1) if weight.dim() == 1 else weight).to(step.dtype)
            scale = weight if scale is None else weight * scale
        elif isinstance(self.weight, Tensor):
            scale = self.weight if scale is None else self.weight * scale
        if scale is None:
            return step.add_(
                out
            )  # in place: the step is ours alone, and large tensors cost most of their time in being allocated
        return (
            torch.addcmul(out, step, scale)
            if isinstance(scale, Tensor)
            else torch.add(out, step, alpha=scale)
        )

    def step_ahead(
        self,
        width: int,
        dtype: torch.dtype,
        csr: CSR,
        batch: Tensor | None,
        position: Position | None,
    ) -> ops.Step | None:
        """The step, if it can be taken in one go: of the default variant, a constant of the backward pass, with T and λ that do not depend
        on the embedding, on a graph in one piece; else ``None``. Of the embedding only width and dtype need be known.
        """
        options = self.options
        plain = (
            options["variant"] == "exact"
            and not options["normalize"]
            and not isinstance(csr, PartCSR)
        )
        one_unit = batch is None or not options["scale_free"]
        settled = self.calibrated is None and self.log_temperature is None and options["detach"]
        if not (plain and one_unit and settled) or isinstance(self.weight, Tensor):
            return None
        weight = ahead(self.weight, position, width, options["normalization"])
        if weight is None:
            return None
        return step_ahead(
            csr,
            dtype,
            float(options["temperature"]),
            weight,
            options["normalization"],
            options["scale_free"],
        )

    def _temperature(self, at: Tensor, csr: CSR, unit: Tensor | None) -> float | Tensor:
        if self.log_temperature is not None:
            return self.log_temperature.exp()
        if self.calibrated is None:
            return float(self.options["temperature"])
        readable = not torch.compiler.is_compiling() and self.calibrated.device.type == "cpu"
        if readable and not bool(self.calibrated.isnan()):
            return self.calibrated
        energy = ops.node_mean(energy_of(at.detach(), csr), csr)
        now = (
            (energy if unit is None else energy / unit.detach())
            .clamp(min=TINY)
            .to(self.calibrated.dtype)
        )
        temperature = torch.where(self.calibrated.isnan(), now, self.calibrated)
        if self.training:
            self.calibrated.copy_(temperature)
        return temperature

    def _split_adjacency(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
        """The adjacency among the arguments; where it is a :class:`Graph`, a PyG layer gets its edges instead, with their weights."""
        place = self._edge_index_position - 1
        adjacency = args[place] if place < len(args) else kwargs.get("edge_index")
        if isinstance(adjacency, Graph) and not isinstance(self.conv, MessagePassingLayer):
            if place >= len(args) - 1:  # else weights may be among what comes after
                kwargs = with_weights(self.conv, adjacency, kwargs)
            if place < len(args):
                args = (*args[:place], adjacency.edge_index, *args[place + 1 :])
            else:
                kwargs = {**kwargs, "edge_index": adjacency.edge_index}
        return adjacency, args, kwargs

    def _same_width(self, x: Tensor, out: Tensor, option: str) -> Tensor:
        if x.shape != out.shape:
            raise ValueError(
                f"{option} needs a layer that keeps the shape of its input, but {type(self.conv).__name__} turned {list(x.shape)} into "
                f"{list(out.shape)}; leave such layers out, e.g. eamp.wrap(model, skip=[...])."
            )
        return x

    def extra_repr(self) -> str:
        """Weight and temperature, and whatever else is not the default."""
        signature = inspect.signature(EntropyAware).parameters
        shown = {
            k: v
            for k, v in self.options.items()
            if k in ("weight", "temperature") or v != signature[k].default
        }
        return ", ".join(f"{k}={v!r}" for k, v in shown.items())


def edge_index_position(conv: Module) -> int:
    """Which positional argument of ``conv`` is the adjacency: the one named so, or else the second."""
    names = list(inspect.signature(conv.forward).parameters)
    return names.index("edge_index") if "edge_index" in names else 1
