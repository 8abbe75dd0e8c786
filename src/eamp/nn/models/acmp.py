"""Allen–Cahn message passing."""

from typing import Any, Literal

from eamp.nn.conv.vector_fields import AllenCahn, AttentionDiffusion, GCNDiffusion
from eamp.nn.models.graph_ode import GraphODE


class ACMP(GraphODE):
    r"""Allen–Cahn message passing, with attraction and repulsion between neighbours.

    From `"ACMP: Allen-Cahn Message Passing with Attractive and Repulsive Forces for Graph Neural
    Networks" <https://arxiv.org/abs/2206.05437>`_ (Wang et al., 2022).

    .. math::
        \dot{x}_i = \alpha \odot \sum_{j \in \mathcal{N}_i} (a_{ij} - \beta)(x_j - x_i)
            + \delta \odot x_i \odot (1 - x_i \odot x_i) + \lambda \nabla_{x_i} S

    Two nodes attract each other if the weight of their edge is above :math:`\beta`, and repel each
    other otherwise; the wells at :math:`\pm 1` keep the features bounded. :math:`\alpha` and
    :math:`\delta` are learned, one per channel, and kept in (0, 1) by a sigmoid, as in the authors'
    code. That code sums :math:`(a_{ij} - \beta) x_j` and subtracts :math:`x_i`; here the sum is the
    published one, of differences.

    Args:
        attraction: ``"gat"`` learns :math:`a_{ij}`, see :class:`AttentionDiffusion`; ``"gcn"`` uses
            the constant weights of the graph convolution.
        every_evaluation: See :class:`AttentionDiffusion`; the authors' code has ``False``.
        repulsion: :math:`\beta \ge 0`. Explicit steps are stable while :math:`\alpha \beta k` per
            step is below about 1 at a node of degree *k*. For a large :math:`\beta` and hubs, take
            more steps or an adaptive solver.
        coupling: Initial value of :math:`\alpha`, in (0, 1).
        well: Initial value of :math:`\delta`, in (0, 1).
        heads: Number of attention heads.
        head_channels: Size of each head's queries and keys.
        steps_per_layer: Steps per unit of time of a fixed-step solver.
        **options: Further arguments of :class:`GraphODE`: ``dropout``, ``entropy``, ``method``,
            ``rtol``, ``atol``, ``adjoint`` and ``checkpoint``.

    Example:
        >>> model = ACMP(16, 32, 7, num_layers=4, attraction="gcn", repulsion=0.1)
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int,
        *,
        attraction: Literal["gat", "gcn"] = "gat",
        every_evaluation: bool = False,
        repulsion: float = 0.05,
        coupling: float = 0.5,
        well: float = 0.5,
        heads: int = 4,
        head_channels: int = 16,
        steps_per_layer: int = 10,
        **options: Any,
    ) -> None:
        if attraction not in ("gat", "gcn"):
            raise ValueError(f"attraction must be 'gat' or 'gcn', but is {attraction!r}.")
        sizes = (in_channels, hidden_channels, out_channels, num_layers)
        super().__init__(*sizes, steps_per_layer=steps_per_layer, **options)
        attract = (
            GCNDiffusion()
            if attraction == "gcn"
            else AttentionDiffusion(hidden_channels, heads, head_channels, every_evaluation)
        )
        self.field = AllenCahn(hidden_channels, attract, repulsion, coupling, well)
