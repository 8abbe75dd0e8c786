"""Noisy Nodes: noise on the input features, and a loss for predicting it."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import Module
from torch_geometric.nn.inits import reset

from eamp.graph import Adjacency, check_features
from eamp.nn.checks import check_count, check_module
from eamp.nn.models.traits import layers_inside, traits


class NoisyNodes(Module):
    r"""Any model, with noise on its input features in training and a loss for predicting the noise.

    From `"Simple GNN Regularisation for 3D Molecular Property Prediction and Beyond"
    <https://arxiv.org/abs/2106.07971>`_ (Godwin et al., 2022).

    .. math::
        (\mathbf{Y}, \hat{\boldsymbol{\varepsilon}}) =
            \mathrm{model}(\mathbf{X} + \sigma \, r \, \boldsymbol{\varepsilon}), \qquad
        \boldsymbol{\varepsilon} \sim \mathcal{N}(0, 1), \qquad
        \mathcal{L}_\mathrm{aux} =
            w \cdot \mathrm{mean} \, (\hat{\boldsymbol{\varepsilon}} - \boldsymbol{\varepsilon})^2

    :math:`r` is the root mean square of all features, so that :math:`\sigma` does not depend on
    their scale. A node can predict its own noise only from an embedding that differs from its
    neighbours', so the loss counteracts oversmoothing.

    After a forward pass in training mode, add :meth:`auxiliary_loss` to the loss. Shapes are those
    of :class:`NodeClassifier`.

    Args:
        model: A model with ``out_channels + in_channels`` outputs: the logits, and the predicted
            noise of every input feature.
        out_channels: Number of logits.
        noise: :math:`\sigma`, the size of the noise relative to that of the features.
        weight: :math:`w`.

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
        check_module(model, "NoisyNodes")
        check_count("out_channels", out_channels)
        self.model = model
        self.out_channels, self.noise, self.weight = out_channels, noise, weight
        self._auxiliary_loss: Tensor | None = None

    @property
    def probed_layers(self) -> list[str] | None:
        """The layers of the model that a probe measures, by their names in this module."""
        return layers_inside("model", self.model)

    def reset_parameters(self) -> None:
        """Reset the model."""
        self._auxiliary_loss = None
        reset(self.model)

    def forward(self, x: Tensor, edge_index: Adjacency) -> Tensor:
        """Return the logits of every node; in training mode, from noisy features."""
        check_features(x)
        noise = torch.randn_like(x) if self.training else None
        noisy = x
        if noise is not None:
            noisy = x + self.noise * x.detach().square().mean().sqrt() * noise
        out = self.model(noisy, edge_index)
        if out.size(1) != self.out_channels + x.size(1):
            raise ValueError(
                "NoisyNodes needs a model with out_channels + in_channels = "
                f"{self.out_channels} + {x.size(1)} outputs, the logits and the predicted noise, "
                f"but {type(self.model).__name__} has {out.size(1)}."
            )
        logits, predicted = out.split([self.out_channels, x.size(1)], dim=1)
        if noise is not None:
            self._auxiliary_loss = self.weight * F.mse_loss(predicted, noise)
        return logits

    def auxiliary_loss(self) -> Tensor:
        """Return w · mean (ε̂ − ε)² of the last forward pass in training mode.

        The auxiliary loss of the model inside is added, if it has one.
        """
        if self._auxiliary_loss is None:
            raise RuntimeError(
                "NoisyNodes has an auxiliary loss only after a forward pass in training mode; call "
                "model.train() and the model first."
            )
        inner = traits(self.model).auxiliary_loss
        return self._auxiliary_loss if inner is None else self._auxiliary_loss + inner()

    def __getstate__(self) -> dict[str, Any]:
        # Without the loss: it belongs to one backward pass, and copies of the model have none.
        return {**self.__dict__, "_auxiliary_loss": None}

    def extra_repr(self) -> str:
        """Return noise and weight."""
        return f"out_channels={self.out_channels}, noise={self.noise}, weight={self.weight}"
