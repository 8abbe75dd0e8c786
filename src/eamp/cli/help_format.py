"""How ``--help`` names types and defaults, and shows an example of every command."""

from argparse import SUPPRESS, Action
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from jsonargparse import DefaultHelpFormatter
from jsonargparse.typing import PositiveFloat, PositiveInt

NAMES = {
    int: "INTEGER",
    float: "NUMBER",
    PositiveInt: "INTEGER",
    PositiveFloat: "NUMBER",
    Path: "PATH",
    dict[str, Any]: "MAPPING",
}


class HelpFormatter(DefaultHelpFormatter):
    """A formatter that shows the type of an option as its placeholder, and a default if any."""

    def _get_help_string(self, action: Action) -> str:
        text, default = action.help or "", action.default
        nothing = default is None or default is False or default in (SUPPRESS, [])
        if nothing or not action.option_strings:
            return text
        shown = f"{default:g}" if isinstance(default, float) else str(default)
        return f"{text} (default: {'true' if default is True else shown})"

    def _get_default_metavar_for_optional(self, action: Action) -> str:
        return placeholder(getattr(action, "_typehint", None) or action.type)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        # An example keeps its lines, so that it can be copied.
        return text if "\n" in text else super()._fill_text(text, width, indent)


def placeholder(kind: Any) -> str:
    """Return how the help names the value of an option; ``None`` is for one that is left out.

    Example:
        >>> placeholder(Path | None), placeholder(Literal["metis"] | None), placeholder(str)
        ('PATH', '{metis}', 'TEXT')
    """
    if get_origin(kind) is Literal:
        return "{" + ",".join(get_args(kind)) + "}"
    kinds = [each for each in get_args(kind) if each is not type(None)]
    if kind in NAMES or not kinds:
        return NAMES.get(kind, "TEXT")
    return placeholder(kinds[0])
