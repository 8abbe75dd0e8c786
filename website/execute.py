"""Run the tutorials and store their outputs in them: ``python website/execute.py [notebooks]``."""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
from nbclient import NotebookClient

TUTORIALS = sorted((Path(__file__).parents[1] / "docs" / "tutorials").glob("*.ipynb"))
SECONDS = 600  # for one cell, on a busy machine


def executed(path: Path) -> nbformat.NotebookNode:
    """Return a notebook that ran in a kernel of its own and in an empty folder."""
    notebook = nbformat.read(path, as_version=4)
    with TemporaryDirectory() as folder:
        place = {"metadata": {"path": folder}}
        NotebookClient(notebook, timeout=SECONDS, resources=place).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # times of the run
        if cell.cell_type == "code":
            cell.outputs = joined(cell.outputs)
    return notebook


def joined(outputs: list[Any]) -> list[Any]:
    """Return outputs without stderr, which is of one machine, and with printed text in one piece.

    A kernel sends printed text in pieces that depend on time.
    """
    found: list[Any] = []
    for output in outputs:
        if output.get("name") == "stderr":
            continue
        if found and output.output_type == found[-1].output_type == "stream":
            found[-1].text += output.text
        else:
            found.append(output)
    return found


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]) if len(sys.argv) > 1 else TUTORIALS:
        nbformat.write(executed(path), path)
