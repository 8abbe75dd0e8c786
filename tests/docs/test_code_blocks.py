"""Every code block of the README and the documentation works when it is pasted alone."""

import doctest
import importlib.util
from pathlib import Path
from typing import Any

import pytest

from docs.code_blocks import ROOT, Block, blocks, commands
from eamp.cli import build
from eamp.cli.parser import with_underscores
from eamp.experiments.recipe import load_recipe
from python_sampler import give_sampler

pytestmark = pytest.mark.slow  # some blocks train

OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def parameters(language: str) -> Any:
    return pytest.mark.parametrize("block", blocks(language), ids=lambda block: block.place)


@parameters("python")
def test_python_runs_alone_in_an_empty_folder(
    block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    give_sampler(monkeypatch)
    names: dict[str, Any] = {"__name__": "__main__"}
    if ">>>" not in block.text:
        exec(compile(block.text, block.place, "exec"), names)
        return
    example = doctest.DocTestParser().get_doctest(block.text, names, block.place, None, 0)
    output: list[str] = []
    result = doctest.DocTestRunner(optionflags=OPTIONS).run(example, out=output.append)
    assert result.attempted
    assert not result.failed, "".join(output)


@parameters("yaml")
def test_yaml_is_a_recipe(block: Block, tmp_path: Path) -> None:
    path = tmp_path / "recipe.yaml"
    path.write_text(block.text, encoding="utf-8")
    name, cells = load_recipe(path)
    assert name
    assert cells


@parameters("bash")
def test_commands_are_spelt_right(block: Block) -> None:
    """``eamp`` is parsed, without running; scripts and modules of this repository exist."""
    for words in commands(block.text):
        match words:
            case ["eamp", *arguments]:
                build().parse_args(with_underscores(arguments))
            case ["python", "-m", module, *_]:
                assert importlib.util.find_spec(module), words
            case ["python", script, *_]:
                assert (ROOT / script).is_file(), words
            case ["make", *targets]:
                makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
                assert all(f"\n{t.split('=')[0]}" in makefile for t in targets), words
