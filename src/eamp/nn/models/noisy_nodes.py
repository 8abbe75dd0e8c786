"""Noisy Nodes: disturb the input, and learn to tell the disturbance."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import Module

from eamp.graph import Adjacency


class NoisyNodes(Module):
    r"""Input noise with a denoising loss, around any model, from `"Simple GNN Regularisation for 3D Molecular Property Prediction and
    Beyond" <https://arxiv.org/abs/2106.07971>`_ (Godwin et al., 2022).

    .. math::
        (\mathbf{Y}, \hat{\boldsymbol{\varepsilon}}) = \mathrm{model}(\mathbf{X} + \sigma \, r \, \boldsymbol{\varepsilon}), \qquad
        \boldsymbol{\varepsilon} \sim \mathcal{N}(0, 1), \qquad
        \mathcal{L}_\mathrm{aux} = w \cdot \mathrm{mean} \, (\hat{\boldsymbol{\varepsilon}} - \boldsymbol{\varepsilon})^2

    with :math:`r` the root mean square of all features, so that :math:`\sigma` means the same for features of any scale.

    A node can only tell its own noise from an embedding that has kept it apart from its neighbours, so the loss holds against
    oversmoothing. In evaluation there is no noise.

    ``forward`` returns the logits alone. After a forward pass in training mode, add :meth:`auxiliary_loss` to the loss.

    Args:
        model: a model with ``out_channels + in_channels`` outputs: first the logits, then its guess of the noise on every input feature.
        out_channels: how many of the outputs are logits.
        noise: :math:`\sigma`, the size of the noise in relation to that of the features.
        weight: :math:`w`.

    Shapes:
        - **input:** features :math:`(|\mathcal{V}|, F_{in})`, edge indices :math:`(2, |\mathcal{E}|)` or an :class:`eamp.Graph`.
        - **output:** logits :math:`(|\mathcal{V}|, F_{out})`.

    BibTeX key for ``eamp cite``: ``godwin2022simple``.

    Example:
        >>> import torch
        >>> from eamp.nn import GCN
        >>> model = NoisyNodes(GCN(16, 64, 7 + 16, num_layers=2), out_channels=7)
        >>> logits = model(torch.randn(3, 16), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]))
        >>> logits.shape, model.auxiliary_loss().shape
        (torch.Size([3, 7]), torch.Size([]))
    """

    def __init__(
        self, model: Module, out_channels: int, *, noise: float = 0.1, weight: float = 0.1
    ) -> None:
        super().__init__()
        self.model = model
        self.out_channels, self.noise, self.weight = out_channels, noise, weight
        self._auxiliary_loss: Tensor | None = None

    def reset_parameters(self) -> None:
        """Reset the model."""
        self._auxiliary_loss = None
        self.model.reset_parameters()  # type: ignore[operator]  # torch types a module's attributes as tensors or modules

    def forward(self, x: Tensor, edge_index: Adjacency) -> Tensor:
        """Logits of every node; in training, from disturbed features."""
        noise = torch.randn_like(x) if self.training else None
        out = self.model(
            x if noise is None else x + self.noise * x.detach().square().mean().sqrt() * noise,
            edge_index,
        )
        if out.size(1) != self.out_channels + x.size(1):
            raise ValueError(
                f"NoisyNodes needs a model with out_channels + in_channels = {self.out_channels} + {x.size(1)} outputs, the logits and a "
                f"guess of the noise, but {type(self.model).__name__} has {out.size(1)}."
            )
        logits, guess = out.split([self.out_channels, x.size(1)], dim=1)
        if noise is not None:
            self._auxiliary_loss = self.weight * F.mse_loss(guess, noise)
        return logits

    def auxiliary_loss(self) -> Tensor:
        """W · mean (ε̂ − ε)² of the last forward pass in training mode."""
        if self._auxiliary_loss is None:
            raise RuntimeError(
                "NoisyNodes has an auxiliary loss only after a forward pass in training mode: call model.train() first."
            )
        return self._auxiliary_loss

    def __getstate__(self) -> dict[str, Any]:
        """Without the loss: it belongs to one backward pass, and copies of the model have none."""
        return {**self.__dict__, "_auxiliary_loss": None}

    def extra_repr(self) -> str:
        """Noise and weight."""
        return f"out_channels={self.out_channels}, noise={self.noise}, weight={self.weight}"
