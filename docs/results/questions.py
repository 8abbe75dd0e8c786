"""The questions of the first table of the evidence: a step beside one of its controls."""

from typing import Any, NamedTuple


class Question(NamedTuple):
    """Two networks to compare.

    Attributes:
        place: the kind of network and the data, in words.
        one: the first network in words, and
        other: the second.
        recipe: the file of their runs, without its ending.
        names: the names of both in that file.
        where: which of their runs count; see :func:`comparisons.pairs_of`.
    """

    place: str
    one: str
    other: str
    recipe: str
    names: tuple[str, str]
    where: dict[str, Any] = {}  # noqa: RUF012, a default that nobody changes


STEP, SKIP, PERMUTED, NONE = "step, T = 1", "plain skip connection", "permuted factors", "no step"
ENTROPIC = "entropic, T = 1"  # the row of the plain stacks
LARGER = "no step, initial scale searched"
HARDER = (
    "missing_features:cora",
    "corrupted_features=0.3:cora",
    "labels_per_class=5:cora",
    "extra_edges=0.5:cora",
)


def of_plain_stacks() -> list[Question]:
    """Compare the thermostat with what else may hold the energies of a plain stack."""
    place, recipe = "plain stack, Cora, 64 layers", "thermostat_searched"
    controls = {
        "T = 10¹²": "T = ∞",
        "T = 10": "T = 10",
        PERMUTED: "T = 1, permuted",
        "λ by the mean energy": "scalar feedback, T = ∞",
        "λ by each node's energy": "node feedback, T = ∞",
        "no step, same weights": "no step, initial weights of the entropic row",
        "no step, scale searched": LARGER,
        "PairNorm, searched": "PairNorm, scale searched",
        "PairNorm, scale 3": "PairNorm, scale 3 per node",
    }
    found = [Question(place, STEP, w, recipe, (ENTROPIC, name)) for w, name in controls.items()]
    wide = "the same, width 128", STEP, "no step, scale searched", "thermostat_wide"
    found.append(Question(*wide, (ENTROPIC, LARGER)))
    for depth in (16, 32, 128):
        for words in ("no step, same weights", "no step, scale searched", "PairNorm, scale 3"):
            of = f"the same, {depth} layers", STEP, words, "thermostat_depth"
            found.append(Question(*of, (ENTROPIC, controls[words]), {"depth": depth}))
    return found


def of_untrained_networks() -> list[Question]:
    """Compare steps above and below the threshold where only a readout is fitted."""
    found = []
    for depth in (16, 64, 256):
        place, at = f"untrained, Cora, {depth} layers", {"depth": depth}
        for sign, name in ((">", "step above λ*"), ("<", "step below λ*")):
            words, names = (f"step, λ {sign} λ\\*", NONE), (name, NONE)
            found.append(Question(place, *words, "frozen", names, {**at, "choose": True}))
        # In one setting: the step had temperatures to choose from, its control had not.
        setting = "above λ* [g = 2, T = 1]"
        names = f"step {setting}", f"permuted {setting}"
        found.append(Question(place, "step, 2 λ\\*, T = 1", PERMUTED, "frozen", names, at))
    return found


def of_other_data() -> list[Question]:
    """Compare steps on other data, in the settings that validation chooses and in given ones."""
    found = []
    for data, recipe in {
        **dict.fromkeys(HARDER, "harder"),
        "chameleon-filtered": "heterophilous",
        "actor": "actor",
        "chains": "distant",
        "distance": "distant",
    }.items():
        where = {"data": data, "choose": True}
        for words, name in ((SKIP, "lazy walk"), (PERMUTED, "permuted"), (NONE, NONE)):
            names = "entropic", name
            found.append(Question(data, "step, finite T", words, recipe, names, where))
    mines = {"data": "minesweeper (ROC AUC)", "choose": True}
    for words, name in (("T = ∞", "linear step"), (PERMUTED, "permuted")):
        names = "entropic", name
        found.append(Question("minesweeper", "step, finite T", words, "minesweeper", names, mines))
    for data in HARDER:
        place, where = f"{data}, share .9 given", {"data": data}
        controls = {SKIP: "lazy walk", PERMUTED: "T = 0.1, permuted", NONE: NONE}
        for words, name in controls.items():
            names = "T = 0.1", name
            found.append(Question(place, "step, T = 0.1", words, "strong_steps", names, where))
    return found


QUESTIONS = [
    *(
        Question("identity weights, Cora, 64 layers", one, other, "controls_cora", names)
        for one, other, names in (
            ("step, T = 100", SKIP, ("step, T = 100", "lazy walk")),
            (STEP, SKIP, ("step, T = 1", "lazy walk")),
            (STEP, PERMUTED, ("step, T = 1", "step, T = 1, permuted")),
        )
    ),
    *(
        Question("initial residual, Cora, 16 layers", one, other, "finite_restart", names)
        for one, other, names in (
            (STEP, NONE, ("T = 1", NONE)),
            ("step, T = 0.1", NONE, ("T = 0.1", NONE)),
            ("step, T = 0.1", PERMUTED, ("T = 0.1", "T = 0.1, permuted")),
        )
    ),
    *of_plain_stacks(),
    *(
        Question("mirrored weights, Cora, 64 layers", one, other, "mirrored", names)
        for one, other, names in (
            (STEP, NONE, ("T = 1", NONE)),
            (STEP, "PairNorm", ("T = 1", "PairNorm")),
            (NONE, "PairNorm", (NONE, "PairNorm")),
            (STEP, "T = 10¹²", ("T = 1", "T = ∞")),
            (STEP, PERMUTED, ("T = 1", "T = 1, permuted")),
        )
    ),
    Question("the same, learning rate 1e-4", STEP, NONE, "mirrored_rates", ("T = 1", NONE)),
    *(
        Question("the same, 256 layers", STEP, other, "mirrored_deep", ("T = 1", other))
        for other in (NONE, "PairNorm")
    ),
    *of_untrained_networks(),
    *of_other_data(),
]
