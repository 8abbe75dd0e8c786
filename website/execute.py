"""Run the tutorials and store their outputs in them: ``python website/execute.py [notebooks]``."""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

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
        if cell.cell_type == "code":  # progress and warnings are of one machine
            cell.outputs = [each for each in cell.outputs if each.get("name") != "stderr"]
    return notebook


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]) if len(sys.argv) > 1 else TUTORIALS:
        nbformat.write(executed(path), path)
