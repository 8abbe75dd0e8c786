"""Notebooks as pages: cells in Markdown, with the outputs that are stored in them."""

import base64
import re
from collections.abc import Iterator
from html import escape
from pathlib import PurePosixPath
from typing import Any

import nbformat
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

# The site has a style of its own for tables without a class.
STYLE_OF_PANDAS = re.compile(
    r'<style scoped>.*?</style>|(?<=<table) border="1" class="dataframe"', re.S
)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page, and its pictures, for every notebook."""
    for file in [file for file in files if file.src_uri.endswith(".ipynb")]:
        notebook = nbformat.read(file.abs_src_path, as_version=4)
        path = PurePosixPath(file.src_uri)
        pictures: dict[str, bytes] = {}
        text = "\n\n".join(page(notebook, path, pictures))
        files.append(File.generated(config, str(path.with_suffix(".md")), content=text))
        for name, content in pictures.items():
            files.append(File.generated(config, str(path.with_name(name)), content=content))
    return files


def page(
    notebook: nbformat.NotebookNode, path: PurePosixPath, pictures: dict[str, bytes]
) -> Iterator[str]:
    """Yield the parts of the page; pictures are put into ``pictures`` by name."""
    for number, cell in enumerate(notebook.cells):
        if cell.cell_type == "markdown":
            yield cell.source
            if number == 0:
                yield f'<a href="{path.name}" download>Download this notebook</a>'
        elif cell.cell_type == "code":
            yield f"```python\n{cell.source}\n```"
            for output in cell.outputs:
                yield shown(output, path.stem, pictures)


def shown(output: Any, stem: str, pictures: dict[str, bytes]) -> str:
    """Return an output as Markdown: a picture, else HTML, else text."""
    if output.output_type == "stream":
        return text_block(output.text)
    if output.output_type == "error":
        raise ValueError(f"{stem}: a stored output is an error, {output.ename}: {output.evalue}")
    if "image/png" in output.data:
        name = f"{stem}-{len(pictures) + 1}.png"
        pictures[name] = base64.b64decode(output.data["image/png"])
        return f'<img class="output" src="{name}" alt="Chart">'
    if "text/html" in output.data:
        table = STYLE_OF_PANDAS.sub("", output.data["text/html"]).strip()
        return f'<div class="output">\n{table}\n</div>'
    return text_block(output.data["text/plain"])


def text_block(text: str) -> str:
    """Return text as it stands."""
    return f'<pre class="output"><code>{escape(text.rstrip())}</code></pre>'
