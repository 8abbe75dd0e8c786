"""The settings of a cell, and the jobs in which stores keep them.

Recipes, the command line, tables and the keys of jobs are derived from :class:`Settings`. This
module imports neither torch nor Optuna, so that ``eamp --help`` is fast.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import MISSING, asdict, dataclass, fields
from typing import Any, TypeAlias, get_type_hints

from eamp.spelling import did_you_mean

Job: TypeAlias = dict[str, Any]

# The version of the jobs that this module writes. Increase it when a setting changes its meaning or
# its default: a job of another version has another key, so it is trained again.
SCHEMA = 2


@dataclass(frozen=True)
class Settings:
    """Everything that has to be said to train one network again.

    The command line shows these descriptions as the help of its options.

    Attributes:
        model: name of a model, as in `eamp models`
        data: name of a dataset, as in `eamp data list`
        depth: number of hidden layers; most models have an output layer on top
        name: name in tables and figures; that of the model if left out
        width: number of hidden channels
        dropout: probability of dropout
        entropy: options of the entropy step; others are weight 1, temperature 10, detach true
        options: further options of the model, as in {"theta": 0.5}
        protocol: paper or standard: how to train, and which epoch counts
        changes: changes to the protocol, as in {"conv_decay": 0.01}
        normalize_features: divide the features of every node by their sum
        seed: seed of initialisation and training, and of draws as in corrupted_features=0.3:cora
        split: which of the splits that come with the data, or fold of many graphs, counted from 0
        task: nodes, graphs or links; by default graphs if the data are many, and else nodes
    """

    model: str
    data: str
    depth: int
    name: str = ""
    width: int = 64
    dropout: float = 0.0
    entropy: dict[str, Any] | None = None
    options: dict[str, Any] | None = None
    protocol: str = "standard"
    changes: dict[str, Any] | None = None
    normalize_features: bool = False
    seed: int = 0
    split: int = 0
    task: str = "auto"

    @property
    def job(self) -> Job:
        """All settings as a JSON object, as a store keeps them."""
        return {"schema": SCHEMA, **asdict(self)}

    @property
    def key(self) -> str:
        """The key of :attr:`job`, which is the same for cells with the same result."""
        return job_key(self.job)


KINDS = get_type_hints(Settings)
HELP = dict(re.findall(r"^ +(\w+): (.+)$", Settings.__doc__ or "", re.MULTILINE))
DEFAULTS = {each.name: each.default for each in fields(Settings) if each.default is not MISSING}
LISTED = ("data", "depth", "seed", "split")  # may be lists in a recipe
TEXT_COLUMNS = tuple(name for name, kind in KINDS.items() if kind is str)
JSON_COLUMNS = tuple(name for name, kind in KINDS.items() if kind == dict[str, Any] | None)


def check_model(name: str, models: Iterable[str]) -> None:
    """Raise an error if no model has the name."""
    if name not in (known := list(models)):
        own = " Models of your own are trained in Python, by eamp.training.train(model, data)."
        raise ValueError(
            f"no model named {name!r}; there are {', '.join(known)}."
            f"{own if ':' in name else did_you_mean(name, known)}"
        )


def job_key(job: Job) -> str:
    """Return the settings of a job that change its result, as JSON; it is a job with the same key.

    The display name and settings equal to their defaults are left out: neither a run with another
    name nor a new setting trains a store again.

    Example:
        >>> job_key({"schema": 2, "model": "gcn", "name": "GCN", "depth": 4, "width": 64})
        '{"depth": 4, "model": "gcn", "schema": 2}'
    """
    names = (name for name in job if name != "name" and job[name] != DEFAULTS.get(name, MISSING))
    return json.dumps({name: job[name] for name in names}, sort_keys=True)


def job_label(job: Job) -> str:
    """Return the words that tell a job from others in messages.

    Example:
        >>> job_label({"data": "cora", "model": "gcn", "depth": 4, "seed": 1})
        'cora gcn depth 4 seed 1'
    """
    if "try" in job:
        return f"try {job['try']}"
    split = f" split {job['split']}" if job.get("split") else ""
    name = job.get("name") or job["model"]
    return f"{job['data']} {name} depth {job['depth']} seed {job['seed']}{split}"
