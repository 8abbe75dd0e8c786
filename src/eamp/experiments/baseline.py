"""The baseline of a search: its best cell without the entropy step."""

from dataclasses import replace
from statistics import mean

from eamp.experiments.cell import Cell
from eamp.experiments.store import Store
from eamp.experiments.sweep import failures, label, sweep
from eamp.nn.models.description import describe
from eamp.training import METRICS


def without_step(cell: Cell) -> Cell | None:
    """Return the cell with weight 0, or ``None`` if it takes no entropy step anyway.

    Example:
        >>> with_step = Cell("gcn", "cora", 4, entropy={"weight": 3, "learn_weight": True})
        >>> without_step(with_step).entropy
        {'weight': 0.0}
        >>> without_step(Cell("gcn", "cora", 4)) is None
        True
    """
    given = cell.entropy or {}
    takes_step = cell.entropy is not None or describe(cell.model).entropy == "always"
    if not takes_step or given.get("weight") == 0:
        return None
    kept = {name: value for name, value in given.items() if name != "learn_weight"}
    return replace(cell, entropy={**kept, "weight": 0.0})


def validation_metric(cell: Cell, seeds: int, store: Store, workers: int = 2) -> float:
    """Train a cell with so many seeds in a store of its own, as a sweep does.

    Returns:
        The validation metric at the selected epoch, as a mean over the seeds.

    Raises:
        ValueError: if a training fails.
    """
    cells = [replace(cell, seed=cell.seed + more) for more in range(seeds)]
    try:
        sweep(cells, store, workers)
    except ValueError as error:  # a network that cannot be made
        raise ValueError(f"the baseline failed: {error}") from error
    for failed, reason in failures(cells, store):
        raise ValueError(f"the baseline failed: {label(failed)}: {reason}")
    latest, merit = store.latest(), METRICS[cell.metric].merit
    return mean(merit(latest[each.key].values[0]) for each in cells)


def in_words(value: float, best: float, seeds: int, metric: str = "accuracy") -> str:
    """Return the baseline beside the value of the best trial; shares in percent.

    Example:
        >>> print(in_words(0.79, 0.8, 1))
        Baseline, the best trial without the entropy step: 79.00 (1 seed), and 80.00 with it.
        The baseline has settings that were searched with the step; its own search may find better.
    """
    text = METRICS[metric].text
    number = "1 seed" if seeds == 1 else f"{seeds} seeds"
    return (
        f"Baseline, the best trial without the entropy step: {text(value)} ({number}), and "
        f"{text(best)} with it.\nThe baseline has settings that were searched with the step; "
        "its own search may find better."
    )
