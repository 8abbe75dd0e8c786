import pytest
from benchmarks.growth import exponent


@pytest.mark.parametrize("power", [1.0, 1.3])
def test_the_exponent_of_a_power_law_is_found(power: float) -> None:
    assert exponent([(m, 3e-9 * m**power) for m in (10, 1000, 10**6)]) == pytest.approx(power)
