"""Paired statistics, against numbers worked out by hand and against their definitions."""

import itertools
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from eamp import cli
from eamp.experiments.statistics import Comparison, compare, holm, paired


def test_interval_and_t_by_hand() -> None:
    found = paired([0.01, 0.03, 0.02, 0.06])
    # Mean .03, sum of squares .0014, standard error sqrt(.0014 / 3 / 4), t(.975, 3) = 3.18245.
    error = math.sqrt(0.0014 / 3 / 4)
    assert found.pairs == 4
    assert found.change == pytest.approx(0.03)
    assert found.low == pytest.approx(0.03 - 3.18245 * error, rel=1e-5)
    assert found.high == pytest.approx(0.03 + 3.18245 * error, rel=1e-5)
    assert found.p_t == pytest.approx(2 * stats.t.sf(0.03 / error, 3))


def test_signs_by_hand() -> None:
    # Of the 8 sums of ±1 ±2 ±4 those as far from 0 as 1 − 2 + 4 = 3 are ±3, ±5 and ±7.
    # The ranks 1, 2, 3 give 1 − 2 + 3 = 2: all sums but the two of 0 are as far.
    found = paired([0.01, -0.02, 0.04])
    assert found.p_permutation == 6 / 8
    assert found.p_wilcoxon == 6 / 8
    # With 1, 2 and 3 the sum 1 − 2 − 3 = −4 is reached by ±4 and ±6, its ranks alike.
    assert paired([0.01, -0.02, -0.03]).p_wilcoxon == 4 / 8


def test_ties_share_their_rank_although_accuracies_are_rounded() -> None:
    one = np.array([0.815, 0.803, 0.822, 0.811], dtype=np.float32).astype(float)
    other = np.array([0.812, 0.800, 0.819, 0.810], dtype=np.float32).astype(float)
    # Three differences of .003 have the ranks 3, 3, 3; without ties it would be 2, 3, 4.
    found = paired(one - np.where(np.arange(4) == 0, one + 0.003, other))
    # −3 + 3 + 3 + 1 = 4: of the 16 sums, all but those of −2 and 2 (three each) are as far.
    assert found.p_wilcoxon == 10 / 16


def test_wilcoxon_agrees_with_scipy_where_that_is_exact() -> None:
    for number in (5, 12, 30):
        differences = np.random.default_rng(number).normal(0.3, 1, number)
        expected = stats.wilcoxon(np.round(differences, 6), method="exact").pvalue
        assert paired(differences).p_wilcoxon == pytest.approx(expected)


def test_many_pairs_are_drawn_with_a_fixed_seed() -> None:
    differences = np.random.default_rng(0).normal(0.4, 1, 20)
    p = paired(differences).p_permutation
    assert p == paired(differences).p_permutation
    assert p == pytest.approx(paired(differences).p_t, abs=0.02)
    # All 2^14 signs of 14 equal differences: only two reach the mean, and the draws none or one.
    assert paired([0.1] * 14).p_permutation < 0.002


def test_figures_that_do_not_exist_are_missing() -> None:
    def missing(found: Comparison) -> set[str]:
        return {name for name, value in vars(found).items() if math.isnan(value)}

    p_values = {"p_t", "p_wilcoxon", "p_permutation"}
    assert missing(paired([])) == {"change", "low", "high", *p_values}
    assert missing(paired([0.1])) == {"low", "high", *p_values}
    assert missing(paired([0.1, 0.1])) == {"low", "high", "p_t"}
    assert paired([0.0, 0.0, 0.0]).p_wilcoxon == 1
    assert paired([0.0, 0.2, 0.0]).p_wilcoxon == 1  # one sign or the other
    assert paired([0.0, 0.2, 0.0]).p_permutation == 1


def test_under_the_null_p_values_are_uniform() -> None:
    random = np.random.default_rng(1)
    found = [paired(random.normal(0, 0.01, 10)) for _ in range(400)]
    for name, level in itertools.product(("p_t", "p_wilcoxon", "p_permutation"), (0.05, 0.2, 0.5)):
        share = np.mean([getattr(each, name) <= level for each in found])
        # Four standard errors; the levels of Wilcoxon's test are .02 apart.
        assert abs(share - level) < 4 * math.sqrt(level * (1 - level) / 400) + 0.02, (name, level)
    shifted = [paired(random.normal(0.01, 0.01, 10)).p_permutation for _ in range(100)]
    assert np.mean([p <= 0.05 for p in shifted]) > 0.6


def test_holm_by_its_definition() -> None:
    """An adjusted p is the smallest level at which Holm's steps reject that hypothesis."""

    def rejected(p_values: np.ndarray, level: float) -> set[int]:
        done: set[int] = set()
        for left, index in zip(range(len(p_values), 0, -1), np.argsort(p_values), strict=True):
            if p_values[index] > level / left:
                break
            done.add(int(index))
        return done

    for seed in range(5):
        p_values = np.random.default_rng(seed).uniform(0, 0.3, 6)
        adjusted = holm(p_values)
        for index, level in itertools.product(range(6), np.linspace(0.01, 0.99, 50)):
            assert (index in rejected(p_values, level)) == (adjusted[index] <= level)
    np.testing.assert_allclose(holm([0.02, math.nan, 0.01, 0.6]), [0.04, math.nan, 0.03, 0.6])
    assert holm([0.9, 0.8]).tolist() == [1, 1]
    assert holm([]).size == 0


def frame(*rows: tuple[str, int, int, int, float]) -> pd.DataFrame:
    columns = ["name", "depth", "seed", "split", "test_accuracy"]
    return pd.DataFrame(rows, columns=columns).assign(data="cora")


def test_pairs_have_the_same_seed_and_split() -> None:
    table = frame(
        ("b", 2, 1, 0, 0.9),
        ("b", 2, 0, 1, 0.7),
        ("b", 2, 0, 0, 0.5),
        ("b", 2, 7, 0, 0.1),  # without a partner
        ("a", 2, 0, 0, 0.4),
        ("a", 2, 0, 1, 0.5),
        ("a", 2, 1, 0, 0.6),
    )
    found = compare(table, "a")
    assert found["name"].tolist() == ["b", "a"]
    assert found["pairs"].tolist() == [3, 0]
    assert found["change"][0] == pytest.approx((0.1 + 0.2 + 0.3) / 3)
    by_split = compare(table, "a", by_split=True)
    assert by_split["pairs"].tolist() == [2, 1, 0, 0]
    assert by_split["change"][1] == pytest.approx(0.2)


def test_the_reference_has_the_same_depth_or_its_only_one() -> None:
    rows = [("b", depth, 0, 0, 0.5 + depth / 100) for depth in (2, 4)]
    one = compare(frame(*rows, ("a", 8, 0, 0, 0.5)), "a")
    assert one["change"][:2].tolist() == pytest.approx([0.02, 0.04])
    two = compare(frame(*rows, ("a", 8, 0, 0, 0.5), ("a", 4, 0, 0, 0.44)), "a")
    assert two["pairs"].tolist() == [0, 1, 0, 0]
    assert two["change"][1] == pytest.approx(0.1)


def test_holms_correction_is_over_the_rows_of_the_table() -> None:
    rows = [("a", 2, seed, 0, 0.5) for seed in range(5)]
    rows += [
        (name, 2, seed, 0, 0.5 + sign * 0.01 * (seed + 1))
        for name, sign in (("b", 1), ("c", -1))
        for seed in range(5)
    ]
    found = compare(frame(*rows), "a")
    assert found["p_wilcoxon"][1:].tolist() == [0.0625, 0.0625]
    assert found["p_wilcoxon_holm"][1:].tolist() == [0.125, 0.125]


def test_pairs_that_cannot_be_told_are_refused() -> None:
    table = frame(("a", 2, 0, 0, 0.4), ("b", 2, 0, 0, 0.4), ("b", 2, 0, 0, 0.5))
    with pytest.raises(ValueError, match="several networks named 'b' have the same seed, split"):
        compare(table, "a")


def test_a_sweep_against_one_of_its_runs(
    tmp_path: Path, in_this_process: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(
        "{data: 'csbm:nodes=60,features=8', depth: 2, width: 8, changes: {epochs: 2}, seeds: 3, "
        "runs: [{model: gcn, name: plain}, {model: gcnii}]}",
        encoding="utf-8",
    )
    command = ["sweep", str(recipe), "--output", str(tmp_path / "runs"), "--against"]
    assert cli.main([*command, "plane"]) == 2
    assert "no run is named 'plane'; there are plain, gcnii." in capsys.readouterr().err
    assert in_this_process == []
    assert cli.main([*command, "plain"]) == 0
    said = capsys.readouterr().out
    assert "“plain”" in said
    assert f"The page: {tmp_path / 'runs' / 'report.html'}" in said.replace("\n", "")
    cells = pd.read_csv(tmp_path / "runs" / "cells.csv")
    readings = cells.pivot_table(index="seed", columns="name", values="test_accuracy")
    compared = pd.read_csv(tmp_path / "runs" / "comparison.csv").set_index("name")
    expected = (readings["gcnii"] - readings["plain"]).mean()
    assert compared.loc["gcnii", "change"] == pytest.approx(expected, abs=1e-6)
    assert compared.loc["plain", "pairs"] == 0
    page = (tmp_path / "runs" / "comparison.md").read_text("utf-8")
    assert "minus that of “plain”" in page
    assert f"{100 * expected:+.2f}" in page


def test_a_depth_that_the_reference_lacks_has_no_pairs() -> None:
    """A cell of the reference has failed; its other depth is not put in its place."""
    columns = ["name", "depth", "seed", "test_accuracy"]
    shallow = [("a", 2, seed, 0.5 + seed / 10) for seed in (0, 1)]
    others = [("b", depth, seed, 0.6 + seed / 10) for depth in (2, 64) for seed in (0, 1)]
    table = pd.DataFrame([*shallow, *others], columns=columns).assign(data="cora")
    pairs = compare(table, "a", depths={"cora": {2, 64}}).set_index(["name", "depth"])["pairs"]
    assert pairs["b", 2] == 2
    assert pairs["b", 64] == 0
    pairs = compare(table, "a", depths={"cora": {2}}).set_index(["name", "depth"])["pairs"]
    assert pairs["b", 64] == 2
