"""Transform once, then propagate linearly as often as you like: SGC and APPNP."""

from __future__ import annotations

from torch import Tensor
from torch.nn import Module, ModuleList
from torch_geometric.nn import MLP
from torch_geometric.nn.inits import reset

from eamp.graph import Adjacency, as_graph
from eamp.nn.checkpointing import in_segments
from eamp.nn.conv.gcn_conv import MessagePassingLayer, gcn_propagate
from eamp.nn.entropic import Entropy, entropic, number_layers
from eamp.ops import dropout


class PropagationStep(MessagePassingLayer):
    r"""One step of personalised PageRank, :math:`\mathbf{X}' = (1 - \alpha) \hat{A} \mathbf{X} + \alpha \mathbf{X}^{(0)}`.

    Args:
        alpha: :math:`\alpha`, the probability of starting again.

    Shapes:
        - **input:** features :math:`(|\mathcal{V}|, F)`, initial features :math:`(|\mathcal{V}|, F)`, edge indices
          :math:`(2, |\mathcal{E}|)` or an :class:`eamp.Graph`.
        - **output:** features :math:`(|\mathcal{V}|, F)`.

    BibTeX key for ``eamp cite``: ``gasteiger2019predict``.

    Example:
        >>> import torch
        >>> x = torch.tensor([[1.0], [3.0]])
        >>> PropagationStep(alpha=0.5)(x, x, torch.tensor([[0, 1], [1, 0]]))
        tensor([[1.5000],
                [2.5000]])
    """

    def __init__(self, alpha: float) -> None:
        super().__init__()
        self.alpha = alpha

    def reset_parameters(self) -> None:
        """There are none."""

    def forward(self, x: Tensor, x_0: Tensor, edge_index: Adjacency) -> Tensor:
        """Propagate and mix in the initial features."""
        return gcn_propagate(x, edge_index, x_0, self.alpha)

    def extra_repr(self) -> str:
        """The probability of starting again."""
        return f"alpha={self.alpha}"


class LinearPropagation(Module):
    r"""A perceptron whose logits are then spread over the graph in *L* linear steps, from `"Predict then Propagate: Graph Neural Networks
    meet Personalized PageRank" <https://arxiv.org/abs/1810.05997>`_ (Gasteiger et al., 2019).

    .. math::
        \mathbf{X}^{(0)} = \mathrm{MLP}(\mathbf{X}), \qquad
        \mathbf{X}^{(k + 1)} = (1 - \alpha) \hat{A} \mathbf{X}^{(k)} + \alpha \mathbf{X}^{(0)}

    With ``alpha=0`` and ``mlp_layers=1`` it is the classifier of `"Simplifying Graph Convolutional Networks"
    <https://arxiv.org/abs/1902.07153>`_ (Wu et al., 2019), :math:`\hat{A}^L \mathbf{X} W + b` up to where the bias comes in.

    Args:
        in_channels: size of each input sample.
        hidden_channels: width of the perceptron.
        out_channels: number of classes.
        num_layers: *L*, number of propagation steps.
        dropout: probability of dropping a feature before every layer of the perceptron.
        entropy: arguments of :class:`eamp.EntropyAware` for every propagation step.
        alpha: :math:`\alpha`; see :class:`PropagationStep`.
        mlp_layers: number of layers of the perceptron.
        checkpoint: keep the embedding at a few layers only and compute the others a second time in the backward pass; see
            :func:`eamp.nn.checkpointing.in_segments`.

    Shapes:
        - **input:** features :math:`(|\mathcal{V}|, F_{in})`, edge indices :math:`(2, |\mathcal{E}|)` or an :class:`eamp.Graph`.
        - **output:** logits :math:`(|\mathcal{V}|, F_{out})`.

    BibTeX key for ``eamp cite``: ``gasteiger2019predict``.

    Example:
        >>> import torch
        >>> model = LinearPropagation(16, 64, 7, num_layers=10)
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
        mlp_layers: int = 2,
        checkpoint: bool = False,
    ) -> None:
        super().__init__()
        self.dropout, self.checkpoint = dropout, checkpoint
        widths = [in_channels] + [hidden_channels] * (mlp_layers - 1) + [out_channels]
        self.mlp = MLP(widths, dropout=dropout, norm=None)
        self.steps = number_layers(
            ModuleList(entropic(PropagationStep(alpha), entropy) for _ in range(num_layers))
        )

    def reset_parameters(self) -> None:
        """Reset the perceptron, and what the steps have learned of weight and temperature."""
        self.mlp.reset_parameters()
        reset(self.steps)

    def forward(self, x: Tensor, edge_index: Adjacency) -> Tensor:
        """Logits of every node."""
        graph = as_graph(edge_index, x.size(0))
        x_0 = self.mlp(dropout(x, self.dropout, self.training, graph.rows))
        return in_segments(lambda x, step: step(x, x_0, graph), self.steps, x_0, self.checkpoint)
