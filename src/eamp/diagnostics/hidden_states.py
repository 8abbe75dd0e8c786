"""Measures of a transformer's hidden states: the tokens of a sequence as nodes of a graph.

Without attentions every token is a neighbour of every other. With them the graph is the attention,
averaged over heads and made symmetric, without the attention of a token to itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from eamp.diagnostics.measures.named_measures import MeasureSelection, select_measures
from eamp.functional import check_temperature
from eamp.graph import Graph

if TYPE_CHECKING:
    import pandas as pd


def token_measures(
    hidden_states: Sequence[Tensor],
    attentions: Sequence[Tensor] | None = None,
    mask: Tensor | None = None,
    *,
    measures: MeasureSelection = ("energy", "relative_energy", "entropy", "effective_rank", "norm"),
    temperature: float = 10.0,
) -> pd.DataFrame:
    r"""Measure how alike the tokens of every sequence are, layer by layer.

    The arguments are those that Hugging Face's models return with ``output_hidden_states=True`` and
    ``output_attentions=True``. The graph of a sequence in a layer has the weights

    .. math::
        a_{ij} = \tfrac12 (\bar A_{ij} + \bar A_{ji}), \quad i \ne j, \qquad
        \bar A = \text{mean over heads}

    and without attentions :math:`a_{ij} = 1`.

    Args:
        hidden_states: the embeddings ``[batch, tokens, width]`` before the first layer and behind
            every layer, or behind the layers alone.
        attentions: ``[batch, heads, tokens, tokens]`` of every layer, or ``None`` for a graph in
            which all tokens are neighbours. The embedding before the first layer is then measured
            on the attention of the first layer.
        mask: ``[batch, tokens]``, true or 1 for tokens and 0 for padding, which is left out.
        measures: see :func:`eamp.probe`.
        temperature: temperature of the entropy.

    Returns:
        One row for every layer and sequence. Layer 0 is the first of ``hidden_states``, the
        embedding before all layers; if there are as many attentions, it is layer 1.

    Raises:
        ValueError: if the shapes do not fit.

    Example:
        >>> import torch
        >>> hidden = [torch.randn(2, 5, 8) for _ in range(4)]
        >>> attention = [torch.rand(2, 3, 5, 5).softmax(-1) for _ in range(3)]
        >>> table = token_measures(hidden, attention, measures="energy")
        >>> list(table.columns), len(table)
        (['layer', 'sequence', 'tokens', 'energy'], 8)
    """
    import pandas as pd  # slow to load, and needed for tables only

    chosen = select_measures(measures, float(check_temperature(temperature)), None)
    hidden, weights = list(hidden_states), None if attentions is None else list(attentions)
    mask = check_shapes(hidden, weights, mask)
    first = 0 if weights is None or len(hidden) > len(weights) else 1
    lengths, device = set(mask.sum(1).tolist()), hidden[0].device
    complete = {n: Graph(all_pairs(n, device), n) for n in lengths} if weights is None else {}
    rows = []
    for layer, states in enumerate(hidden, start=first):
        for sequence, kept in enumerate(mask):
            if weights is None:
                graph = complete[int(kept.sum())].to(states.device)
            else:
                graph = attention_graph(weights[max(layer, 1) - 1][sequence][:, kept][:, :, kept])
            row = {"layer": layer, "sequence": sequence, "tokens": graph.num_nodes}
            rows.append(row | chosen.evaluate(states[sequence][kept].detach(), graph))
    return pd.DataFrame(rows)


def attention_graph(attention: Tensor) -> Graph:
    """Return the graph of the attention ``[heads, n, n]`` in one sequence."""
    mean = attention.detach().double().mean(0)
    pairs = all_pairs(mean.size(0), mean.device)
    weight = (mean + mean.T) / 2
    return Graph(pairs, mean.size(0), edge_weight=weight[pairs[0], pairs[1]])


def all_pairs(tokens: int, device: torch.device) -> Tensor:
    """Return the ``edge_index`` in which every token is a neighbour of every other."""
    return (~torch.eye(tokens, dtype=torch.bool, device=device)).nonzero().T


def check_shapes(
    hidden: Sequence[Tensor], attentions: Sequence[Tensor] | None, mask: Tensor | None
) -> Tensor:
    """Return a mask of truth values, after checking that all shapes fit."""
    if not hidden or any(not isinstance(h, Tensor) or h.dim() != 3 for h in hidden):
        raise ValueError(
            "hidden_states must be tensors [batch, tokens, width], one per layer; pass "
            "model(..., output_hidden_states=True).hidden_states."
        )
    batch, tokens = hidden[0].shape[:2]
    if any(h.shape[:2] != (batch, tokens) for h in hidden):
        raise ValueError(
            "hidden_states must have one shape, but have "
            f"{sorted({tuple(h.shape[:2]) for h in hidden})}; a model that merges tokens is "
            "measured in pieces."
        )
    if attentions is not None:
        expected = (batch, tokens, tokens)
        if len(hidden) - len(attentions) not in (0, 1):
            raise ValueError(
                f"there are {len(attentions)} attentions for {len(hidden)} hidden states; expected "
                "as many, or one less if the embedding before the first layer is among them."
            )
        for a in attentions:
            if not isinstance(a, Tensor) or a.dim() != 4 or (a.size(0), *a.shape[2:]) != expected:
                got = list(a.shape) if isinstance(a, Tensor) else type(a).__name__
                raise ValueError(
                    f"attentions must be tensors [{batch}, heads, {tokens}, {tokens}], but one is "
                    f"{got}; in Hugging Face's models pass attn_implementation='eager'."
                )
    if mask is None:
        return torch.ones(batch, tokens, dtype=torch.bool, device=hidden[0].device)
    if mask.shape != (batch, tokens):
        raise ValueError(
            f"mask must have shape [{batch}, {tokens}], but has {list(mask.shape)}; pass the "
            "attention_mask of the tokenizer."
        )
    return mask.bool()
