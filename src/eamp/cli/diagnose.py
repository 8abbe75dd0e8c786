"""Run a model once, an untrained one or --model your_module:function, and diagnose its layers."""

import shlex
import sys
from pathlib import Path
from typing import Any

from jsonargparse import ArgumentParser, Namespace

from eamp.cli import options as shared
from eamp.experiments.schema import DEFAULTS
from eamp.files import check_writable

EXAMPLE = "eamp diagnose --model gcn --data cora --depth 64 --report out/diagnosis.html"

DEPTH = 64  # unless --depth says otherwise


def add(parser: ArgumentParser) -> None:
    """Add the options of the command, those that concern training left out."""
    training = ("protocol", "changes", "split", "task")
    shared.add_cell(parser, depth=DEPTH, without=training)
    parser.add_argument("--output", type=Path | None, help="folder for words, table and charts")
    parser.add_argument(
        "--report",
        type=Path | None,
        help="HTML file for a page with the verdict, the layers, and before and after the cure",
    )


def run(options: Namespace) -> int:
    """Print the diagnosis, and save it if a folder or a file is given."""
    if ":" in options.model:
        check_own(options)
    else:
        shared.check_model(options)
    from eamp.diagnostics import report  # heavy: imported when the command runs

    if options.report is not None:  # told before the model runs
        check_writable(options.report.parent)
        if options.report.is_dir():
            raise ValueError(f"--report is a file, but {options.report} is a folder.")
    model, data, subject = subject_of(options)
    diagnosis = report(model, data, folder=options.output)
    if options.report is not None:
        # heavy: imported when a page is written
        from eamp.report.cures import cures
        from eamp.report.diagnosis_page import write_diagnosis

        command = shlex.join(["eamp", *sys.argv[1:]])
        found = cures(diagnosis, model, data)
        write_diagnosis(options.report, diagnosis, subject=subject, cures=found, command=command)
        print(f"Written to {options.report}")
    return 0


def check_own(options: Namespace) -> None:
    """Raise an error for settings of a network beside a function that makes its own."""
    defaults = {**DEFAULTS, "data": shared.DATA, "depth": DEPTH}
    changed = [name for name in defaults if options.get(name, defaults[name]) != defaults[name]]
    if changed:
        names = ", ".join(f"--{name}" for name in changed)
        raise ValueError(
            f"--model {options.model} is a function that returns the model and its data, which "
            f"{names} cannot change; leave {names} out, or set it inside the function."
        )


def subject_of(options: Namespace) -> tuple[Any, Any, str]:
    """Return the model, its data, and both in words."""
    if ":" in options.model:
        from eamp.cli.own_model import load_own_model  # heavy: imports the user's code

        model, data = load_own_model(options.model)
        return model, data, f"{type(model).__name__} of {options.model}"
    cell = shared.cell_from(options)
    layers = f"{options.depth} layer{'' if options.depth == 1 else 's'} × {options.width}"
    data = cell.graph
    if isinstance(data, tuple):  # many graphs: a mini-batch of the training graphs
        from torch_geometric.data import Batch  # heavy

        batch = Batch.from_data_list(data[0][: cell.rules.batch_size])
        data = (batch.x, batch.edge_index, batch.batch)
    return cell.build(), data, f"{options.model}, {layers}, untrained, on {options.data}"
