"""A graph convolution for very deep networks, with an initial residual connection."""

import math
from typing import Literal, TypeAlias, get_args

import torch
from torch import Tensor
from torch.nn import Parameter
from torch_geometric.nn.inits import glorot

from eamp.graph import Adjacency, as_graph
from eamp.nn.checks import check_share
from eamp.nn.conv.gcn_conv import MessagePassingLayer, gcn_propagate
from eamp.ops import dropout

Weights: TypeAlias = Literal["glorot", "orthogonal", "identity", "mapping", "none"]


class DeepConv(MessagePassingLayer):
    r"""A graph convolution without bias, with a residual connection to the initial features.

    .. math::
        \mathbf{X}' = \mathbf{H} W, \qquad
        \mathbf{H} = (1 - \alpha) ((1 - s) \hat{A} + s I) \mathbf{X} + \alpha \mathbf{X}^{(0)}

    With :math:`V` the learned parameter of the :math:`\ell`-th of :math:`L` layers, :math:`W` is

    - ``weights="glorot"`` or ``"orthogonal"``: :math:`V`, initialised in that way;
    - ``"identity"``: :math:`I + V / L` with :math:`V = 0` at first. Weight decay draws :math:`W` to
      the identity, and one step of an optimizer changes the network equally at any depth;
    - ``"mapping"``: :math:`(1 - \beta) I + \beta V` with :math:`\beta = \ln(\theta / \ell + 1)`;
    - ``"none"``: :math:`I`, without any parameter, as in personalised PageRank.

    Args:
        channels: Size of each input and output sample.
        layer: :math:`\ell`, counted from 1.
        layers: :math:`L`.
        weights: The kind of :math:`W`, as above.
        initial_residual: :math:`\alpha`, between 0 and 1.
        theta: :math:`\theta` of ``weights="mapping"``.
        dropout: Probability of dropping a feature before the propagation. An entropy step around
            the layer sees the features without dropout, which would add to their energy.
        skip: :math:`s`, between 0 and 1: the probability with which a lazy walk stays at its node.
            An entropy step of gain :math:`s` far above every energy does the same.

    Example:
        >>> import torch
        >>> x, edge_index = torch.tensor([[1.0], [3.0]]), torch.tensor([[0, 1], [1, 0]])
        >>> DeepConv(1, layer=1, layers=64, initial_residual=0.5)(x, x, edge_index)
        tensor([[1.5000],
                [2.5000]])
    """

    parameter_name = "weight"  # of V, in state dicts

    def __init__(
        self,
        channels: int,
        layer: int,
        layers: int,
        weights: Weights = "none",
        initial_residual: float = 0.1,
        theta: float = 0.5,
        dropout: float = 0.0,
        skip: float = 0.0,
    ) -> None:
        super().__init__()
        if weights not in get_args(Weights):
            raise ValueError(
                f"weights must be one of {', '.join(get_args(Weights))}, but is {weights!r}."
            )
        check_share("initial_residual", initial_residual)
        check_share("skip", skip)
        self.channels, self.layers, self.weights = channels, layers, weights
        self.initial_residual, self.dropout, self.skip = initial_residual, dropout, skip
        self.beta = math.log(theta / layer + 1)
        parameter = None if weights == "none" else Parameter(torch.empty(channels, channels))
        self.register_parameter(self.parameter_name, parameter)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialise the parameter as ``weights`` says."""
        parameter = getattr(self, self.parameter_name)
        if parameter is None:
            return
        if self.weights == "identity":
            torch.nn.init.zeros_(parameter)
        elif self.weights == "orthogonal":
            torch.nn.init.orthogonal_(parameter)
        else:
            glorot(parameter)

    def forward(self, x: Tensor, x_0: Tensor, edge_index: Adjacency) -> Tensor:
        """Propagate, mix in the initial features, transform."""
        graph = as_graph(edge_index, x.size(0))
        x = dropout(x, self.dropout, self.training, graph.rows)
        mixed_in, share = x_0 if self.initial_residual else None, self.initial_residual
        if self.skip:  # share · mixed_in = (1 − α) s X + α X⁽⁰⁾
            share = 1 - (1 - self.initial_residual) * (1 - self.skip)
            mixed_in = torch.lerp(x, x_0, self.initial_residual / share)
        h = gcn_propagate(x, graph, mixed_in, share)
        return h if self.weights == "none" else h @ self.matrix()

    def matrix(self) -> Tensor:
        """Return :math:`W`."""
        parameter: Tensor = getattr(self, self.parameter_name)
        if self.weights not in ("identity", "mapping"):
            return parameter
        identity = torch.eye(self.channels, dtype=parameter.dtype, device=parameter.device)
        if self.weights == "identity":
            return torch.add(identity, parameter, alpha=1 / self.layers)
        # lerp rounds less than (1 − β) I + β V: it does not round 1 − β.
        return torch.lerp(identity, parameter, self.beta)

    def __repr__(self) -> str:
        alpha = self.initial_residual
        return f"DeepConv({self.channels}, weights={self.weights!r}, initial_residual={alpha:g})"


class GCNIIConv(DeepConv):
    r"""The convolution of GCNII: :class:`DeepConv` with ``weights="mapping"``.

    From `"Simple and Deep Graph Convolutional Networks" <https://arxiv.org/abs/2007.02133>`_ (Chen
    et al., 2020). The parameter, its name and its initialisation are those of PyG's ``GCN2Conv``
    with shared weights, so each loads the other's state dict.

    Args:
        channels: Size of each input and output sample.
        alpha: :math:`\alpha`, the share of the initial features.
        theta: :math:`\theta`. The larger it is, the further the layer is from the identity mapping.
        layer: :math:`\ell`, counted from 1.

    Example:
        >>> import torch
        >>> x, edge_index = torch.randn(3, 4), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> GCNIIConv(4, alpha=0.1, theta=0.5, layer=1)(x, x, edge_index).shape
        torch.Size([3, 4])
    """

    parameter_name = "weight1"  # as in PyG

    def __init__(self, channels: int, alpha: float, theta: float, layer: int) -> None:
        super().__init__(channels, layer, layer, "mapping", alpha, theta)

    def __repr__(self) -> str:
        return f"GCNIIConv({self.channels}, alpha={self.initial_residual}, beta={self.beta:.4g})"
