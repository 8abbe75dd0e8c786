"""A family of deep graph networks: from the plain GCN, one ingredient after the other that lets it be deep."""

from __future__ import annotations

import math
from typing import Literal, TypeAlias, get_args

import torch
from torch import Tensor
from torch.nn import Linear, Module, ModuleList, Parameter
from torch_geometric.nn.inits import glorot, reset

from eamp.graph import Adjacency, as_graph
from eamp.nn.checkpointing import in_segments
from eamp.nn.conv.gcn_conv import MessagePassingLayer, gcn_propagate
from eamp.nn.entropic import Entropy, applied, entropic, number_layers
from eamp.ops import dropout

Weights: TypeAlias = Literal["glorot", "orthogonal", "identity", "mapping", "none"]


class DeepConv(MessagePassingLayer):
    r"""A graph convolution without bias that mixes in the initial features and transforms in one of several ways.

    .. math::
        \mathbf{X}' = \mathbf{H} W, \qquad \mathbf{H} = (1 - \alpha) \hat{A} \mathbf{X} + \alpha \mathbf{X}^{(0)}

    ``weights`` says what :math:`W` is, with :math:`V` the parameter, of the :math:`\ell`-th of :math:`L` layers:

    - ``"glorot"`` and ``"orthogonal"``: :math:`V`, initialised so;
    - ``"identity"``: :math:`I + V / L` with :math:`V = 0` at first. Weight decay draws it there, and what one step of an optimizer
      changes the whole network by does not grow with its depth;
    - ``"mapping"``: :math:`(1 - \beta) I + \beta V` with :math:`\beta = \ln(\theta / \ell + 1)`, GCNII's identity mapping;
    - ``"none"``: :math:`I`, propagation alone.

    Args:
        channels: size of each input and output sample.
        layer: :math:`\ell`, counted from 1.
        layers: :math:`L`.
        weights: as above.
        initial_residual: :math:`\alpha`.
        theta: :math:`\theta` of ``"mapping"``.
        dropout: probability of dropping a feature on its way into the propagation. The entropy step around the layer sees all of them:
            what dropout adds to an energy is no difference between neighbours.

    Shapes:
        - **input:** features :math:`(|\mathcal{V}|, F)`, initial features :math:`(|\mathcal{V}|, F)`, edge indices
          :math:`(2, |\mathcal{E}|)` or an :class:`eamp.Graph`.
        - **output:** features :math:`(|\mathcal{V}|, F)`.

    BibTeX key for ``eamp cite``: ``nazari2024entropy``.

    Example:
        >>> import torch
        >>> x, edge_index = torch.randn(3, 4), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> DeepConv(4, layer=1, layers=64)(x, x, edge_index).shape
        torch.Size([3, 4])
    """

    def __init__(
        self,
        channels: int,
        layer: int,
        layers: int,
        weights: Weights = "none",
        initial_residual: float = 0.1,
        theta: float = 0.5,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if weights not in get_args(Weights):
            raise ValueError(
                f"weights must be one of {', '.join(get_args(Weights))}, but is {weights!r}."
            )
        if not 0 <= initial_residual <= 1:
            raise ValueError(
                f"initial_residual must lie between 0 and 1, but is {initial_residual}."
            )
        self.channels, self.weights, self.initial_residual, self.dropout = (
            channels,
            weights,
            initial_residual,
            dropout,
        )
        beta = math.log(theta / layer + 1)
        self.of_identity, self.of_weight = {
            "identity": (1.0, 1 / layers),
            "mapping": (1 - beta, beta),
        }.get(weights, (0.0, 1.0))
        self.weight = None if weights == "none" else Parameter(torch.empty(channels, channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """As ``weights`` says."""
        if self.weight is None:
            return
        if self.weights == "identity":
            torch.nn.init.zeros_(self.weight)
        elif self.weights == "orthogonal":
            torch.nn.init.orthogonal_(self.weight)
        else:
            glorot(self.weight)

    def forward(self, x: Tensor, x_0: Tensor, edge_index: Adjacency) -> Tensor:
        """Propagate, mix in the initial features, transform."""
        mixed_in = x_0 if self.initial_residual else None
        h = gcn_propagate(
            dropout(x, self.dropout, self.training, as_graph(edge_index, x.size(0)).rows),
            edge_index,
            mixed_in,
            self.initial_residual,
        )
        if self.weight is None:
            return h
        identity = torch.eye(self.channels, dtype=x.dtype, device=x.device)
        return h @ (
            torch.add(self.of_identity * identity, self.weight, alpha=self.of_weight)
            if self.of_identity
            else self.weight
        )

    def __repr__(self) -> str:
        return f"DeepConv({self.channels}, weights={self.weights!r}, initial_residual={self.initial_residual:g})"


class DeepGCN(Module):
    r"""A linear encoder, *L* layers, a linear decoder. Left as it is, a network to begin with: features propagate, the encoder's output is
    mixed into every layer, and nothing is learnt in between. Its options lead from there to the plain GCN, one ingredient after the other.

    .. math::
        \mathbf{X}' = \mathrm{ReLU}(\mathrm{DeepConv}(\mathbf{X}) + \lambda T \nabla S(\mathbf{X}))

    Args:
        in_channels: size of each input sample.
        hidden_channels: width of the hidden layers.
        out_channels: number of classes.
        num_layers: *L*, all of them hidden.
        dropout: probability of dropping an input feature and one before the decoder.
        entropy: arguments of :class:`eamp.EntropyAware` for every layer; the step is taken at a layer's input unless they say otherwise.
        layer_dropout: probability of dropping a feature before every layer; ``dropout`` when left out.
        weights: how a layer transforms; see :class:`DeepConv`.
        initial_residual: :math:`\alpha`, how much of the encoder's output every layer takes in.
        theta: of ``weights="mapping"``.
        residual: add each layer's input to its output, as the paper writes its layer.
        shared: one layer, applied *L* times.
        linear: no ReLU in the layers.
        checkpoint: keep the embedding at a few layers only and compute the others a second time in the backward pass; see
            :func:`eamp.nn.checkpointing.in_segments`.

    Shapes:
        - **input:** features :math:`(|\mathcal{V}|, F_{in})`, edge indices :math:`(2, |\mathcal{E}|)` or an :class:`eamp.Graph`.
        - **output:** logits :math:`(|\mathcal{V}|, F_{out})`.

    BibTeX key for ``eamp cite``: ``nazari2024entropy``.

    Example:
        >>> import torch
        >>> entropy = dict(weight={"schedule": "gain", "of": 0.3}, temperature=100.0, normalization="sym", scale_free=True)
        >>> model = DeepGCN(16, 64, 7, num_layers=256, dropout=0.6, entropy=entropy, checkpoint=True)
        >>> model(torch.randn(3, 16), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])).shape
        torch.Size([3, 7])
    """

    takes_sparse_features = True

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int,
        *,
        dropout: float = 0.0,
        entropy: Entropy = None,
        layer_dropout: float | None = None,
        weights: Weights = "none",
        initial_residual: float = 0.1,
        theta: float = 0.5,
        residual: bool = False,
        shared: bool = False,
        linear: bool = False,
        checkpoint: bool = False,
    ) -> None:
        super().__init__()
        self.num_layers, self.dropout, self.residual, self.linear, self.checkpoint = (
            num_layers,
            dropout,
            residual,
            linear,
            checkpoint,
        )
        layer_dropout = dropout if layer_dropout is None else layer_dropout
        self.encoder = Linear(in_channels, hidden_channels)
        layers = (
            DeepConv(
                hidden_channels, layer, num_layers, weights, initial_residual, theta, layer_dropout
            )
            for layer in range(1, 2 if shared else num_layers + 1)
        )
        self.convs = number_layers(
            ModuleList(entropic(layer, entropy, "input") for layer in layers)
        )
        self.decoder = Linear(hidden_channels, out_channels)

    def reset_parameters(self) -> None:
        """Reset every layer."""
        for module in (self.encoder, self.convs, self.decoder):
            reset(module)

    def forward(self, x: Tensor, edge_index: Adjacency) -> Tensor:
        """Logits of every node."""
        graph = as_graph(edge_index, x.size(0))
        x_0 = self.encoder(dropout(x, self.dropout, self.training, graph.rows)).relu()
        x = in_segments(
            lambda x, number: self.layer(x, number, x_0, graph),
            range(self.num_layers),
            x_0,
            self.checkpoint,
        )
        return self.decoder(dropout(x, self.dropout, self.training, graph.rows))

    def layer(self, x: Tensor, number: int, x_0: Tensor, graph: Adjacency) -> Tensor:
        """The layer of a number, counted from 0."""
        out = applied(self.convs[number % len(self.convs)], number + 1, self.num_layers)(
            x, x_0, graph
        )
        out = out if self.linear else out.relu()
        return x + out if self.residual else out
