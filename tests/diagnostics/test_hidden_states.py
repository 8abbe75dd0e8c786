"""Hidden states of transformers, measured against dense sums over all pairs of tokens."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import (
    Module,
    ModuleList,
    MultiheadAttention,
    TransformerEncoder,
    TransformerEncoderLayer,
)

import eamp
from eamp.diagnostics import effective_rank, token_measures


def dense_energy(x: Tensor, a: Tensor) -> Tensor:
    """E_i of a dense weight matrix, as the definition has it."""
    a = a - torch.diag(a.diagonal())
    degree = a.sum(1)
    c = torch.where(degree > 0, (degree * x.size(1)).rsqrt(), 0.0)
    squares = (x.unsqueeze(0) - x.unsqueeze(1)).square().sum(-1)
    return c / 2 * (a * squares).sum(1)


@given(st.integers(1, 6), st.integers(0, 3), st.integers(0, 1000), st.booleans())
def test_energy_entropy_and_rank_are_those_of_dense_sums(
    tokens: int, padding: int, seed: int, attended: bool
) -> None:
    generator = torch.Generator().manual_seed(seed)
    total = tokens + padding
    hidden = [torch.randn(2, total, 4, generator=generator).double() for _ in range(3)]
    attentions = [
        torch.randn(2, 3, total, total, generator=generator).double().softmax(-1) for _ in range(2)
    ]
    mask = torch.zeros(2, total, dtype=torch.int64)
    mask[0, :tokens], mask[1] = 1, 1
    table = token_measures(
        hidden,
        attentions if attended else None,
        mask,
        measures=["energy", "entropy", "effective_rank"],
        temperature=1.5,
    ).set_index(["layer", "sequence"])
    assert table.loc[(0, 0), "tokens"] == tokens
    for layer, states in enumerate(hidden):
        for sequence in range(2):
            kept = mask[sequence].bool()
            x = states[sequence][kept]
            a = torch.ones(len(x), len(x)).double()
            if attended:
                mean = attentions[max(layer - 1, 0)][sequence].mean(0)[kept][:, kept]
                a = (mean + mean.T) / 2
            energy, found = dense_energy(x, a), table.loc[(layer, sequence)]
            assert found["energy"] == pytest.approx(float(energy.mean()), abs=1e-9)
            entropy = (energy / 1.5 * torch.exp(-energy / 1.5)).sum()
            assert found["entropy"] == pytest.approx(float(entropy), abs=1e-9)
            assert found["effective_rank"] == pytest.approx(float(effective_rank(x)), abs=1e-9)


def test_padding_changes_nothing() -> None:
    hidden = [torch.randn(1, 4, 3) for _ in range(2)]
    padded = [torch.cat([h, torch.full((1, 2, 3), math.inf)], 1) for h in hidden]
    mask = torch.tensor([[1, 1, 1, 1, 0, 0]])
    found, expected = token_measures(padded, mask=mask), token_measures(hidden)
    assert found.to_numpy().ravel() == pytest.approx(expected.to_numpy().ravel())


class Stack(Module):
    """Attention without residuals, which returns hidden states and attentions."""

    def __init__(self, layers: int, width: int) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = ModuleList(
            MultiheadAttention(width, 2, batch_first=True) for _ in range(layers)
        )

    def forward(self, x: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        hidden, attentions = [x], []
        for layer in self.layers:
            x, attention = layer(x, x, x, average_attn_weights=False)
            hidden.append(x)
            attentions.append(attention)
        return hidden, attentions


def test_a_stack_of_attention_alone_loses_rank_and_energy() -> None:
    x = torch.randn(2, 10, 16, generator=torch.Generator().manual_seed(0))
    hidden, attentions = Stack(6, 16)(x)
    table = token_measures(hidden, attentions).groupby("layer").mean()
    assert table["effective_rank"][6] < 2 < table["effective_rank"][0]
    assert table["relative_energy"][6] < 1e-3 < table["relative_energy"][0]


def test_a_torch_encoder_is_measured_through_hooks() -> None:
    layer = TransformerEncoderLayer(16, 2, 32, batch_first=True)
    encoder = TransformerEncoder(layer, 3, enable_nested_tensor=False)
    hidden: list[Tensor] = []
    for each in encoder.layers:
        each.register_forward_hook(lambda _, args, out: hidden.append(out))
    encoder(torch.randn(2, 5, 16))
    table = token_measures(hidden)
    assert list(table["layer"]) == [0, 0, 1, 1, 2, 2]
    assert set(table.columns) >= {"energy", "relative_energy", "entropy", "effective_rank"}


def test_wrong_shapes_say_what_was_expected() -> None:
    hidden = [torch.randn(2, 5, 4) for _ in range(3)]
    with pytest.raises(ValueError, match="output_hidden_states=True"):
        token_measures(torch.randn(5, 4))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="1 attentions for 3 hidden states"):
        token_measures(hidden, [torch.rand(2, 1, 5, 5)])
    with pytest.raises(ValueError, match=r"attn_implementation='eager'"):
        token_measures(hidden, [None, None])  # type: ignore[list-item]
    with pytest.raises(ValueError, match=r"mask must have shape \[2, 5\]"):
        token_measures(hidden, mask=torch.ones(5))
    with pytest.raises(ValueError, match="merges tokens"):
        token_measures([*hidden, torch.randn(2, 4, 4)])
    with pytest.raises(eamp.GraphError, match="finite and >= 0"):
        token_measures(hidden, [-torch.rand(2, 1, 5, 5)] * 3)
