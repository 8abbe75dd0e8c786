import pandas as pd

from eamp.paper.differences_from_paper import differences, not_measured
from eamp.paper.findings import findings
from eamp.paper.frames import Frames


def brief(frames: dict[str, pd.DataFrame], **changes: pd.DataFrame) -> str:
    found = findings(Frames(**{**frames, **changes}))
    return "\n".join(f"{f.sentence}\n{f.number} {f.words}" for f in found)


def test_findings_are_computed(frames: dict[str, pd.DataFrame]) -> None:
    text = brief(frames)
    assert "15 of the 16 cells" in text
    assert "G2 with 64 layers on Cora: .660, where the paper has .56" in text
    assert (
        "Entropic GCN reaches a highest validation accuracy of .350 ± .014, "
        "and Basic GCN of .180 ± .014 (paper: .35 and .18)" in text
    )
    assert (
        "Basic GCN 0 (layer 1, the paper's 0.02), Entropic GCN 0.12 (layer 32, the paper's 0.09)"
        in text
    )
    assert "only for λ above 4.8" in text
    assert (
        "λ = 1, the paper's choice for Cora, lies below it and "
        "λ = 10, the paper's choice for CiteSeer, lies above it" in text
    )


def test_findings_follow_the_numbers(frames: dict[str, pd.DataFrame]) -> None:
    cells = frames["cells"]
    far = (cells["name"] == "G2") & (cells["data"] == "cora") & (cells["depth"] == 64)
    nearer = cells.assign(best_val_accuracy=cells["best_val_accuracy"] - 0.1 * far)
    assert "16 of the 16 cells" in brief(frames, cells=nearer)
    low = frames["thresholds"].assign(measured=0.5)
    assert "λ = 1, the paper's choice for Cora, lies above it" in brief(frames, thresholds=low)
    held = frames["depth_energies"].assign(energy=1.0)
    assert "Losing more than that: none." in brief(frames, depth_energies=held)


def test_shallow_networks_beside_pairnorm(frames: dict[str, pd.DataFrame]) -> None:
    cells = frames["cells"]
    shallow = cells[cells["depth"] == cells["depth"].min()]
    pairnorm = shallow[shallow["name"] == "Entropic GCN"].assign(name="PairNorm")
    others = cells[cells["name"] != "PairNorm"]
    for change, word in ((-0.1, "holds"), (0.1, "fails")):
        moved = pairnorm.assign(best_val_accuracy=pairnorm["best_val_accuracy"] + change)
        text = brief(frames, cells=pd.concat([others, moved]))
        assert f"outperforms PairNorm when shallow {word} on Cora with 4 layers" in text


def test_the_gap_between_the_two_readings(frames: dict[str, pd.DataFrame]) -> None:
    assert "lies on average .020 above the test accuracy" in brief(frames)
    swapped = frames["cells"].rename(
        columns={"test_accuracy": "best_val_accuracy", "best_val_accuracy": "test_accuracy"}
    )
    assert "lies on average .020 below the test accuracy" in brief(frames, cells=swapped)


def test_differences_state_their_measured_effect(frames: dict[str, pd.DataFrame]) -> None:
    found = differences(Frames(**frames))
    points = {point.subject: point.measured for point in found}
    assert (
        "Cora, 64 layers: +.200 ± .000 highest validation accuracy, +.120 ± .000 test accuracy"
        in points["G2's logits"]
    )
    assert "−.050 ± .000" in points["Detached or not"]
    assert points["The gradient's formula"] == ""
    assert "not measured in this run" in not_measured(found)  # once, and not beside every point
    assert not_measured([point for point in found if point.measured]) == ""
    assert "λ = 10, T = 1: 0.98 at 1000 layers, held" in points["Figure 2's constant energy"]
    assert "λ = 4.8" in points["Figure 2's constant energy"]
