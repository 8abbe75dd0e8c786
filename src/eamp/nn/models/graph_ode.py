"""The base class of the models whose hidden layers solve a differential equation."""

from typing import Any

from torch import Tensor

from eamp.graph import Adjacency
from eamp.nn.conv.gcn_conv import glorot_linear
from eamp.nn.conv.ode import EntropyForce, ODEBlock
from eamp.nn.conv.vector_fields import VectorField
from eamp.nn.entropic import Entropy
from eamp.nn.models.node_classifier import NodeClassifier


class GraphODE(NodeClassifier):
    r"""A linear encoder, a differential equation on the graph, and a linear decoder.

    .. math::
        \mathbf{X}(0) = \mathrm{encoder}(\mathbf{X}_{in}), \qquad
        \dot{\mathbf{X}} = f(\mathbf{X}) + \lambda \nabla S(\mathbf{X}), \qquad
        \mathrm{logits} = \mathrm{decoder}(\mathrm{ReLU}(\mathbf{X}(L)))

    A subclass sets ``field``, the vector field :math:`f`. See :class:`NodeClassifier` for the other
    arguments.

    Args:
        num_layers: *L*, the time at which the solution is read. Each unit of time is a layer.
        dropout: Probability of dropping a feature before the encoder and before the decoder.
        entropy: Options of :class:`eamp.nn.conv.ode.EntropyForce`: ``weight``,
            ``temperature``, ``detach``, ``normalize``, ``variant``. The entropy term is
            :math:`\lambda \nabla S`; multiply the weight of an :class:`eamp.EntropyAware`, whose
            step is :math:`\lambda T \nabla S`, by its temperature to compare the two.
        steps_per_layer: Steps per unit of time of a fixed-step solver.
        **solver: ``method``, ``rtol``, ``atol`` and ``adjoint``; see
            :class:`eamp.nn.conv.ode.ODEBlock`.
    """

    field: VectorField

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int,
        *,
        dropout: float = 0.0,
        entropy: Entropy = None,
        steps_per_layer: int = 1,
        checkpoint: bool = False,
        **solver: Any,
    ) -> None:
        channels = (in_channels, hidden_channels, out_channels)
        super().__init__(num_layers, dropout, checkpoint, *channels)
        self.encoder = glorot_linear(in_channels, hidden_channels)
        self.decoder = glorot_linear(hidden_channels, out_channels)
        self.flow = ODEBlock(steps=steps_per_layer, force=EntropyForce.of(entropy), **solver)

    def forward(self, x: Tensor, edge_index: Adjacency) -> Tensor:
        """Return the logits of every node."""
        graph = self.graph_of(x, edge_index)
        x = self.encoder(self.drop(x, graph))
        frozen = self.field.at_start(x, graph)
        layers = range(self.num_layers)
        x = self.run(lambda x, _: self.flow(x, graph, self.field, *frozen), layers, x)
        return self.decoder(self.drop(x.relu(), graph))
