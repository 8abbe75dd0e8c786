from benchmarks.timing import interleaved, machine, ratios


def test_functions_take_turns() -> None:
    calls: list[str] = []
    seconds = interleaved(
        {"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, rounds=3, round_seconds=0
    )
    assert {name: len(times) for name, times in seconds.items()} == {"a": 3, "b": 3}
    assert calls[-6:] == ["a", "b"] * 3


def test_ratios_are_medians_within_rounds_and_of_the_fastest_rounds() -> None:
    found = ratios({"a": [2.0, 30.0, 9.0], "b": [1.0, 10.0, 1.0]}, [("a", "b")])
    assert found == {"a / b": {"median": 3.0, "fastest": 2.0}}


def test_the_machine_is_named() -> None:
    facts = machine()
    assert facts["threads"] > 0
    assert all(facts[name] for name in ("processor", "system", "python", "torch", "numba"))
