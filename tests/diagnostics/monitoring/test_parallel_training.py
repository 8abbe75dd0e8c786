"""A monitor under DistributedDataParallel, in two processes that communicate."""

from pathlib import Path

import pytest

from diagnostics.monitoring.parallel_training import EPOCHS, EVERY, LAYERS, gained, trained
from scale.jobs import together

pytestmark = pytest.mark.slow


def test_process_0_measures_and_the_run_stays_the_same_to_the_bit(tmp_path: Path) -> None:
    bare = together(2, trained, None)
    watched = together(2, trained, str(tmp_path))
    for (losses, parameters, *_), (same_losses, same_parameters, *_) in zip(
        bare, watched, strict=True
    ):
        assert losses == same_losses
        assert parameters == same_parameters
    assert bare[0][0] != bare[1][0]  # data of their own
    assert bare[0][1] == bare[1][1]  # and the same model
    measured = [epoch for epoch in range(0, EPOCHS, EVERY) for _ in range(LAYERS)]
    assert [epochs for *_, epochs, _ in watched] == [measured, []]
    alarms = [count for *_, count in watched]
    assert alarms[0] > 0
    assert alarms[1] == 0
    assert {path.name for path in tmp_path.iterdir()} == {"monitor.csv", "monitor.html"}


@pytest.mark.parametrize("kind", ["number", "gain"])
@pytest.mark.filterwarnings("ignore::eamp.diagnostics.CollapseWarning")
def test_every_process_has_the_weight_that_process_0_has_raised(kind: str) -> None:
    (numbers, out), (same_numbers, same_out) = together(2, gained, kind)
    assert numbers[-1] > numbers[0]
    assert numbers == same_numbers
    assert out == same_out
