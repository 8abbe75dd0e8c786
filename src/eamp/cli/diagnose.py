"""Run an untrained model once on a dataset, and print what its layers do to the embedding."""

from pathlib import Path

from jsonargparse import ArgumentParser, Namespace

from eamp.cli import options as shared

EXAMPLE = "eamp diagnose --model gcn --data cora --depth 64 --output out/diagnosis"


def add(parser: ArgumentParser) -> None:
    """Add the options of the command, those that concern training left out."""
    training = ("protocol", "changes", "normalize_features", "split")
    shared.add_cell(parser, depth=64, without=training)
    parser.add_argument("--output", type=Path | None, help="folder for words, table and charts")


def run(options: Namespace) -> int:
    """Print the diagnosis, and save it if a folder is given."""
    from eamp.diagnostics import report  # heavy: imported when the command runs

    cell = shared.cell_from(options)
    report(cell.build(), (cell.graph.x, cell.graph.edge_index), folder=options.output)
    return 0
