"""A list of plausible mistakes on the command line: each gets one line and exit status 2."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from eamp.cli import main

# A command, in which TMP is a folder, and a regular expression for what its message must name.
MISTAKES = [
    ("", "a command is missing; there are reproduce, train"),
    ("foo", "there is no command 'foo'"),
    ("trian", "there is no command 'trian'; .* Did you mean 'train'\\?"),
    ("--verbose", "--verbose"),
    ("data", "needs its argument action"),
    ("data lst", "'lst'"),
    ("data get nowhere", "nowhere"),
    ("data check nowhere", "nowhere"),
    ("data get csbm:seed=-1", "seed"),
    ("data get grid:0x0", "grid"),
    ("data get pyg:Nope", "Nope"),
    ("data get TMP/missing.npz", "missing.npz"),
    ("data get TMP/text.npz", "text.npz"),
    ("cite foo", "'foo'"),
    ("cite GCNI", "'GCNI'.* Did you mean 'gcnii'\\?"),
    ("data lis", "'lis'.* Did you mean 'list'\\?"),
    ("data get coar", "'coar'. Did you mean 'cora'\\?"),
    ("models gcn", "argument gcn"),
    ("cite --nope", "--nope"),
    ("report", "needs its argument folder"),
    ("report TMP/nothing", "run.json"),
    ("report TMP/text.npz", "text.npz"),
    ("report TMP/damaged", "cells.csv is damaged"),
    ("bench --quick 3", "argument 3"),
    ("bench --device moon", "moon"),
    ("train --width abc", "--width must be a whole number, but is 'abc'"),
    ("train --width 3.5", "--width must be a whole number, but is '3.5'"),
    ("train --width 0", "width"),
    ("train --width", "--width needs a value"),
    ("train --depth -3", "depth"),
    ("train --depth=", "--depth must be a whole number"),
    ("train --dropout 2", "dropout"),
    ("train --dropout nan", "dropout"),
    ("train --dropout x", "--dropout must be a number, but is 'x'"),
    ("train --model gpt", "no model named 'gpt'; there are gcn"),
    ("train --model=", "no model named ''"),
    ("train --data nowhere", "nowhere"),
    ("train --data TMP/text.npz", "text.npz"),
    ("train --data csbm:nods=3", "nods.* Did you mean 'nodes'\\?"),
    ("train --protocol papr", "papr.* Did you mean 'paper'\\?"),
    ("train --nope", "--nope"),
    ("train --modle gcn", "no option or argument --modle gcn; .* Did you mean '--model'\\?"),
    ("train --by-split", "no option or argument --by_split; .* Did you mean '--split'\\?"),
    ("train --model gcni", "no model named 'gcni'; .* Did you mean 'gcnii'\\?"),
    ("train cora", "argument cora"),
    ("train --entropy 3", "--entropy must be a mapping"),
    ("train --entropy {bad", "--entropy must be a mapping"),
    ('train --entropy {"lambda":3} --data grid:3x3', "lambda"),
    ('train --entropy {"weight":"big"} --data grid:3x3', "weight"),
    ('train --entropy {"weigth":3} --data grid:3x3', "weigth.* Did you mean 'weight'\\?"),
    ('train --options {"foo":1} --data grid:3x3', "foo.* It has the options form, norm"),
    ('train --options {"nrm":1} --data grid:3x3', "nrm.* Did you mean 'norm'\\?"),
    ("train --changes [1]", "--changes must be a mapping"),
    ('train --changes {"epoch":3}', "epoch.* Did you mean 'epochs'\\?"),
    ('train --changes {"epochs":"many"}', "epochs"),
    ('train --changes {"learning_rate":"fast"}', "learning_rate"),
    ('train --changes {"learning_rate":-1}', "learning_rate"),
    ('train --changes {"patience":0.5}', "patience"),
    ("train --seeds 0", "--seeds must be a whole number of at least 1, but is '0'"),
    ("train --seed x", "--seed must be a whole number"),
    ("train --split 9 --data grid:3x3", "split 9"),
    ("train --partition foo", "--partition must be metis, but is 'foo'"),
    ("train --timeout x", "--timeout must be a number"),
    ("train --timeout -1 --data grid:3x3", "timeout"),
    ("train --partition metis", "torchrun"),
    ("train --output TMP/file/out --data grid:3x3", "file"),
    (
        'train --output TMP/bare --data grid:3x3 --depth 2 --changes {"epochs":1}',
        "seed_0.safetensors",
    ),
    ("train --normalize_features yes", "argument yes"),
    ("diagnose --depth -1 --data grid:3x3", "depth"),
    ("diagnose --output TMP/file/out --data grid:3x3 --depth 2", "file"),
    ("diagnose --protocol paper", "protocol"),
    ("sweep", "needs its argument recipe"),
    ("sweep TMP/nothing.yaml", "nothing.yaml"),
    ("sweep TMP", "cannot be read"),
    ("sweep TMP/text.npz", "text.npz"),
    ("sweep TMP/twice.yaml", "`seeds` is there twice"),
    ("sweep TMP/many.yaml", "1,000,000,000 cells"),
    ("sweep TMP/typo.yaml", "there is no setting sedes; .* Did you mean 'seeds'\\?"),
    ("sweep TMP/good.yaml --workers 0 --output TMP/a", "workers"),
    ("sweep TMP/good.yaml --workers -2 --output TMP/a", "workers"),
    ("sweep TMP/good.yaml --output TMP/file/out", "file"),
    ("sweep TMP/good.yaml --storage mysql://nowhere", "mysql"),
    ("work --output TMP/nothing", "nothing"),
    ("work --with_parent x", "--with_parent must be a whole number"),
    ("tune --trials many", "--trials must be a whole number"),
    ("tune --trials 0 --data grid:3x3 --output TMP/a", "trials"),
    ("tune --seeds 0 --data grid:3x3 --output TMP/a", "seeds"),
    ("tune --prune maybe", "--prune must be true or false"),
    ("tune --search 3", "--search must be a mapping"),
    ('tune --search {"colour":[1]}', "colour"),
    ('tune --search {"droput":[1]}', "droput.* Did you mean 'dropout'\\?"),
    ("tune --baseline maybe", "--baseline must be true or false"),
    ('tune --search {"dropout":3}', "dropout"),
    ("tune --workers 0 --data grid:3x3 --output TMP/a", "workers"),
    ("reproduce --only foo", "'foo'"),
    ("reproduce --seeds 0 --output TMP/a", "seeds"),
    ("reproduce --seeds x", "--seeds must be a whole number"),
    ("reproduce --workers 0 --output TMP/a", "workers"),
    ("reproduce --quick --output TMP/file/out", "file"),
]
ONE_RUN = "runs: [{model: gcn, data: 'grid:3x3', depth: 2}]"
RECIPES = {
    "good": ONE_RUN,
    "twice": f"seeds: 1\nseeds: 2\n{ONE_RUN}",
    "typo": f"sedes: 2\n{ONE_RUN}",
    "many": f"seeds: 1000000000\n{ONE_RUN}",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a few files that a command can stumble over."""
    made = tmp_path_factory.mktemp("mistakes")
    (made / "file").write_text("in the way")
    (made / "text.npz").write_text("no arrays")
    for name, text in RECIPES.items():
        (made / f"{name}.yaml").write_text(text)
    (made / "damaged").mkdir()
    (made / "damaged" / "run.json").write_text("{}")
    (made / "damaged" / "cells.csv").write_text("name,depth\ngcn")
    (made / "bare").mkdir()
    save_file({"weight": torch.ones(1)}, made / "bare" / "seed_0.safetensors")
    return made


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("command", "named"), MISTAKES, ids=[words for words, _ in MISTAKES])
def test_a_mistake_gets_one_line(
    command: str, named: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [word.replace("TMP", str(folder)) for word in command.split()]
    try:
        status = main(arguments)
    except SystemExit as end:  # of the parser
        status = int(end.code or 0)
    # The notice of the first compilation on a machine is no message about the mistake.
    said = re.sub(r"\Aeamp: compiling kernels [^\n]+\n", "", capsys.readouterr().err)
    assert status == 2
    assert re.fullmatch(r"eamp: [^\n]+\n", said)
    assert re.search(named, said)


@pytest.mark.parametrize("command", [["cite", "gcn"], ["--help"]])
def test_a_reader_that_goes_away_is_no_mistake(command: list[str]) -> None:
    eamp = subprocess.Popen(
        [sys.executable, "-m", "eamp", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert eamp.stdout is not None
    eamp.stdout.close()
    _, said = eamp.communicate()
    assert said == b""


def test_an_option_that_is_nested_too_deeply(capsys: pytest.CaptureFixture[str]) -> None:
    deep = '{"weight":' * 10_000 + "1" + "}" * 10_000
    assert main(["train", "--data", "grid:4x4", "--entropy", deep]) == 2
    assert "nested too deeply" in capsys.readouterr().err
