"""Packages that only a part of eamp needs: the core runs without them, the rest names its extra."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path

import pytest
import torch
from packaging.requirements import Requirement
from packaging.version import Version

import eamp
from eamp.nn.models.grand import GRAND
from eamp.optional import MissingPackageError, extra
from eamp.paper.threshold import threshold_graphs
from eamp.scale import ClusterLoader

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src" / "eamp").rglob("*.py"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
MODULES = {"pyyaml": "yaml", "vl-convert-python": "vl_convert"}  # others are called as they install
# Packages that come with others: with Numba, with Jinja2, and with torch on a machine with a GPU.
BROUGHT_ALONG = {"llvmlite", "markupsafe", "triton"}


def modules(requirements: Iterable[str]) -> set[str]:
    """The modules of the packages in a list of requirements; those of other extras left out."""
    names = {Requirement(requirement).name.lower() for requirement in requirements} - {"eamp"}
    return {MODULES.get(name, name.replace("-", "_")) for name in names}


CORE = modules(PROJECT["dependencies"])


def in_one_line(name: str) -> str:
    return rf'pip install "eamp\[{name}\]"$'


def test_what_is_there_is_imported_and_other_errors_pass() -> None:
    with extra("report"):
        import json
    assert json.loads("1") == 1
    with pytest.raises(ZeroDivisionError), extra("report"):
        _ = 1 / 0


def test_the_innermost_extra_is_named() -> None:
    with (
        pytest.raises(MissingPackageError, match=in_one_line("scale")) as raised,
        extra("cli"),
        extra("scale"),
    ):
        import no_such_package.part  # noqa: F401
    assert "the package no_such_package," in str(raised.value)
    assert isinstance(raised.value, ModuleNotFoundError)


def test_all_holds_every_extra_that_a_user_may_want() -> None:
    (everything,) = (Requirement(requirement) for requirement in EXTRAS["all"])
    assert everything.extras == EXTRAS.keys() - {"all", "docs", "test"}
    assert "eamp[all,docs]" in EXTRAS["test"]


def test_the_lowest_versions_are_those_of_the_bounds() -> None:
    lines = (ROOT / "constraints-lowest.txt").read_text("utf-8").lower().splitlines()
    lowest = dict(line.split("==") for line in lines if "==" in line)
    extras = [requirement for name in EXTRAS.keys() - {"test"} for requirement in EXTRAS[name]]
    for requirement in map(Requirement, PROJECT["dependencies"] + extras):
        if requirement.name != "eamp":
            (bound,) = requirement.specifier
            assert bound.operator == ">="
            release = Version(bound.version).release
            assert Version(lowest[requirement.name]).release[: len(release)] == release


def imports_of_other_packages(path: Path) -> Iterator[tuple[str, str | None]]:
    """Every package that a file imports, and the extra in whose block it does so."""

    def visit(node: ast.AST, block: str | None) -> Iterator[tuple[str, str | None]]:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            return
        if isinstance(node, ast.With):
            found = re.search(r"extra\('(\w+)'\)", ast.unparse(node.items[0]))
            block = found[1] if found else block
        if isinstance(node, ast.Import):
            yield from ((alias.name.split(".")[0], block) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield str(node.module).split(".")[0], block
        for child in ast.iter_child_nodes(node):
            yield from visit(child, block)

    inside = visit(ast.parse(path.read_text("utf-8")), None)
    return (found for found in inside if found[0] not in {"eamp", *sys.stdlib_module_names})


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT / "src")))
def test_a_package_outside_the_core_is_imported_in_the_block_of_its_extra(path: Path) -> None:
    # The room of the command line is imported in one such block as a whole.
    outermost = "cli" if path.parent.name == "cli" else None
    for package, block in imports_of_other_packages(path):
        allowed = CORE | BROUGHT_ALONG | modules(EXTRAS.get(block or outermost or "", ()))
        assert package in allowed, f"{package} in the block of {block}"


def test_clusters_without_pymetis(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pymetis", None)
    with pytest.raises(MissingPackageError, match=in_one_line("scale")):
        ClusterLoader(eamp.data.load("grid:4x4"), clusters=2)


def test_diffusion_without_torchdiffeq(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torchdiffeq", None)
    data = eamp.data.load("grid:4x4")
    with pytest.raises(MissingPackageError, match=in_one_line("diffusion")):
        GRAND(data.num_features, 4, 2, 1)(data.x, data.edge_index)


def test_random_graphs_without_networkx(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(MissingPackageError, match=in_one_line("formats")):
        threshold_graphs()


@pytest.mark.parametrize("package", ["altair", "vl_convert"])
def test_a_diagnosis_that_cannot_be_saved_says_so_before_the_model_runs(
    package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    model = torch.nn.Identity()
    model.register_forward_pre_hook(lambda *_: pytest.fail("the model has run"))
    with pytest.raises(MissingPackageError, match=in_one_line("report")):
        eamp.diagnostics.report(model, (torch.ones(1, 1),), folder=tmp_path)


def without(
    packages: Iterable[str], code: str, *arguments: str
) -> subprocess.CompletedProcess[str]:
    """Run code in a new interpreter in which packages cannot be imported."""
    missing = f"import sys; sys.modules |= dict.fromkeys({sorted(packages)})\n"
    command = [sys.executable, "-c", missing + code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("cli", "data list"),
        ("experiments", "sweep recipe.yaml"),
        ("experiments", "tune"),
        ("report", "report folder"),
    ],
)
def test_a_command_says_in_one_line_what_to_install(name: str, command: str) -> None:
    code = "from eamp.__main__ import main; sys.exit(main())"
    needed = needed_by(PROJECT["dependencies"])  # some packages of extras come with torch or PyG
    found = without(modules(EXTRAS[name]) - needed, code, *command.split())
    assert found.returncode == 2
    assert re.fullmatch(f"eamp: this needs the package .* {in_one_line(name)[:-1]}\n", found.stderr)


def needed_by(requirements: Iterable[str]) -> set[str]:
    """The names of all packages that an installation of the requirements brings, here."""
    found: set[str] = set()
    waiting = [Requirement(requirement) for requirement in requirements]
    while waiting:
        one = waiting.pop()
        if one.name.lower().replace("_", "-") in found:
            continue
        if one.marker is None or any(one.marker.evaluate({"extra": e}) for e in one.extras | {""}):
            found.add(one.name.lower().replace("_", "-"))
            waiting += map(Requirement, metadata.requires(one.name) or ())
    return found


LIGHT = """
import dataclasses, doctest, importlib, pkgutil, eamp
from eamp.optional import MissingPackageError

failed, tried = doctest.testfile(sys.argv[1], module_relative=False)
assert tried and not failed
data = eamp.data.load("csbm")
with eamp.probe(eamp.nn.DeepGCN(data.num_features, 8, 5, 4)) as probe:
    protocol = dataclasses.replace(eamp.training.PROTOCOLS["standard"], epochs=2)
    eamp.training.train(probe.model, data, protocol, checkpoint=sys.argv[2], progress=True)
assert len(probe.table()) == 4
print(eamp.diagnose(probe.model, data), probe)

for module in pkgutil.walk_packages(eamp.__path__, "eamp."):
    if "triton_gpu" not in module.name and not module.name.endswith("__main__"):
        try:
            importlib.import_module(module.name)
        except MissingPackageError as error:
            print(module.name, error, file=sys.stderr)
"""


@pytest.mark.slow
def test_the_core_runs_on_its_own_packages_and_the_rest_says_what_it_needs(tmp_path: Path) -> None:
    core = needed_by(PROJECT["dependencies"])
    others = {
        module
        for module, owners in metadata.packages_distributions().items()
        if not core & {owner.lower().replace("_", "-") for owner in owners} and module != "eamp"
    }
    assert {"altair", "jsonargparse", "optuna", "pymetis", "rich", "torchdiffeq"} <= others
    found = without(others, LIGHT, str(ROOT / "README.md"), str(tmp_path / "checkpoint"))
    assert found.returncode == 0, found.stderr
    needs = dict(re.findall(r'^(eamp\.\w+)[\w.]* .*"eamp\[(\w+)\]"$', found.stderr, re.MULTILINE))
    assert needs == {
        "eamp.cli": "cli",
        "eamp.diagnostics": "report",
        "eamp.experiments": "experiments",
        "eamp.paper": "report",
        "eamp.report": "experiments",  # of its last module, the page of a sweep
    }
