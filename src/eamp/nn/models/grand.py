"""Graph neural diffusion and, with ``entropy=``, its entropy-aware form."""

from typing import Any, Literal

from eamp.nn.conv.vector_fields import AttentionDiffusion, RandomWalkDiffusion
from eamp.nn.models.graph_ode import GraphODE


class GRAND(GraphODE):
    r"""Graph neural diffusion; with ``entropy``, entropy-aware diffusion.

    From `"GRAND: Graph Neural Diffusion" <https://arxiv.org/abs/2106.10934>`_ (Chamberlain et al.,
    2021) and the appendix of `"Entropy Aware Message Passing in Graph Neural Networks"
    <https://arxiv.org/abs/2403.04636>`_ (Nazari et al., 2024).

    .. math::
        \dot{\mathbf{X}} = (\mathbf{A}(\mathbf{X}) - I)\, \mathbf{X} + \lambda \nabla S(\mathbf{X})

    Euler's method with one step per layer is :math:`\mathbf{X} \leftarrow \mathbf{A X}`.

    Args:
        attention: ``"linear"`` computes :math:`\mathbf{A}` from the features at time 0,
            ``"nonlinear"`` at every evaluation; ``"constant"`` is :math:`\tilde{D}^{-1}(A + I)`,
            without parameters.
        heads: Number of attention heads.
        head_channels: Size of each head's queries and keys.
        **options: Further arguments of :class:`GraphODE`: ``dropout``, ``entropy``, ``method``,
            ``steps_per_layer``, ``rtol``, ``atol``, ``adjoint`` and ``checkpoint``.

    Example:
        >>> model = GRAND(16, 32, 7, num_layers=4, entropy=dict(weight=1.0, temperature=1.0))
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int,
        *,
        attention: Literal["linear", "nonlinear", "constant"] = "linear",
        heads: int = 4,
        head_channels: int = 16,
        **options: Any,
    ) -> None:
        if attention not in ("linear", "nonlinear", "constant"):
            raise ValueError(
                f"attention must be 'linear', 'nonlinear' or 'constant', but is {attention!r}."
            )
        super().__init__(in_channels, hidden_channels, out_channels, num_layers, **options)
        fresh = attention == "nonlinear"
        self.field = (
            RandomWalkDiffusion()
            if attention == "constant"
            else AttentionDiffusion(hidden_channels, heads, head_channels, every_evaluation=fresh)
        )
