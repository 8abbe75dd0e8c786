"""The command line as users type it."""

import json
import re
import shlex
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eamp.cli import COMMANDS, build, main
from eamp.cli.parser import commands_of
from eamp.data.catalogue import Entry
from eamp.experiments.cell import Cell
from eamp.experiments.schema import DEFAULTS, KINDS
from eamp.nn import MODELS

TINY = ["--data", "csbm:nodes=60,features=8", "--depth", "2"]


def test_help_is_quick_and_imports_no_torch() -> None:
    code = "import sys, eamp.cli; eamp.cli.build().format_help(); sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_command_has_its_help_and_its_options() -> None:
    said = " ".join(build().format_help().split())
    for name, module in COMMANDS.items():
        assert f"{name} {module.__doc__}" in said


@pytest.mark.parametrize("command", COMMANDS)
def test_help_is_readable_and_has_an_example_that_works(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        main([command, "--help"])
    assert end.value.code == 0
    said = capsys.readouterr().out
    assert said.startswith(f"usage: eamp {command}")
    assert not re.search(r"type:|null|<class|Optional|Literal|Any|\[options\]|: False", said)
    example = COMMANDS[command].EXAMPLE
    assert f"\n\nexample:\n  {example}\n" in said
    program, *arguments = shlex.split(example)
    assert program == "eamp"
    assert build().parse_args(arguments).subcommand == command


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_is_explained(command: str) -> None:
    parser = commands_of(build())[command]
    assert all(action.help for action in parser._actions)


def test_names_of_types_and_defaults() -> None:
    said = " ".join(commands_of(build())["train"].format_help().split())
    assert "--depth INTEGER number of hidden layers; most models have an output layer" in said
    assert "--entropy MAPPING options of the entropy step" in said
    assert "--partition {metis} how to spread" in said
    assert "--dropout NUMBER probability of dropout (default: 0)" in said
    assert "a process waits for the others (default: 600)" in said


def test_names_of_options_may_have_dashes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", *TINY, "--normalize-features", "--changes", '{"epochs": 1}']) == 0
    assert main(["train", "--normalize-features", "--data", "my-data"]) == 2
    assert "no dataset 'my-data'" in capsys.readouterr().err


def test_models_are_listed_with_their_references_and_options(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["models"]) == 0
    said = capsys.readouterr().out
    for name in MODELS:
        assert f" {name} " in said
    row = said[said.index(" pairnorm ") : said.index(" g2 ")]
    assert "Zhao &" in row
    assert "--entropy" in row
    assert all(option in row for option in ("scale_individually", "count_output"))


@pytest.mark.parametrize(("command", "depth"), [("train", 4), ("tune", 4), ("diagnose", 64)])
def test_the_settings_of_a_cell_are_options(command: str, depth: int) -> None:
    options = build().parse_args([command])[command]
    training = {"protocol", "changes", "split", "task"}
    expected = set(KINDS) - {"name"} - (training if command == "diagnose" else set())
    assert expected == set(KINDS) & set(options.as_dict())
    defaults = {**DEFAULTS, "model": "gcn", "data": "csbm", "depth": depth}
    assert all(options[name] == defaults[name] for name in expected)


def test_options_are_read_as_the_types_of_the_settings() -> None:
    given = ["--split", "2", "--entropy", '{"weight": 3}', "--normalize_features", "--width", "8"]
    options = build().parse_args(["train", *given]).train
    assert (options.split, options.width, options.normalize_features) == (2, 8, True)
    assert options.entropy == {"weight": 3}


def test_a_diagnosis_takes_normalised_features(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["diagnose", "--data", "csbm:nodes=60,features=8", "--depth", "1"]
    said = []
    for options in ([], ["--normalize_features"]):
        assert main([*command, *options]) == 0
        said.append(capsys.readouterr().out)
    assert said[0] != said[1]


def test_a_command_without_its_argument_points_to_its_own_help(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["sweep"])
    said = capsys.readouterr().err
    assert "`eamp sweep` needs its argument recipe" in said
    assert "see `eamp sweep --help`" in said


def test_data_are_looked_for_before_the_training_is_announced(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["train", "--data", "nope"]) == 2
    assert capsys.readouterr().out == ""


def test_a_folder_of_another_training_names_what_differs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["train", *TINY, "--changes", '{"epochs": 1}', "--output", str(tmp_path)]
    assert main(command) == 0
    changed = ["--changes", '{"epochs": 1, "learning_rate": 0.1}', "--width", "8"]
    assert main([*command, *changed]) == 2
    said = capsys.readouterr().err
    assert "with other settings (width, learning_rate). Choose" in said
    assert "another --output" in said


def test_cite_prints_the_paper_first(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cite", "gcnii"]) == 0
    out = capsys.readouterr().out
    assert out.index("nazari2024entropy") < out.index("chen2020simple")


def test_data_list_get_and_check(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "list"]) == 0
    assert "cora" in capsys.readouterr().out
    assert main(["data", "get", "grid:4x5"]) == 0
    assert "20 nodes, 31 undirected edges" in capsys.readouterr().out
    assert main(["data", "check", "grid:4x5"]) == 0
    assert "valid" in capsys.readouterr().out
    assert main(["data", "get", "nowhere"]) == 2
    assert "nowhere" in capsys.readouterr().err


@pytest.mark.parametrize("action", ["get", "check"])
def test_without_names_only_fetched_data_are_meant(
    action: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    entries = [Entry("cora", "", False), Entry("grid:4x5", "", True), Entry("csbm", "", None)]
    monkeypatch.setattr("eamp.data.available", lambda: entries)
    assert main(["data", action]) == 0
    assert capsys.readouterr().out.count("grid:4x5") == 1
    del entries[1]
    assert main(["data", action]) == 2
    assert "name a dataset, as in `eamp data get cora`" in capsys.readouterr().err


def test_warnings_are_told_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def cite(options: object) -> int:  # pytest records warnings, so that none is printed
        said.append(warnings.formatwarning("first line\n  second", UserWarning, "file.py", 3))
        return 0

    said: list[str] = []
    monkeypatch.setattr("eamp.cli.cite.run", cite)
    before = warnings.formatwarning
    assert main(["cite"]) == 0
    assert said == ["eamp: warning: first line second\n"]
    assert warnings.formatwarning is before


def test_diagnose_says_what_goes_wrong_and_saves_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    command = ["diagnose", "--data", "grid:10x10", "--depth", "24"]
    assert main([*command, "--output", str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith("Oversmoothing")
    assert {file.name for file in tmp_path.iterdir()} == {
        "diagnosis.txt",
        "layers.csv",
        "layers.html",
        "layers.svg",
    }
    entropy = '{"weight": 10, "temperature": 1}'  # detached, so that gradients vanish
    assert main([*command, "--width", "256", "--entropy", entropy]) == 0
    assert capsys.readouterr().out.startswith("Vanishing gradient")
    entropy = '{"weight": 10, "temperature": 1, "detach": false}'
    assert main([*command, "--width", "256", "--entropy", entropy]) == 0
    assert capsys.readouterr().out.startswith("Untrained, and nothing wrong is found")


def test_train_names_its_protocol_and_goes_on_where_it_was(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    command = ["train", "--model", "gcnii", *TINY, "--seeds", "2", "--output", str(tmp_path)]
    command += ["--changes", '{"epochs": 60}', "--options", '{"theta": 0.3}']
    assert main(command) == 0
    first = capsys.readouterr().out
    assert "test accuracy at the epoch of lowest validation loss" in first
    assert "2 seeds, protocol standard" in first
    assert json.loads((tmp_path / "seed_1.json").read_text())["epoch"] >= 0
    assert main(command) == 0
    assert capsys.readouterr().out == first


def test_train_says_at_its_start_what_it_does(capsys: pytest.CaptureFixture[str]) -> None:
    changes = ["--changes", '{"epochs": 2, "patience": null}']
    assert main(["train", *TINY, *changes, "--entropy", '{"weight": 1}']) == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert first == (
        "Training gcn on csbm:nodes=60,features=8: depth 2, width 64, entropy "
        '{"weight": 1}; 1 seed, 2 epochs, protocol standard with {"epochs": 2, "patience": null}.'
    )


@pytest.mark.parametrize("protocol", ["paper", "standard"])
def test_only_the_papers_protocol_gives_the_papers_number(
    protocol: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", *TINY, "--protocol", protocol, "--changes", '{"epochs": 2}']) == 0
    said = capsys.readouterr().out
    assert "highest validation accuracy over the epochs" in said
    assert ("the paper's number" in said) == (protocol == "paper")


@pytest.mark.parametrize("keeps", [True, False])
def test_an_interrupted_training_says_what_is_kept(
    keeps: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    command = ["train", *TINY, "--seeds", "2", "--changes", '{"epochs": 2}']
    command += ["--output", str(tmp_path)] if keeps else []
    train = Cell.train

    def interrupted(self: Cell, *given: Any, **options: Any) -> Any:
        if self.seed == 1:
            raise KeyboardInterrupt
        return train(self, *given, **options)

    with monkeypatch.context() as patched:
        patched.setattr(Cell, "train", interrupted)
        assert main(command) == 130
    said = capsys.readouterr()
    assert re.fullmatch(r"eamp: interrupted; [^\n]+\n", said.err)
    assert ("nothing is kept. With --output" in said.err) != keeps
    assert (f"{tmp_path} keeps the seeds that have finished" in said.err) == keeps
    assert (tmp_path / "seed_0.json").exists() == keeps
    assert main(command) == 0


def test_unknown_models_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--model", "gpt"]) == 2
    assert "no model named 'gpt'; there are gcn, " in capsys.readouterr().err


@pytest.mark.parametrize("command", ["train", "tune", "diagnose"])
def test_a_misspelt_model_is_told_before_torch_is_imported(command: str) -> None:
    arguments = [command, "--model", "gpt"]
    code = f"import sys; from eamp.cli import main; status = main({arguments}); "
    code += "sys.exit('torch' in sys.modules or status != 2)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (
            ["train", *TINY, "--entropy", '{"lambda": 3}'],
            "the entropy step has no option lambda; it has weight, temperature",
        ),
        (["diagnose", *TINY, "--options", '{"foo": 1}'], "gcn cannot be made with {'foo': 1}"),
        (
            ["train", *TINY, "--changes", '{"epochs": 0}'],
            "epochs must be a whole number of at least 1",
        ),
        (
            ["train", *TINY, "--changes", '{"select": "foo"}'],
            "select must be one of 'val_loss', 'val_accuracy'",
        ),
        (
            ["train", *TINY, "--changes", '{"metric": "roc_auc"}'],
            "the metric roc_auc is for two classes, but y holds 5; use metric accuracy or macro_f1",
        ),
        (
            ["train", *TINY, "--changes", '{"consistency": {"lambda": 1}}'],
            "consistency has no lambda; it has passes, weight, temperature",
        ),
        (["cite", "foo"], "foo"),
    ],
)
def test_mistakes_are_answered_in_a_line(
    command: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("eamp: ")
    assert said in error


def test_an_accuracy_is_called_what_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", *TINY, "--changes", '{"epochs": 2, "select": "val_accuracy"}']) == 0
    said = capsys.readouterr().out
    assert "test accuracy at the epoch of highest validation accuracy" in said
    assert 'protocol standard with {"epochs": 2, "select": "val_accuracy"}' in said


def test_a_metric_is_called_by_its_name(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    data = ["--data", "csbm:nodes=60,features=8,classes=2", "--depth", "2"]
    changes = {"epochs": 3, "metric": "roc_auc"}
    command = ["train", *data, "--output", str(tmp_path), "--changes"]
    assert main([*command, json.dumps(changes)]) == 0
    said = capsys.readouterr().out
    result = json.loads((tmp_path / "seed_0.json").read_text())
    value = f"{100 * result['test_metric']:.2f}"
    assert f"test ROC AUC at the epoch of lowest validation loss: {value} (1 seed" in said
    assert f"validation ROC AUC over the epochs: {100 * result['best_val_metric']:.2f}" in said
    assert "accuracy" not in said
    changes |= {"select": "val_metric"}
    assert main(["train", *data, "--changes", json.dumps(changes)]) == 0
    assert "test ROC AUC at the epoch of highest validation ROC AUC" in capsys.readouterr().out


def test_consistency_is_a_change_of_the_protocol(capsys: pytest.CaptureFixture[str]) -> None:
    changes = '{"epochs": 2, "consistency": {"passes": 2}}'
    assert main(["train", *TINY, "--changes", changes]) == 0
    assert f"protocol standard with {changes}" in capsys.readouterr().out


def test_a_directed_graph_is_refused_with_a_way_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "directed.npz")
    rows = np.arange(12)
    edges = np.stack([rows[:-1], rows[1:]])
    np.savez(path, x=np.eye(12, dtype=np.float32), edge_index=edges, y=rows % 2)
    for command in ("diagnose", "train"):
        settings = ["--changes", '{"epochs": 2}'] if command == "train" else []
        assert main([command, "--data", path, "--depth", "2", *settings]) == 2
        assert "data by name with undirected:<name>" in capsys.readouterr().err
        assert main([command, "--data", f"undirected:{path}", "--depth", "2", *settings]) == 0
