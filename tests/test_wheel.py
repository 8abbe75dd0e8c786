"""The wheel holds all that is needed: the README's lines run from it, outside of the repository."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
README_FROM_WHEEL = """
import doctest, sys, eamp
assert eamp.__file__.startswith(sys.argv[1]), eamp.__file__
failed, tried = doctest.testfile(sys.argv[2], module_relative=False)
sys.exit(0 if tried and not failed else 1)
"""


def contents(package: Path) -> set[str]:
    files = (path.relative_to(package) for path in package.rglob("*") if path.is_file())
    return {str(file) for file in files if "__pycache__" not in file.parts}


def pip(*arguments: str | Path) -> None:
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*command, *map(str, arguments)], check=True)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which only the wheel of eamp is installed; no network is needed."""
    pytest.importorskip("hatchling", reason="builds the wheel with hatchling, of eamp[test]")
    folder = tmp_path_factory.mktemp("wheel")
    pip("wheel", "--no-index", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, ROOT)
    (wheel,) = folder.glob("eamp-*.whl")
    site = folder / "site"
    pip("install", "--no-index", "--no-deps", "--no-compile", "--target", site, wheel)
    return site


def test_the_wheel_holds_the_package_and_its_data(site: Path) -> None:
    assert contents(site / "eamp") == contents(ROOT / "src" / "eamp")


def test_the_readme_runs_from_a_read_only_wheel_and_keeps_its_kernels(
    site: Path, tmp_path: Path
) -> None:
    """Kernels go to the user's cache folder if the package's own cannot be written to."""
    for folder in (site / "eamp", *(path for path in (site / "eamp").rglob("*") if path.is_dir())):
        (folder / "__pycache__").touch()  # a file in the way of the cache stops even root
    environment = {name: v for name, v in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    environment |= {"PYTHONPATH": str(site), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    command = [sys.executable, "-c", README_FROM_WHEEL, str(site), str(ROOT / "README.md")]
    run = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "eamp: compiling kernels for this machine, once (a few seconds)\n" in run.stderr
    kept = {path.name.split(".")[0] for path in (tmp_path / "cache" / "numba").rglob("*.nbc")}
    assert {"kernels", "neighbour_lists"} <= kept
