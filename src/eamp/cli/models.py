"""List the models, with their references and their own options."""

from jsonargparse import ArgumentParser, Namespace

EXAMPLE = "eamp models"
STEP = {"always": "always", "asked": "with --entropy", "never": "never"}


def add(parser: ArgumentParser) -> None:
    """Add no options."""


def run(options: Namespace) -> int:
    """Print a table of the models."""
    # heavy: imported when the command runs
    from rich import print as show
    from rich.box import SIMPLE
    from rich.table import Column, Table

    from eamp.nn.models import MODELS
    from eamp.nn.models.description import describe
    from eamp.report.citations import reference

    caption = "own options go into --options; `eamp cite MODEL` prints BibTeX entries"
    columns = (
        Column("model", no_wrap=True),
        "what it is, and its own options",
        Column("reference", max_width=13),
        Column("entropy step", max_width=9),
    )
    table = Table(*columns, caption=caption, box=SIMPLE, leading=1)
    for name in MODELS:
        found = describe(name)
        own = f"\nOptions: {', '.join(found.options)}." if found.options else ""
        table.add_row(name, f"{found.summary}{own}", reference(name), STEP[found.entropy])
    show(table)
    return 0
