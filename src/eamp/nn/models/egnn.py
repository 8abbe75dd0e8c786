"""Energetic graph networks: Dirichlet energy held between two limits."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import Module, ModuleList, Parameter
from torch_geometric.nn.dense.linear import Linear

from eamp.graph import Adjacency, as_graph
from eamp.nn.checkpointing import in_segments
from eamp.nn.conv.gcn_conv import MessagePassingLayer, gcn_propagate
from eamp.nn.entropic import Entropy, entropic, number_layers
from eamp.ops import dropout


class SReLU(Module):
    """Shifted ReLU, max(x, b) with a learned b per channel; linear as long as nothing falls below it.

    Example:
        >>> import torch
        >>> SReLU(2, shift=-1.0)(torch.tensor([[-3.0, 2.0]]))
        tensor([[-1.,  2.]], grad_fn=<MaximumBackward0>)
    """

    def __init__(self, channels: int, shift: float) -> None:
        super().__init__()
        self.initial_shift = shift
        self.shift = Parameter(torch.full((channels,), shift))

    def reset_parameters(self) -> None:
        """Back to the initial shift."""
        torch.nn.init.constant_(self.shift, self.initial_shift)

    def forward(self, x: Tensor) -> Tensor:
        """Element by element."""
        return torch.maximum(x, self.shift)


class EGNNConv(MessagePassingLayer):
    r"""The layer of :class:`EGNN`, before its activation.

    .. math::
        \mathbf{X}' = \left[(1 - c_{min})\, \hat{A} \mathbf{X} + \alpha \mathbf{X} + \beta \mathbf{X}_0\right] W,
        \qquad \alpha + \beta = c_{min}

    Args:
        channels: size of the features.
        c_min: weight of the two residual connections together.
        initial_residual: :math:`\beta`, the part of ``c_min`` that goes to the initial features.
        scale: the weight matrix starts as, and is drawn towards, ``scale`` times the identity.

    Shapes:
        - **input:** features :math:`(|\mathcal{V}|, F)`, edge indices :math:`(2, |\mathcal{E}|)` or an :class:`eamp.Graph`, and the
          initial features :math:`(|\mathcal{V}|, F)`.
        - **output:** features :math:`(|\mathcal{V}|, F)`.

    BibTeX key for ``eamp cite``: ``zhou2021dirichlet``.

    Example:
        >>> import torch
        >>> x = torch.tensor([[0.0], [1.0]])
        >>> EGNNConv(1, c_min=0.2, initial_residual=0.1)(x, torch.tensor([[0, 1], [1, 0]]), x)
        tensor([[0.4000],
                [0.6000]], grad_fn=<MmBackward0>)
    """

    def __init__(
        self, channels: int, c_min: float, initial_residual: float, scale: float = 1.0
    ) -> None:
        super().__init__()
        self.channels, self.c_min, self.initial_residual, self.scale = (
            channels,
            c_min,
            initial_residual,
            scale,
        )
        self.weight = Parameter(torch.empty(channels, channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """An orthogonal matrix, scaled: the identity times ``scale``."""
        with torch.no_grad():
            self.weight.copy_(torch.eye(self.channels) * self.scale)

    def forward(self, x: Tensor, edge_index: Adjacency, initial: Tensor) -> Tensor:
        """Propagate, add both residuals, transform."""
        alpha = self.c_min - self.initial_residual
        mixed = (
            (1 - self.c_min) * gcn_propagate(x, edge_index)
            + alpha * x
            + self.initial_residual * initial
        )
        return mixed @ self.weight

    def distance(self) -> Tensor:
        """‖W − scale · I‖_F."""
        eye = torch.eye(self.channels, dtype=self.weight.dtype, device=self.weight.device)
        return torch.linalg.matrix_norm(self.weight - self.scale * eye)

    def __repr__(self) -> str:
        return f"EGNNConv({self.channels}, c_min={self.c_min}, initial_residual={self.initial_residual}, scale={self.scale:.4g})"


class EGNN(Module):
    r"""Energetic graph network, from `"Dirichlet Energy Constrained Learning for Deep Graph Neural Networks"
    <https://arxiv.org/abs/2107.02392>`_ (Zhou et al., 2021).

    .. math::
        \mathbf{X}_k = \sigma\left(\left[(1 - c_{min})\, \hat{A} \mathbf{X}_{k-1}
        + \alpha \mathbf{X}_{k-1} + \beta \mathbf{X}_0\right] W_k\right),
        \qquad \alpha + \beta = c_{min}

    Its aim is :math:`c_{min} E(\mathbf{X}_{k-1}) \le E(\mathbf{X}_k) \le c_{max} E(\mathbf{X}_0)` for
    :math:`E(\mathbf{X}) = \operatorname{tr}(\mathbf{X}^\top (I - \hat{A}) \mathbf{X})`, by three means: weights that start as
    :math:`W_1 = \sqrt{c_{max}} I` and :math:`W_k = I` and are drawn there by :meth:`auxiliary_loss`; residual connections of total weight
    :math:`c_{min}`; and :math:`\sigma(x) = \max(x, b)` with a learned :math:`b` per layer and channel that starts low enough to be linear.

    At initialisation, frequency by frequency (:math:`\mu` an eigenvalue of :math:`\hat{A}`):

    - the upper limit holds always if :math:`c_{max} \ge 1` or :math:`\beta = 0`; with :math:`c_{max} < 1` the initial residual brings
      back what the first layer took, and the limit is :math:`E(\mathbf{X}_0)`;
    - the lower limit holds with :math:`c_{max} = 1` for features smooth enough to live at
      :math:`\mu \ge \sqrt{c_{min}} / (1 + \sqrt{c_{min}})`, and for any without negative frequencies (:math:`\mu \ge 0`) with
      :math:`c_{min}^2` in place of :math:`c_{min}`. Rougher features may lose more in their first layers. What energy there is at
      :math:`\mu \ge 0` never falls below :math:`\beta^2` of its beginning, at any depth.

    ``forward`` returns the logits alone; add :meth:`auxiliary_loss` to the loss.

    Args:
        in_channels: size of each input sample.
        hidden_channels: size of each hidden sample.
        out_channels: number of classes.
        num_layers: number of convolutions, between a linear encoder and a linear decoder.
        dropout: dropout before the encoder, before every convolution and before the decoder.
        entropy: options of :class:`eamp.EntropyAware`, put around every convolution.
        c_min: lower limit, in (0, 1).
        c_max: upper limit.
        initial_residual: :math:`\beta`, at most ``c_min``; half of it by default.
        shift: where the activation's :math:`b` starts.
        penalty_weight: factor of :meth:`auxiliary_loss`.
        checkpoint: keep the embedding at a few layers only and compute the others a second time in the backward pass; see
            :func:`eamp.nn.checkpointing.in_segments`.

    Shapes:
        - **input:** features :math:`(|\mathcal{V}|, F_{in})`, edge indices :math:`(2, |\mathcal{E}|)` or an :class:`eamp.Graph`.
        - **output:** logits :math:`(|\mathcal{V}|, F_{out})`.

    BibTeX key for ``eamp cite``: ``zhou2021dirichlet``.

    Example:
        >>> import torch
        >>> model = EGNN(16, 32, 7, num_layers=4)
        >>> model(torch.randn(3, 16), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])).shape
        torch.Size([3, 7])
        >>> model.auxiliary_loss()                     # the weights are where they should be
        tensor(0., grad_fn=<MulBackward0>)
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
        c_min: float = 0.2,
        c_max: float = 1.0,
        initial_residual: float | None = None,
        shift: float = -10.0,
        penalty_weight: float = 20.0,
        checkpoint: bool = False,
    ) -> None:
        super().__init__()
        beta = c_min / 2 if initial_residual is None else initial_residual
        if not (0 < c_min < 1 and 0 <= beta <= c_min):
            raise ValueError(
                f"0 < c_min < 1 and 0 <= initial_residual <= c_min are needed; c_min is {c_min}, initial_residual {beta}."
            )
        if c_max < c_min:
            raise ValueError(
                f"the upper limit c_max = {c_max} is below the lower limit c_min = {c_min}."
            )
        self.dropout, self.penalty_weight, self.checkpoint = dropout, penalty_weight, checkpoint
        self.encoder = Linear(
            in_channels, hidden_channels, weight_initializer="glorot", bias_initializer="zeros"
        )
        self.decoder = Linear(
            hidden_channels, out_channels, weight_initializer="glorot", bias_initializer="zeros"
        )
        scales = [math.sqrt(c_max) if k == 0 else 1.0 for k in range(num_layers)]
        self.convs = number_layers(
            ModuleList(
                entropic(EGNNConv(hidden_channels, c_min, beta, scale), entropy) for scale in scales
            )
        )
        self.activations = ModuleList(SReLU(hidden_channels, shift) for _ in range(num_layers))

    def reset_parameters(self) -> None:
        """Glorot for encoder and decoder, scaled identities for the convolutions."""
        for part in (self.encoder, self.decoder, *self.convs, *self.activations):
            part.reset_parameters()

    def forward(self, x: Tensor, edge_index: Adjacency) -> Tensor:
        """Encode, convolve, decode."""
        edge_index = graph = as_graph(edge_index, x.size(0))
        initial = torch.relu(self.encoder(dropout(x, self.dropout, self.training, graph.rows)))

        def layer(x: Tensor, parts: tuple[Module, Module]) -> Tensor:
            conv, activation = parts
            return activation(
                conv(dropout(x, self.dropout, self.training, graph.rows), edge_index, initial)
            )

        x = in_segments(
            layer, zip(self.convs, self.activations, strict=True), initial, self.checkpoint
        )
        return self.decoder(dropout(x, self.dropout, self.training, graph.rows))

    def auxiliary_loss(self) -> Tensor:
        """γ Σ_k ‖W_k − s_k I‖_F with s_1 = √c_max, s_k = 1 otherwise: what keeps the weights orthogonal in training."""
        return self.penalty_weight * sum(
            (part.distance() for part in self.convs.modules() if isinstance(part, EGNNConv)),
            torch.zeros(()),
        )
