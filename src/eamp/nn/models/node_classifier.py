"""The base class of the models: the arguments, shapes and methods that they have in common."""

from collections.abc import Iterable

from torch import Tensor
from torch.nn import Module, ModuleList
from torch_geometric.nn.inits import reset

from eamp.graph import Adjacency, Graph, graph_for
from eamp.nn.checkpointing import Item, Layer, in_segments
from eamp.nn.checks import check_sizes
from eamp.nn.entropic import Entropy, entropic, number_layers
from eamp.nn.step.options import Placement
from eamp.ops import dropout


class NodeClassifier(Module):
    r"""A network that computes the logits of every node from the node features and the graph.

    All models are called alike: ``Model(in_channels, hidden_channels, out_channels, num_layers, *,
    dropout=0.0, entropy=None, checkpoint=False, ...)``. The docstring of a model lists its own
    arguments, and those of the following that mean something more special there. ``eamp cite`` and
    the name of a model on the command line print its BibTeX.

    Args:
        in_channels: Size of each input sample.
        hidden_channels: Size of each hidden sample.
        out_channels: Number of classes.
        num_layers: *L*, the number of hidden message-passing layers. Encoder, decoder and output
            convolution, where a model has them, are not counted; PyG's models count the output
            convolution.
        dropout: Probability of dropping a feature before every layer, encoder and decoder included.
        entropy: The entropy step of every hidden message-passing layer, as a mapping or an
            :class:`eamp.nn.EntropyStep`, or ``None`` for the model without it.
        checkpoint: Store the embedding at a few layers only and compute the others a second time in
            the backward pass; see :func:`eamp.nn.checkpointing.in_segments`.

    Shapes:
        - **input:** features :math:`(|\mathcal{V}|, F_{in})`, dense or sparse CSR, and edge indices
          :math:`(2, |\mathcal{E}|)` or an :class:`eamp.Graph`.
        - **output:** logits :math:`(|\mathcal{V}|, F_{out})`.

    Example:
        >>> import torch
        >>> from eamp.nn import GCN
        >>> model = GCN(16, 64, 7, num_layers=2, entropy=dict(weight=1.0, temperature=10.0))
        >>> model(torch.randn(3, 16), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])).shape
        torch.Size([3, 7])
    """

    takes_sparse_features = True
    in_channels: int | None = None

    def __init__(self, num_layers: int, dropout: float, checkpoint: bool, *channels: int) -> None:
        super().__init__()
        if channels:  # in, hidden and out
            check_sizes(channels, num_layers, dropout, checkpoint)
            self.in_channels = channels[0]
        self.num_layers, self.dropout, self.checkpoint = num_layers, dropout, checkpoint

    def reset_parameters(self) -> None:
        """Reset every layer, in the order of registration."""
        for child in self.children():
            reset(child)

    def graph_of(self, x: Tensor, edge_index: Adjacency) -> Graph:
        """Return the graph, after checking that the features fit it and the first layer."""
        graph = graph_for(x, edge_index, needs_batch=True)
        if self.in_channels is not None and x.size(1) != self.in_channels:
            raise ValueError(
                f"x has {x.size(1)} features per node, but this {type(self).__name__} was made "
                f"with in_channels={self.in_channels}; they must be the same."
            )
        return graph

    def drop(self, x: Tensor, graph: Graph) -> Tensor:
        """Apply the dropout of the model to the features of a graph's nodes."""
        return dropout(x, self.dropout, self.training, graph.rows)

    def run(self, layer: Layer[Item], items: Iterable[Item], x: Tensor) -> Tensor:
        """Apply ``x = layer(x, item)`` for every item in turn, with checkpoints if they are on."""
        return in_segments(layer, items, x, self.checkpoint, self)


def entropic_layers(
    layers: Iterable[Module], entropy: Entropy, placement: Placement = "output"
) -> ModuleList:
    """Number the layers, and put the entropy step around each unless ``entropy`` is ``None``.

    The step is taken at ``placement`` if ``entropy`` is a mapping that does not say where.
    """
    return number_layers(ModuleList(entropic(layer, entropy, placement) for layer in layers))
