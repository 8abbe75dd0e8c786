"""A perceptron followed by linear propagation: APPNP and SGC."""

from torch import Tensor
from torch_geometric.nn import MLP

from eamp.graph import Adjacency
from eamp.nn.checks import check_count, check_share
from eamp.nn.conv.deep_conv import DeepConv
from eamp.nn.entropic import Entropy
from eamp.nn.models.node_classifier import NodeClassifier, entropic_layers
from eamp.ops import dropout as drop_features


class LinearPropagation(NodeClassifier):
    r"""A perceptron whose logits are propagated over the graph in *L* linear steps.

    From `"Predict then Propagate: Graph Neural Networks meet Personalized PageRank"
    <https://arxiv.org/abs/1810.05997>`_ (Gasteiger et al., 2019).

    .. math::
        \mathbf{X}^{(0)} = \mathrm{MLP}(\mathbf{X}), \qquad
        \mathbf{X}^{(k + 1)} = (1 - \alpha) \hat{A} \mathbf{X}^{(k)} + \alpha \mathbf{X}^{(0)}

    With ``alpha=0`` and ``mlp_layers=1`` it is :math:`\hat{A}^L (\mathbf{X} W + b)`, the classifier
    of `"Simplifying Graph Convolutional Networks" <https://arxiv.org/abs/1902.07153>`_ (Wu et al.,
    2019), which adds :math:`b` after the propagation. See :class:`NodeClassifier` for the other
    arguments.

    Args:
        dropout: Probability of dropping a feature before every layer of the perceptron.
        input_dropout: Probability of dropping a feature before the first of them. Default:
            ``dropout``.
        alpha: :math:`\alpha`, between 0 and 1.
        mlp_layers: Number of layers of the perceptron.

    Example:
        >>> model = LinearPropagation(16, 64, 7, num_layers=10)
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int,
        *,
        dropout: float = 0.0,
        entropy: Entropy = None,
        input_dropout: float | None = None,
        alpha: float = 0.1,
        mlp_layers: int = 2,
        checkpoint: bool = False,
    ) -> None:
        channels = (in_channels, hidden_channels, out_channels)
        super().__init__(num_layers, dropout, checkpoint, *channels)
        check_count("mlp_layers", mlp_layers)
        check_share("alpha", alpha)
        self.input_dropout = dropout if input_dropout is None else input_dropout
        check_share("input_dropout", self.input_dropout)
        widths = [in_channels] + [hidden_channels] * (mlp_layers - 1) + [out_channels]
        self.mlp = MLP(widths, dropout=dropout, norm=None)
        numbers = range(1, num_layers + 1)
        self.steps = entropic_layers(
            (DeepConv(out_channels, k, num_layers, initial_residual=alpha) for k in numbers),
            entropy,
        )

    def forward(self, x: Tensor, edge_index: Adjacency) -> Tensor:
        """Return the logits of every node."""
        graph = self.graph_of(x, edge_index)
        x_0 = self.mlp(drop_features(x, self.input_dropout, self.training, graph.rows))
        return self.run(lambda x, step: step(x, x_0, graph), self.steps, x_0)
