from eamp.report.axes import LogAxis


def test_zeros_have_a_lane_of_their_own() -> None:
    axis = LogAxis([1.0, 1e-30, 0.0], "energy")
    assert axis.place(1e-30) == 1e-30
    assert axis.bottom < axis.place(0.0) < axis.border < 1e-30
    assert len(axis.lane()) == 2
    assert LogAxis([1.0, 0.5], "energy").lane() == []
