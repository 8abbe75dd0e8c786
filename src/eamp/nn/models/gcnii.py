"""GCNII: initial residual and identity mapping."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import Linear, Module, ModuleList, Parameter
from torch_geometric.nn.inits import glorot, reset

from eamp.graph import Adjacency, as_graph
from eamp.nn.checkpointing import in_segments
from eamp.nn.conv.gcn_conv import MessagePassingLayer, gcn_propagate
from eamp.nn.entropic import Entropy, entropic, number_layers
from eamp.ops import dropout


class GCNIIConv(MessagePassingLayer):
    r"""The convolution of `"Simple and Deep Graph Convolutional Networks" <https://arxiv.org/abs/2007.02133>`_ (Chen et al., 2020).

    .. math::
        \mathbf{X}' = \mathbf{H} \left( (1 - \beta) I + \beta W \right), \qquad
        \mathbf{H} = (1 - \alpha) \hat{A} \mathbf{X} + \alpha \mathbf{X}^{(0)}, \qquad
        \beta = \ln \left( \frac{\theta}{\ell} + 1 \right)

    The same maths, parameter and initialisation as PyG's ``GCN2Conv`` with shared weights, so weights can be exchanged between the two.

    Args:
        channels: size of each input and output sample.
        alpha: :math:`\alpha`, how much of the initial features every layer takes in.
        theta: :math:`\theta`, how far the weights may lead away from the identity.
        layer: :math:`\ell`, counted from 1.

    Shapes:
        - **input:** features :math:`(|\mathcal{V}|, F)`, initial features :math:`(|\mathcal{V}|, F)`, edge indices
          :math:`(2, |\mathcal{E}|)` or an :class:`eamp.Graph`.
        - **output:** features :math:`(|\mathcal{V}|, F)`.

    BibTeX key for ``eamp cite``: ``chen2020simple``.

    Example:
        >>> import torch
        >>> x, edge_index = torch.randn(3, 4), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> GCNIIConv(4, alpha=0.1, theta=0.5, layer=1)(x, x, edge_index).shape
        torch.Size([3, 4])
    """

    def __init__(self, channels: int, alpha: float, theta: float, layer: int) -> None:
        super().__init__()
        self.alpha, self.beta = alpha, math.log(theta / layer + 1)
        self.weight1 = Parameter(torch.empty(channels, channels))  # PyG's name for it
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Glorot."""
        glorot(self.weight1)

    def forward(self, x: Tensor, x_0: Tensor, edge_index: Adjacency) -> Tensor:
        """Propagate, mix in the initial features, transform."""
        h = gcn_propagate(x, edge_index, x_0, self.alpha)
        identity = torch.eye(self.weight1.size(0), dtype=x.dtype, device=x.device)
        return h @ torch.lerp(identity, self.weight1, self.beta)

    def __repr__(self) -> str:
        return f"GCNIIConv({self.weight1.size(0)}, alpha={self.alpha}, beta={self.beta:.4g})"


class GCNII(Module):
    r"""The network of `"Simple and Deep Graph Convolutional Networks" <https://arxiv.org/abs/2007.02133>`_ (Chen et al., 2020): a linear
    encoder, *L* layers :math:`\mathbf{X}' = \mathrm{ReLU}(\mathrm{GCNIIConv}(\mathbf{X}, \mathbf{X}^{(0)}))`, a linear decoder.

    Args:
        in_channels: size of each input sample.
        hidden_channels: width of the hidden layers.
        out_channels: number of classes.
        num_layers: *L*, number of convolutions, all of them hidden.
        dropout: probability of dropping a feature before every layer.
        entropy: arguments of :class:`eamp.EntropyAware` for every convolution.
        alpha: :math:`\alpha`; see :class:`GCNIIConv`.
        theta: :math:`\theta`; see :class:`GCNIIConv`.
        checkpoint: keep the embedding at a few layers only and compute the others a second time in the backward pass; see
            :func:`eamp.nn.checkpointing.in_segments`.

    Shapes:
        - **input:** features :math:`(|\mathcal{V}|, F_{in})`, edge indices :math:`(2, |\mathcal{E}|)` or an :class:`eamp.Graph`.
        - **output:** logits :math:`(|\mathcal{V}|, F_{out})`.

    BibTeX key for ``eamp cite``: ``chen2020simple``.

    Example:
        >>> import torch
        >>> model = GCNII(16, 64, 7, num_layers=64, dropout=0.6)
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
        alpha: float = 0.1,
        theta: float = 0.5,
        checkpoint: bool = False,
    ) -> None:
        super().__init__()
        self.dropout, self.checkpoint = dropout, checkpoint
        self.encoder = Linear(in_channels, hidden_channels)
        layers = (
            GCNIIConv(hidden_channels, alpha, theta, layer) for layer in range(1, num_layers + 1)
        )
        self.convs = number_layers(ModuleList(entropic(layer, entropy) for layer in layers))
        self.decoder = Linear(hidden_channels, out_channels)

    def reset_parameters(self) -> None:
        """Reset every layer."""
        reset(self.encoder)
        reset(self.convs)
        reset(self.decoder)

    def forward(self, x: Tensor, edge_index: Adjacency) -> Tensor:
        """Logits of every node."""
        graph = as_graph(edge_index, x.size(0))
        x_0 = self.encoder(dropout(x, self.dropout, self.training, graph.rows)).relu()

        def layer(x: Tensor, conv: Module) -> Tensor:
            return conv(dropout(x, self.dropout, self.training, graph.rows), x_0, graph).relu()

        x = in_segments(layer, self.convs, x_0, self.checkpoint)
        return self.decoder(dropout(x, self.dropout, self.training, graph.rows))
