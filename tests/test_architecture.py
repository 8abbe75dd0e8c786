"""The floor plan of docs/architecture.md, checked against the imports of every source file."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from runpy import run_path
from types import SimpleNamespace
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "eamp"
SOURCES = sorted(PACKAGE.rglob("*.py"))

# The order of the rooms is written down once, beside the picture of the page.
rooms = SimpleNamespace(**run_path(str(ROOT / "docs" / "rooms.py")))
ROOMS: tuple[str, ...] = rooms.ROOMS
OUTSIDE = {"__init__", "__main__"}


class Import(NamedTuple):
    """One imported module of eamp, or of anybody."""

    module: str
    line: int
    inside_function: bool


def module_of(path: Path) -> str:
    name = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
    return name.removesuffix(".__init__")


def room_of(module: str) -> str:
    return module.split(".")[1] if "." in module else "__init__"


def imports(path: Path) -> Iterator[Import]:
    """Every import statement of a file; ``from package import module`` names the module."""

    def visit(node: ast.AST, inside: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                yield from (Import(alias.name, child.lineno, inside) for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                assert child.level == 0, f"{path}:{child.lineno} imports relatively"
                yield from (
                    Import(f"{child.module}.{alias.name}", child.lineno, inside)
                    for alias in child.names
                )
            function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from visit(child, inside or function)

    return visit(ast.parse(path.read_text(encoding="utf-8")), False)


def home(imported: str) -> str | None:
    """The module of eamp that an imported name lives in, or ``None`` for other packages."""
    if imported.split(".")[0] != "eamp":
        return None
    path = PACKAGE.parent / imported.replace(".", "/")
    if path.with_suffix(".py").exists() or (path / "__init__.py").exists():
        return imported
    return imported.rpartition(".")[0]


def test_every_module_is_in_a_room() -> None:
    assert {room_of(module_of(path)) for path in SOURCES} <= {*ROOMS, *OUTSIDE}


@pytest.mark.parametrize("path", SOURCES, ids=module_of)
def test_a_room_imports_only_from_rooms_before_it(path: Path) -> None:
    here = room_of(module_of(path))
    if here in OUTSIDE:
        return
    wrong = [
        f"line {found.line}: {found.module}"
        for found in imports(path)
        if (target := home(found.module)) is not None
        and (there := room_of(target)) not in OUTSIDE
        and ROOMS.index(there) > ROOMS.index(here)
    ]
    assert not wrong, f"{here} may not import from rooms to its right: {'; '.join(wrong)}"


def test_modules_do_not_import_each_other_in_a_circle() -> None:
    graph = {
        module_of(path): {
            target
            for found in imports(path)
            if not found.inside_function
            and (target := home(found.module)) is not None
            and target != module_of(path)
        }
        for path in SOURCES
        if room_of(module_of(path)) not in OUTSIDE
    }
    done: set[str] = set()

    def visit(module: str, trail: tuple[str, ...]) -> None:
        assert module not in trail, f"a circle of imports: {' -> '.join([*trail, module])}"
        if module not in done:
            for target in sorted(graph.get(module, ())):
                visit(target, (*trail, module))
            done.add(module)

    for module in graph:
        visit(module, ())


@pytest.mark.parametrize("path", SOURCES, ids=module_of)
def test_an_import_inside_a_function_says_why(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    inside = sorted({found.line for found in imports(path) if found.inside_function})
    unexplained = []
    for line in inside:
        above = line - 1
        # One reason serves imports that stand together, also in the block of an extra.
        while (
            above in inside
            or not (text := lines[above - 1].strip())
            or text in ")"
            or text.startswith("with extra(")
        ):
            above -= 1
        if "#" not in lines[line - 1] and not lines[above - 1].strip().startswith("#"):
            unexplained.append(f"line {line}: {lines[line - 1].strip()}")
    assert not unexplained, "; ".join(unexplained)


@pytest.mark.parametrize("path", SOURCES, ids=module_of)
def test_no_file_is_longer_than_300_lines(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 300


def test_only_the_graph_and_scale_rooms_know_parts_of_graphs() -> None:
    checks = re.compile(r"isinstance\([^)]*(GraphPart|SampledGraph|PartCSR)|hasattr\([^)]*halo")
    knowing = [
        module_of(path)
        for path in SOURCES
        if room_of(module_of(path)) not in ("graph", "scale")
        and checks.search(path.read_text(encoding="utf-8"))
    ]
    assert not knowing


@pytest.mark.slow
def test_importing_the_layers_does_not_load_our_compiled_kernels() -> None:
    """PyG itself imports Numba where it is installed; our kernels wait until they are used."""
    code = (
        "import sys, eamp.nn; "
        "print([m for m in sys.modules if m.startswith('eamp.ops.backends.') "
        "or m == 'eamp.graph.neighbour_lists'])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_the_page_shows_the_picture_of_the_imports() -> None:
    page = rooms.PAGE.read_text(encoding="utf-8")
    assert rooms.BLOCK.search(page).group() == rooms.picture(), "run python docs/rooms.py --write"
    named = re.findall(r"^\| \d+ \| `([a-z]+)", page, re.MULTILINE)
    assert tuple(named) == ROOMS


def test_the_walks_have_ten_hops_at_most_and_name_what_is_there() -> None:
    page = rooms.PAGE.read_text(encoding="utf-8")
    walks = page.split("## Five walks")[1].split("\n### ")[1:]
    assert len(walks) == 5
    for walk in walks:
        hops = re.findall(r"\n\d+\. (.*)", walk)
        assert 0 < len(hops) <= 10
        for hop in hops:
            file, name = re.match(r"`([\w/]+\.py)`: `(?:\w+\.)?(\w+)`", hop).groups()
            source = (PACKAGE / file).read_text(encoding="utf-8")
            assert re.search(rf"^ *(def|class) {name}\b", source, re.MULTILINE), hop
