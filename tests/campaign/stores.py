"""Reading what a sweep, a search or a training has left, without eamp's own code."""

import json
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from tests.campaign.processes import EAMP, run
from tests.campaign.tally import Options, Tally

TIMES = ("seconds", "threads", "worker", "attempt")  # findings that differ between equal runs
EPOCHS = 60
SMALL = "csbm:nodes=60,features=8"
RECIPE = f"""
name: campaign
protocol: paper
width: 8
data: "{SMALL}"
depth: [2, 4]
changes: {{epochs: {EPOCHS}}}
seeds: 5
runs:
  - {{model: gcn}}
  - {{model: gcn, name: entropic, entropy: {{weight: 1.0, temperature: 1.0, detach: false}}}}
"""
CELLS = 20


class Work(NamedTuple):
    """A command that can be killed and resumed, and how to read its results.

    Attributes:
        name: for messages.
        command: returns the command that works in a folder.
        results: returns the results in a folder, by job; a job that was done twice is there twice.
        busy: returns whether one of some processes is training in a folder.
    """

    name: str
    command: Callable[[Path], list[str]]
    results: Callable[[Path], list[tuple[str, str]]]
    busy: Callable[[Path, list[int]], bool]


def sweep(recipe: Path, text: str = RECIPE) -> Work:
    """Return a sweep of tiny cells; the recipe is written to a file."""
    recipe.parent.mkdir(parents=True, exist_ok=True)
    recipe.write_text(text, encoding="utf-8")

    def command(folder: Path) -> list[str]:
        return [*EAMP, "sweep", str(recipe), "--output", str(folder)]

    return Work("sweep", command, finished, working)


def search() -> Work:
    """Return a search whose space is so small that it tries the same settings several times."""
    space = json.dumps({"dropout": [0, 0.5], "width": [4, 8]})
    options = ["--search", space, "--trials", "8", "--prune", "false", "--depth", "2"]
    options += ["--data", SMALL, "--changes", json.dumps({"epochs": 2 * EPOCHS})]

    def command(folder: Path) -> list[str]:
        return [*EAMP, "tune", *options, "--output", str(folder)]

    return Work("tune", command, finished, working)


def training() -> Work:
    """Return a training with three seeds."""
    options = ["--data", SMALL, "--depth", "4", "--width", "8", "--seeds", "3"]
    options += ["--model", "entropic-gcn", "--protocol", "paper"]
    options += ["--changes", json.dumps({"epochs": 10 * EPOCHS})]

    def command(folder: Path) -> list[str]:
        return [*EAMP, "train", *options, "--output", str(folder)]

    def busy(folder: Path, processes: list[int]) -> bool:
        return any(folder.glob("*.safetensors"))

    return Work("train", command, trained, busy)


def trained(folder: Path) -> list[tuple[str, str]]:
    """Return the results that ``eamp train`` wrote."""
    return [(file.name, file.read_text(encoding="utf-8")) for file in folder.glob("*seed_*.json")]


def trials(folder: Path) -> list[dict[str, Any]]:
    """Return state, value and attributes of every trial in the store of a folder."""
    file = folder / "runs.db"
    if not file.exists():
        return []
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True, timeout=60)) as database:
        found = {
            number: {"state": state, "value": value, "attributes": {}}
            for number, state, value in database.execute(
                "SELECT trials.trial_id, state, value FROM trials "
                "LEFT JOIN trial_values ON trial_values.trial_id = trials.trial_id"
            )
        }
        for number, key, value in database.execute(
            "SELECT trial_id, key, value_json FROM trial_user_attributes"
        ):
            if number in found:
                found[number]["attributes"][key] = json.loads(value)
    return list(found.values())


def finished(folder: Path) -> list[tuple[str, str]]:
    """Return the findings of every finished trial, with its curve, by its job."""
    results = []
    for trial in trials(folder):
        if trial["state"] not in ("COMPLETE", "PRUNED"):
            continue
        findings, job = {}, ""
        for key, value in trial["attributes"].items():
            if key == "cell":
                job = json.dumps(value, sort_keys=True)
            elif key.startswith("artifacts:"):
                file = folder / "artifacts" / json.loads(value)["artifact_id"]
                findings["curves"] = file.read_text(encoding="utf-8")
            elif key not in TIMES:
                findings[key] = value
        results.append((job, json.dumps([trial["value"], findings], sort_keys=True)))
    return results


def working(folder: Path, processes: list[int]) -> bool:
    """Return whether a trial is being run by one of the processes."""
    try:
        running = [trial for trial in trials(folder) if trial["state"] == "RUNNING"]
    except sqlite3.Error:  # the tables are just being made
        return False
    workers = (str(trial["attributes"].get("worker", ":0")) for trial in running)
    return any(int(worker.rpartition(":")[2]) in processes for worker in workers)


def undisturbed(work: Work, options: Options, tally: Tally) -> Path | None:
    """Return the folder of an undisturbed run, which all parts of a campaign share."""
    folder = options.folder.parent / f"undisturbed {work.name}"
    ended = None if folder.exists() else run(work.command(folder), options.folder / "output")
    if ended is None or (ended.status == 0 and work.results(folder)):
        return folder
    tally.fault(f"{work.name}: an undisturbed run ended with {ended.last_words}")
    return None


def check(work: Work, folder: Path, calm: Path, tally: Tally) -> bool:
    """Compare a finished folder with an undisturbed one; return whether all is well."""
    found, wanted = work.results(folder), dict(work.results(calm))
    twice = [job for job, times in Counter(job for job, _ in found).items() if times > 1]
    lost = wanted.keys() - dict(found).keys()
    changed = [job for job, result in found if wanted.get(job, result) != result]
    tally.count("cells", len(wanted))
    for name, jobs in (("lost", lost), ("doubled", twice), ("changed", changed)):
        tally.count(name, len(jobs))
        for job in jobs:
            tally.fault(f"{work.name}: {name}: {job[:300]} in {folder}")
    hidden = [file.name for file in folder.rglob(".*") if file.is_file()]
    # Damaged checkpoints are set aside for their owner to look at.
    left = [file.name for file in folder.glob("checkpoints/*") if file.suffix != ".damaged"]
    if leftovers := [*hidden, *left]:
        tally.fault(f"{work.name}: left behind in {folder}: {', '.join(leftovers[:5])}")
    return not (lost or twice or changed)
