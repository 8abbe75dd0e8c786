"""GGCM: linear propagation on the graph, and its inverse on random graphs, at many scales."""

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import Linear, Module

from eamp.graph import Adjacency, Graph
from eamp.nn.checks import check_share
from eamp.nn.conv.deep_conv import DeepConv
from eamp.nn.entropic import Entropy
from eamp.nn.models.node_classifier import NodeClassifier, entropic_layers
from eamp.ops import accumulate_dtype, neighbour_sums


class GGCM(NodeClassifier):
    r"""A linear classifier of features that are smoothed along edges and sharpened along no edges.

    From `"From Cluster Assumption to Graph Convolution: Graph-based Semi-Supervised Learning
    Revisited" <https://arxiv.org/abs/2309.13599>`_ (Wang et al., 2023).

    .. math::
        \mathbf{U}^{(t)} &= (\beta^{t - 1} \hat{A} + (1 - \beta^{t - 1}) I) \mathbf{U}^{(t - 1)} \\
        \mathbf{V}^{(t)} &= (\eta^{t - 1} \hat{N}_t + (1 - \eta^{t - 1}) I) \mathbf{U}^{(t - 1)},
            \qquad \hat{N}_t = (D_t + 2I)^{-1/2} (2I - N_t) (D_t + 2I)^{-1/2} \\
        \mathbf{Y} &= \alpha \mathbf{U}^{(0)} + \frac{1 - \alpha}{L} \sum_{t = 1}^{L}
            \frac{\mathbf{U}^{(t)} + \mathbf{V}^{(t)}}{2} + b

    :math:`N_t` is the adjacency, :math:`D_t` the degrees of a random graph in which the nodes have
    ``negatives`` times as many neighbours as they have on average in the graph itself. All maps are
    linear, so :math:`\mathbf{U}^{(0)} = \mathbf{X} W` gives the logits that the authors compute
    from propagated features, at a fraction of the cost.

    The authors draw random regular graphs. Here :math:`N_t` is the union of random permutations of
    the nodes, in which a few neighbours coincide, and the complete graph where there are not enough
    nodes. It depends on a seed, which is drawn with the weights and kept in the state dict, so it
    is the same in all epochs. ``torch.compile`` cannot trace the model. Parts of a graph are
    refused, and batches of graphs, too, unless ``negatives`` is 0. See :class:`NodeClassifier` for
    the other arguments.

    Args:
        hidden_channels: Not used: there is no hidden layer.
        dropout: Probability of dropping an input feature.
        alpha: :math:`\alpha`, between 0 and 1.
        decline: :math:`\beta`, between 0 and 1.
        decline_negative: :math:`\eta`, between 0 and 1.
        negatives: Ratio of the degrees in the random graphs to the mean degree of the graph; 0
            leaves out the sharpening, :math:`\mathbf{V}^{(t)} = \mathbf{U}^{(t)}`.

    Example:
        >>> model = GGCM(16, 64, 7, num_layers=16)
    """

    seed: Tensor

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int,
        *,
        dropout: float = 0.0,
        entropy: Entropy = None,
        alpha: float = 0.15,
        decline: float = 1.0,
        decline_negative: float = 1.0,
        negatives: float = 20.0,
        checkpoint: bool = False,
    ) -> None:
        channels = (in_channels, hidden_channels, out_channels)
        super().__init__(num_layers, dropout, checkpoint, *channels)
        shares = {"alpha": alpha, "decline": decline, "decline_negative": decline_negative}
        for name, share in shares.items():
            check_share(name, share)
        if not negatives >= 0:
            raise ValueError(f"negatives must be a number >= 0, but is {negatives!r}.")
        self.alpha, self.decline_negative, self.negatives = alpha, decline_negative, negatives
        self.lin = Linear(in_channels, out_channels)

        def smoothing(t: int) -> DeepConv:
            skip = 1 - decline ** (t - 1)
            return DeepConv(out_channels, t, num_layers, initial_residual=0.0, skip=skip)

        self.steps = entropic_layers(map(smoothing, range(1, num_layers + 1)), entropy)
        self.register_buffer("seed", torch.empty((), dtype=torch.long))
        self.draw_seed()

    def reset_parameters(self) -> None:
        """Reset the weights, and draw another seed."""
        super().reset_parameters()
        self.draw_seed()

    def draw_seed(self) -> None:
        """Draw the seed of the random graphs from torch's generator."""
        self.seed.random_(2**62)

    def forward(self, x: Tensor, edge_index: Adjacency) -> Tensor:
        """Return the logits of every node."""
        graph = self.graph_of(x, edge_index)
        graph.require_all_rows("GGCM")
        first = F.linear(self.drop(x, graph), self.lin.weight)

        def scale(state: Tensor, item: tuple[int, Module]) -> Tensor:
            (t, step), (before, total) = item, state.chunk(2, dim=1)
            smooth = step(before, before, graph)
            sharp = self.sharpened(before, t, graph) if self.negatives else smooth
            return torch.cat([smooth, total + (smooth + sharp) / 2], dim=1)

        state = torch.cat([first, torch.zeros_like(first)], dim=1)
        total = self.run(scale, list(enumerate(self.steps)), state).chunk(2, dim=1)[1]
        mean = total / max(self.num_layers, 1)
        return torch.lerp(mean, first, self.alpha) + self.lin.bias

    def sharpened(self, x: Tensor, t: int, graph: Graph) -> Tensor:
        """Return the inverse propagation of the ``t``-th step, counted from 0."""
        negative = negative_graph(graph, self.negatives, int(self.seed) + t)
        scale = (negative.degree + 2).rsqrt().to(accumulate_dtype(x))
        inverse = (2 * scale.square()).to(x.dtype).unsqueeze(1) * x
        inverse = inverse - neighbour_sums(scale, x, scale, negative)
        return torch.lerp(x, inverse, self.decline_negative**t)


def negative_graph(graph: Graph, ratio: float, seed: int) -> Graph:
    """Return a random graph on the same nodes, whose degrees are ``ratio`` times the mean degree.

    Every permutation of the nodes gives each of them two neighbours, less those that coincide.

    Raises:
        ValueError: for a batch of several graphs, which a random graph would join.

    Example:
        >>> path = Graph(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]))
        >>> negative_graph(path, 20, seed=0)  # complete
        Graph(num_nodes=3, num_edges=3)
    """
    if graph.num_graphs > 1:
        raise ValueError(
            f"the random graphs of GGCM would join the {graph.num_graphs} graphs of a batch; pass "
            "negatives=0 to leave the random graphs out, or one graph at a time."
        )

    def draw() -> Graph:
        nodes = torch.arange(n := graph.num_nodes, device="cpu")
        permutations = -(-int(ratio * 2 * graph.num_edges / max(n, 1)) // 2)
        if 2 * permutations >= n - 1:
            edges = torch.combinations(nodes).T
        else:
            generator = torch.Generator().manual_seed(seed)
            ends = [
                torch.randperm(n, generator=generator, device="cpu") for _ in range(permutations)
            ]
            edges = torch.stack([nodes.repeat(permutations), torch.cat([nodes[:0], *ends])])
        return Graph(edges, n, symmetrize=True).to(graph.device)

    return graph.remember(("negative graph", ratio, seed), draw)
