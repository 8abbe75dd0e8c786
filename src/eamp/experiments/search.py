"""The settings that a search tries: a space around a cell."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from eamp.experiments.cell import Cell
from eamp.experiments.database import StoreError
from eamp.experiments.schema import JSON_COLUMNS, KINDS, TEXT_COLUMNS
from eamp.experiments.store import Store
from eamp.nn.models.registry import default_step
from eamp.optional import extra
from eamp.spelling import did_you_mean

with extra("experiments"):
    from optuna import distributions

DEFAULT_SPACE: dict[str, Any] = {
    "entropy.weight": {"low": 0.1, "high": 30.0, "log": True},
    "entropy.temperature": {"low": 0.01, "high": 100.0, "log": True},
    "changes.learning_rate": {"low": 1e-4, "high": 0.03, "log": True},
}
PLAIN = tuple(n for n in KINDS if n not in (*TEXT_COLUMNS, *JSON_COLUMNS, "seed", "split"))


@dataclass(frozen=True)
class Search:
    """A search space around a cell.

    Attributes:
        cell: the settings that are not searched.
        space: for each setting, by a name such as ``dropout`` or ``entropy.weight.of``, a list of
            choices, or a range: ``{"low": 0.1, "high": 30, "log": true}``. A range with a whole
            number as ``step`` is of whole numbers.
        seeds: number of trainings whose mean is a trial's value; the first has the cell's seed.
        prune: stop trials that are worse than the median of earlier trials at the same epoch.
    """

    cell: Cell
    space: Mapping[str, Any]
    seeds: int = 1
    prune: bool = True

    def __post_init__(self) -> None:
        if self.seeds < 1:
            raise ValueError(f"seeds must be at least 1, but is {self.seeds}.")
        if not isinstance(self.space, Mapping):
            raise TypeError(
                f'space must be a mapping, as in {{"dropout": [0, 0.5]}}, but is {self.space!r}.'
            )
        if "changes.metric" in self.space:
            raise ValueError(
                "trials are compared by the metric, which must be the same in all of them: give it "
                'in the changes of the protocol, as in {"metric": "roc_auc"}, not in the search.'
            )
        for name, choice in self.space.items():
            distribution(name, choice)
            head, *rest = name.split(".")
            put(getattr(self.cell, head), rest, None)

    def given(self) -> dict[str, Any]:
        """Return the values that the cell itself has, of the settings whose space holds them."""
        found = {}
        for name, choice in self.space.items():
            head, *rest = name.split(".")
            value = getattr(self.cell, head)
            if head == "entropy" and value is None:
                value = default_step(self.cell.model)
            for key in rest:
                value = value.get(key) if isinstance(value, Mapping) else None
            if value is None and head == "changes":
                value = getattr(self.cell.rules, rest[0], None) if len(rest) == 1 else None
            if holds(distribution(name, choice), value):
                found[name] = value
        return found

    def save_in(self, store: Store) -> None:
        """Save the search for the workers, in a study that holds no other search and no sweep."""
        saved, job = Search.saved_in(store), self.cell.job
        if saved is None and not store.trials():
            store.study.set_user_attr("search", {**asdict(self), "cell": job})
            return
        before = store.study.user_attrs.get("search", {}).get("cell", {})
        if saved == self and before.get("graph") != job.get("graph"):
            raise StoreError(
                f"study {store.study.study_name!r} is a search on another graph: {self.cell.data} "
                "has changed since. Give --study another name."
            )
        if saved != self:
            other = f"the search {saved.space} of {saved.cell.key}" if saved else "a sweep"
            raise StoreError(
                f"study {store.study.study_name!r} holds {other}, not {self.space} of "
                f"{self.cell.key}; give --study another name."
            )

    @classmethod
    def saved_in(cls, store: Store) -> "Search | None":
        """Return the search of a store, or ``None`` if it holds a sweep."""
        saved = store.study.user_attrs.get("search")
        return None if saved is None else cls(**{**saved, "cell": Cell.from_job(saved["cell"])})


def distribution(name: str, choice: Any) -> distributions.BaseDistribution:
    """Return Optuna's distribution for one setting of a search space."""
    head, *rest = name.split(".")
    if not (head in JSON_COLUMNS and rest and all(rest)) and not (head in PLAIN and not rest):
        raise ValueError(
            f"cannot search over {name!r}; settings are {', '.join(PLAIN)}, "
            f"and keys as in {'.x, '.join(JSON_COLUMNS)}.x."
            f"{did_you_mean(head, [*PLAIN, *JSON_COLUMNS])}"
        )
    try:
        if isinstance(choice, list):
            return distributions.CategoricalDistribution(choice)
        if isinstance(choice.get("step"), int) or KINDS.get(name) is int:
            return distributions.IntDistribution(**whole(choice))
        return distributions.FloatDistribution(**choice)
    except (TypeError, ValueError, AttributeError) as error:
        raise ValueError(
            f"{name!r} of the search must be a list, or a range as in "
            f'{{"low": 0.1, "high": 30, "log": true}}, but is {choice!r}: {error}'
        ) from error


def whole(choice: Mapping[str, Any]) -> dict[str, Any]:
    """Return a range of whole numbers, or raise an error if its ends are not."""
    ends = [choice.get("low"), choice.get("high")]
    if not all(isinstance(end, int) for end in ends):
        raise ValueError("it is a whole number, so low and high must be, too")
    return dict(choice)


def holds(space: distributions.BaseDistribution, value: Any) -> bool:
    """Return whether a value lies in a space."""
    if isinstance(space, distributions.CategoricalDistribution):
        return value in space.choices
    right = isinstance(space, distributions.FloatDistribution | distributions.IntDistribution)
    return right and isinstance(value, int | float) and space._contains(float(value))


def with_settings(cell: Cell, settings: Mapping[str, Any]) -> Cell:
    """Return the cell with other settings, named as in a search space."""
    changed: dict[str, Any] = {}
    for name, value in settings.items():
        head, *rest = name.split(".")
        changed[head] = put(changed.get(head, getattr(cell, head)), rest, value)
    return replace(cell, **changed)


def put(into: Any, path: list[str], value: Any) -> Any:
    """Return a copy of nested dictionaries with ``value`` at the end of ``path``."""
    if not path:
        return value
    first, *rest = path
    if not isinstance(into, dict | None):
        raise ValueError(f"the search names a setting {first!r} inside {into!r}, which has none.")
    return {**(into or {}), first: put((into or {}).get(first), rest, value)}
