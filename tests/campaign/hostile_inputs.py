"""The hostile inputs: each function writes files into a folder and returns a command to try."""

import csv
import io
import json
import os
import pickle
import sqlite3
import struct
import subprocess
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tests.campaign.processes import EAMP, Ended

from eamp.training.checkpoints import content_digest

TINY = ["--depth", "2", "--width", "4", "--changes", '{"epochs": 3}']
SMALL = "csbm:nodes=60,features=4"


class Place(NamedTuple):
    """Where an input is made, and the file that appears if its program is executed."""

    folder: Path
    marker: Path


def nothing_to_check(ended: Ended) -> Iterator[str]:
    """Accept whatever a command did."""
    yield from ()


@dataclass
class Try:
    """A command to run on an input.

    Attributes:
        command: the command.
        statuses: the exit statuses that are right: 2 for an input that must be refused, 0 for a
            name that is strange and nothing else.
        check: called if the command succeeds, yields what is wrong with what it did.
        environment: variables to set.
    """

    command: list[Any]
    statuses: tuple[int, ...] = (2,)
    check: Callable[[Ended], Iterator[str]] = nothing_to_check
    environment: dict[str, str] = field(default_factory=dict)


Input = Callable[[Place], Try]


class Program:
    """An object whose pickle makes the marker file when it is read."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.marker),)


def program(place: Place) -> bytes:
    """Return a pickle that executes something."""
    return pickle.dumps(Program(place.marker))


def torch_program(place: Place, file: Path) -> Path:
    """Write a file as ``torch.save`` does whose pickle executes something."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", program(place))
        archive.writestr("archive/version", "3\n")
        archive.writestr("archive/byteorder", "little")
    return file


def train(data: Any, *more: Any) -> list[Any]:
    """Return the command that trains a tiny network on some data."""
    return [*EAMP, "train", "--data", data, *TINY, *more]


def sweep(place: Place, text: str) -> list[Any]:
    """Return the command that sweeps a recipe."""
    recipe = place.folder / "recipe.yaml"
    recipe.write_bytes(text.encode())
    return [*EAMP, "sweep", recipe, "--output", place.folder / "out", "--workers", "1"]


def recipe(name: str = "fine", run: str = "{model: gcn}", data: str = SMALL) -> str:
    """Return a recipe of one tiny cell; name and data are quoted for YAML."""
    common = f"depth: 2\nwidth: 4\nchanges: {{epochs: 3}}\ndata: {json.dumps(data)}\n"
    return f"name: {json.dumps(name)}\n{common}runs:\n  - {run}\n"


def npz(place: Place, **arrays: Any) -> Path:
    """Write a graph, with some arrays replaced."""
    edges = np.array([[0, 1, 2, 3, 4, 5], [1, 0, 3, 2, 5, 4]])
    given = {"edge_index": edges, "x": np.eye(6, dtype=np.float32), "y": np.arange(6) % 2}
    file = place.folder / "graph.npz"
    np.savez(file, **{**given, **arrays})
    return file


# --- Datasets by name -------------------------------------------------------------------------


def hostile_dataset(place: Place, name: str) -> Path:
    """Make the folder of a dataset of PyG that finds all its files there, as pickles."""
    evil = place.folder / "evil"
    for file in ("data.pt", "pre_transform.pt", "pre_filter.pt"):
        torch_program(place, evil / "processed" / file)
    for suffix in ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index"):
        # PyG makes the names of the raw files of that of the dataset, which here is a path.
        raw = f"{evil}/raw/ind.{name.lower()}.{suffix}"
        Path(raw).parent.mkdir(parents=True, exist_ok=True)
        Path(os.path.normpath(raw)).write_bytes(program(place))
    return evil


def dataset_in_an_absolute_folder(place: Place) -> Try:
    """pyg: with an absolute path, whose folder holds pickles that execute something."""
    evil = hostile_dataset(place, str(place.folder / "evil"))
    return Try(train(f"pyg:Planetoid/{evil}"))


def dataset_above_the_cache(place: Place) -> Try:
    """pyg: with ``..``, which leads out of the cache to pickles that execute something."""
    (place.folder / "cache" / "pyg" / "Planetoid").mkdir(parents=True)
    hostile_dataset(place, name := "../../../evil")
    return Try(train(f"pyg:Planetoid/{name}"))


def dataset_in_a_recipe(place: Place) -> Try:
    """A recipe that names a dataset in an absolute folder."""
    command = dataset_in_an_absolute_folder(place).command
    return Try(sweep(place, recipe(data=command[command.index("--data") + 1])))


def pickles_in_the_cache(place: Place, file: str) -> Try:
    """Put a pickle that executes something into the cached folder of a dataset of PyG."""
    folder = place.folder / "cache" / "pyg" / "WebKB" / "cornell"
    for name in ("out1_node_feature_label.txt", "out1_graph_edges.txt"):
        (folder / "raw" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "raw" / name).write_text("node_id\tfeature\tlabel\n")
    for i in range(10):
        (folder / "raw" / f"cornell_split_0.6_0.2_{i}.npz").write_bytes(b"")
    torch_program(place, folder / "processed" / "data.pt")
    torch_program(place, folder / "processed" / file)
    return Try(train("pyg:WebKB/cornell"))


def cached_transform(place: Place) -> Try:
    """A cached pre_transform.pt of PyG that executes something."""
    return pickles_in_the_cache(place, "pre_transform.pt")


def cached_data(place: Place) -> Try:
    """A cached data.pt of PyG that executes something."""
    return pickles_in_the_cache(place, "data.pt")


def planetoid_pickles(place: Place) -> Try:
    """A folder of Planetoid files that execute something."""
    for suffix in ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index"):
        (place.folder / f"ind.cora.{suffix}").write_bytes(program(place))
    return Try(train("cora"), environment={"EAMP_DATA": str(place.folder)})


def cached_objects(place: Place) -> Try:
    """A cached cora.npz with pickled objects, and no other source."""
    (place.folder / "cache").mkdir()
    with zipfile.ZipFile(place.folder / "cache" / "cora.npz", "w") as archive:
        archive.writestr("edge_index.npy", object_array(place))
    return Try(train("cora"), environment={"EAMP_DATA": str(place.folder)})


def endless_grid(place: Place) -> Try:
    """A generated graph with 10¹² nodes."""
    return Try(train("grid:1000000x1000000"))


# --- Graphs in files ----------------------------------------------------------------------------


def object_array(place: Place) -> bytes:
    """Return an array of objects in NumPy's format whose pickle executes something."""
    header = "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + program(place)


def npz_of_objects(place: Place) -> Try:
    """A graph whose features are pickled objects that execute something."""
    file = npz(place)
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr("edge_weight.npy", object_array(place))
    return Try(train(file))


def pickle_as_npz(place: Place) -> Try:
    """A pickle under the name of a graph."""
    file = place.folder / "graph.npz"
    file.write_bytes(program(place))
    return Try(train(file))


def npz_with_a_huge_label(place: Place) -> Try:
    """A label of 2·10⁸ in a tiny file."""
    return Try(train(npz(place, y=np.array([0, 1, 0, 1, 0, 2 * 10**8]))))


def npz_bomb(place: Place) -> Try:
    """Features of 3 GiB that take 3 MiB on the disk."""
    file = npz(place)
    shape = (6, 2**27)
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name in ("edge_index", "y"):
            content = io.BytesIO()
            np.save(content, np.zeros((2, 1) if name == "edge_index" else 6, dtype=np.int64))
            archive.writestr(f"{name}.npy", content.getvalue())
        with archive.open("x.npy", "w", force_zip64=True) as member:
            member.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
            for _ in range(3 * 2**6):
                member.write(bytes(2**24))
    return Try(train(file))


def npz_that_lies(place: Place) -> Try:
    """An array whose header promises 4 TB."""
    file = npz(place)
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1000000, 1000000), }".ljust(117)
    with zipfile.ZipFile(file, "w") as archive:
        content = b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + header.encode() + b"\n1234"
        for name in ("x", "y", "edge_index"):
            archive.writestr(f"{name}.npy", content)
    return Try(train(file))


def truncated_npz(place: Place) -> Try:
    """A graph of which half is missing."""
    file = npz(place)
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    return Try(train(file))


def endless_file(place: Place) -> Try:
    """A graph that is a link to /dev/zero."""
    file = place.folder / "graph.npz"
    file.symlink_to("/dev/zero")
    return Try(train(file))


def link_to_itself(place: Place) -> Try:
    """A graph that is a link to itself."""
    file = place.folder / "graph.npz"
    file.symlink_to(file)
    return Try(train(file))


def pipe(place: Place) -> Try:
    """A graph that is a pipe, into which nobody writes."""
    os.mkfifo(place.folder / "graph.npz")
    return Try(train(place.folder / "graph.npz"))


# --- Recipes ------------------------------------------------------------------------------------


def yaml_objects(place: Place) -> Try:
    """YAML with a tag that executes something."""
    return Try(sweep(place, f'runs: !!python/object/apply:os.mkdir ["{place.marker}"]\n'))


def yaml_bomb(place: Place) -> Try:
    """432 bytes of YAML whose aliases stand for 10⁹ numbers."""
    lines = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    return Try(sweep(place, "\n".join([*lines, "depth: *a8", recipe()]) + "\n"))


def yaml_bomb_in_an_option(place: Place) -> Try:
    """The same aliases inside the options of the entropy step."""
    lines = ["&a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"&a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    values = ", ".join(f"k{n}: {line}" for n, line in enumerate(lines))
    return Try(sweep(place, recipe(run=f"{{model: gcn, entropy: {{{values}}}}}")))


def yaml_in_a_circle(place: Place) -> Try:
    """A list of runs that contains itself."""
    return Try(sweep(place, "runs: &a [*a]\n"))


def yaml_option_in_a_circle(place: Place) -> Try:
    """Options that contain themselves."""
    return Try(sweep(place, recipe(run="{model: gcn, options: &a {theta: *a}}")))


def yaml_without_end(place: Place) -> Try:
    """A billion seeds."""
    return Try(sweep(place, "seeds: 1000000000\n" + recipe()))


def yaml_nested(place: Place) -> Try:
    """YAML nested 100,000 deep."""
    return Try(sweep(place, "runs: " + "[" * 100_000))


def yaml_with_a_key_twice(place: Place) -> Try:
    """A recipe that names its runs twice, of which one would be lost."""
    return Try(sweep(place, recipe() + "runs:\n  - {model: gcnii}\n"))


def json_nested(place: Place) -> Try:
    """An option on the command line nested 10,000 deep."""
    value = '{"a": ' * 10_000 + "1" + "}" * 10_000
    return Try([*EAMP, "train", "--data", SMALL, "--entropy", value])


# --- Names --------------------------------------------------------------------------------------


def finished(place: Place, name: str) -> Callable[[Ended], Iterator[str]]:
    """Check that a sweep of one cell finished, kept its name, and shows nothing that acts."""

    def check(ended: Ended) -> Iterator[str]:
        table = place.folder / "out" / "cells.csv"
        rows = list(csv.DictReader(table.open(encoding="utf-8"))) if table.exists() else []
        if len(rows) != 1:
            yield f"{len(rows)} rows in cells.csv instead of 1"
            return
        shown = rows[0]["name"]
        if name.isprintable() and shown.lstrip("'") != name:
            yield f"the name in cells.csv is {shown!r}"
        if shown.startswith(("=", "+", "-", "@", "\t", "\r")):
            yield f"cells.csv holds a formula, {shown!r}"
        if "\x1b" in ended.out + ended.err or "\r" in ended.out:
            yield "control characters reach the terminal"
        if name.isprintable() and name[:6] not in ended.out:  # the table may break longer names
            yield f"the table does not show {name!r}"

    return check


def named(place: Place, name: str) -> Try:
    """Return a sweep whose run and recipe have a name."""
    run = f"{{model: gcn, name: {json.dumps(name)}}}"
    return Try(sweep(place, recipe(name, run)), (0,), finished(place, name))


def name_with_markup(place: Place) -> Try:
    """A name in square brackets, which tables take for markup."""
    return named(place, "[red]x [no residual]")


def name_that_ends_markup(place: Place) -> Try:
    """A name that ends markup which was never begun."""
    return named(place, "a[/]b")


def name_with_a_formula(place: Place) -> Try:
    """A name that a spreadsheet executes."""
    return named(place, "=cmd|' /C calc'!A0")


def name_with_control_characters(place: Place) -> Try:
    """A name that clears the terminal."""
    return replace(named(place, "a\x1b[2J\x07b"), statuses=(2,))


def name_like_an_option(place: Place) -> Try:
    """A recipe that is named like an option."""
    return Try(sweep(place, recipe("-x")), (0,), finished(place, "gcn"))


def name_like_help(place: Place) -> Try:
    """A recipe that is named like --help."""
    return Try(sweep(place, recipe("--help")), (0,), finished(place, "gcn"))


def name_like_a_path(place: Place) -> Try:
    """A recipe that is named like a path out of its folder."""
    return Try(sweep(place, recipe("../../../escaped\x00/etc")), (0, 2), finished(place, "gcn"))


# --- Checkpoints --------------------------------------------------------------------------------


def checkpoint(place: Place, content: bytes) -> Try:
    """Return a training that finds a checkpoint; it may refuse it or set it aside."""
    out = place.folder / "out"
    out.mkdir()
    (out / "seed_0.safetensors").write_bytes(content)

    def check(ended: Ended) -> Iterator[str]:
        if "checkpoint" not in ended.out + ended.err and "seed_0" not in ended.out + ended.err:
            yield "a checkpoint that cannot be read was ignored without a word"

    return Try(train(SMALL, "--output", out), (0, 2), check)


def tensors(header: dict[str, Any], data: bytes = b"") -> bytes:
    """Return a file in the safetensors format."""
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def checkpoint_that_is_a_pickle(place: Place) -> Try:
    """A checkpoint that torch.save wrote and that executes something."""
    return checkpoint(place, torch_program(place, place.folder / "evil.pt").read_bytes())


def checkpoint_with_an_endless_header(place: Place) -> Try:
    """A checkpoint whose header promises 2⁶⁰ bytes of header."""
    return checkpoint(place, struct.pack("<Q", 2**60) + b"{}")


def checkpoint_that_lies(place: Place) -> Try:
    """A checkpoint whose header promises a tensor of 4 TB."""
    size = 4 * 10**12
    lie = {"dtype": "F32", "shape": [10**12], "data_offsets": [0, size]}
    return checkpoint(place, tensors({"model.weight": lie}))


def checkpoint_without_metadata(place: Place) -> Try:
    """A checkpoint of another program."""
    one = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}
    return checkpoint(place, tensors({"model.weight": one}, bytes(4)))


def checkpoint_with_nested_history(place: Place) -> Try:
    """A checkpoint whose history is nested 100,000 deep."""
    metadata = {"fingerprint": "{}", "history": "[" * 100_000}
    metadata["digest"] = content_digest({}, metadata)
    return checkpoint(place, tensors({"__metadata__": metadata}))


def truncated_checkpoint(place: Place) -> Try:
    """A checkpoint of which the end is missing."""
    one = {"dtype": "F32", "shape": [100], "data_offsets": [0, 400]}
    return checkpoint(place, tensors({"random": one}, bytes(17)))


# --- Stores and folders -------------------------------------------------------------------------


def job_row(place: Place, job: dict[str, Any]) -> Try:
    """Return a worker for a store into which somebody else has written a job."""
    out = place.folder / "out"
    command = [str(word) for word in sweep(place, recipe())]
    # A sweep makes the store; its only job is then replaced and waits again.
    subprocess.run(command, check=True, capture_output=True)
    with closing(sqlite3.connect(out / "runs.db")) as database, database:
        database.execute(
            "UPDATE trial_user_attributes SET value_json = ? WHERE key = 'cell'", [json.dumps(job)]
        )
        database.execute("DELETE FROM trial_values")
        database.execute("UPDATE trials SET state = 'WAITING', datetime_complete = NULL")
    return Try([*EAMP, "work", "--output", out], (0, 1, 2))


def job_with_a_hostile_dataset(place: Place) -> Try:
    """A job in a shared store whose dataset executes something."""
    command = dataset_in_an_absolute_folder(place).command
    data = command[command.index("--data") + 1]
    return job_row(place, {"schema": 2, "model": "gcn", "data": data, "depth": 2})


def job_that_is_none(place: Place) -> Try:
    """A job in a shared store that is no job."""
    return job_row(place, {"number": [1, 2], "model": {"a": "b"}})


def linked_table(place: Place) -> Try:
    """An output folder whose cells.csv is a link to a file of somebody else."""
    victim, out = place.folder / "victim.txt", place.folder / "out"
    victim.write_text("precious")
    out.mkdir()
    for name in ("cells.csv", "layer_energies.csv"):
        (out / name).symlink_to(victim)

    def check(ended: Ended) -> Iterator[str]:
        if victim.read_text() != "precious":
            yield "wrote through the link into a file of somebody else"

    return Try(sweep(place, recipe()), (0, 2), check)


INPUTS: tuple[Input, ...] = (
    dataset_in_an_absolute_folder,
    dataset_above_the_cache,
    dataset_in_a_recipe,
    cached_transform,
    cached_data,
    planetoid_pickles,
    cached_objects,
    endless_grid,
    npz_of_objects,
    pickle_as_npz,
    npz_with_a_huge_label,
    npz_bomb,
    npz_that_lies,
    truncated_npz,
    endless_file,
    link_to_itself,
    pipe,
    yaml_objects,
    yaml_bomb,
    yaml_bomb_in_an_option,
    yaml_in_a_circle,
    yaml_option_in_a_circle,
    yaml_without_end,
    yaml_nested,
    yaml_with_a_key_twice,
    json_nested,
    name_with_markup,
    name_that_ends_markup,
    name_with_a_formula,
    name_with_control_characters,
    name_like_an_option,
    name_like_help,
    name_like_a_path,
    checkpoint_that_is_a_pickle,
    checkpoint_with_an_endless_header,
    checkpoint_that_lies,
    checkpoint_without_metadata,
    checkpoint_with_nested_history,
    truncated_checkpoint,
    job_with_a_hostile_dataset,
    job_that_is_none,
    linked_table,
)
