"""Pages of the site that lie outside docs/, and links between pages as GitHub resolves them."""

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
# Files outside docs/ by their place on the site.
PLACES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "src/eamp/ops/README.md": "derivation.md",
    "benchmarks/README.md": "benchmarks.md",
    "benchmarks/results.json": "results/benchmarks.json",
    "src/eamp/paper/recipes/depth.yaml": "results/deep_networks/depth.yaml",
}
SOURCES = {place: source for source, place in PLACES.items()}
LINK = re.compile(r"(\]\()([^)\s:#]+)")  # no addresses of other sites, no anchors of the same page


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the files outside docs/."""
    for source, place in PLACES.items():
        files.append(File.generated(config, place, abs_src_path=str(ROOT / source)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links to where their targets lie on the site, and mark examples with a prompt."""
    here = page.file.src_uri
    folder = posixpath.dirname(SOURCES.get(here, f"docs/{here}"))

    def moved(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, match[2]))
        target = PLACES.get(target, target.removeprefix("docs/"))
        if target.endswith(".ipynb"):
            target = f"{target.removesuffix('ipynb')}md"
        return match[1] + posixpath.relpath(target, posixpath.dirname(here) or ".")

    return LINK.sub(moved, markdown).replace("```python\n>>>", "```pycon\n>>>")
