"""The parser of the command line, which tells a mistake in one line."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NoReturn, get_args

import jsonargparse
from jsonargparse.typing import PositiveFloat, PositiveInt

from eamp.cli.exit_status import fail
from eamp.cli.help_format import HelpFormatter
from eamp.spelling import did_you_mean

KINDS = {
    int: "a whole number",
    float: "a number",
    PositiveInt: "a whole number of at least 1",
    PositiveFloat: "a number above 0",
    bool: "true or false",
    Path: "a path",
    dict[str, Any]: "a mapping in quotation marks",
}

# How a message of jsonargparse ends with the value that came.
VALUE = r"(?:(?:Got|Given) value: ?(.*)|: (\S+) does not conform .*|: '(.*)')$"


class ArgumentParser(jsonargparse.ArgumentParser):
    """A parser that names an option, what came and what was expected, in one line."""

    def __init__(self, **options: Any) -> None:
        super().__init__(formatter_class=HelpFormatter, **options)

    def error(self, message: str, ex: Exception | None = None) -> NoReturn:
        """Print the mistake and end with exit status 2."""
        parser = getattr(ex, "subcommand_parser", None) or self
        message = " ".join(message.split())
        missing = re.match(r"the following arguments are required: (\w+)\.", message)
        program = f"eamp {missing[1]}" if missing else parser.prog
        words, guess = in_words(parser, message), suggestion(parser, message)
        self.exit(fail(f"{words}; see `{program} --help`.{guess}"))


def with_underscores(arguments: Iterable[str]) -> list[str]:
    """Return the arguments with underscores in the names of options, where there may be dashes.

    Example:
        >>> with_underscores(["--by-split", "--output=my-runs", "a--b", "--", "--by-split"])
        ['--by_split', '--output=my-runs', 'a--b', '--', '--by-split']
    """
    words = list(arguments)
    end = words.index("--") if "--" in words else len(words)
    names = (
        re.sub("^--[^=]+", lambda name: "--" + name[0][2:].replace("-", "_"), word)
        for word in words[:end]
    )
    return [*names, *words[end:]]


def suggestion(parser: jsonargparse.ArgumentParser, message: str) -> str:
    """Return a question after the option, command or choice that a message may be about."""
    if found := re.search(r"invalid choice: '(.*?)' \(choose from (.*?)\)", message):
        return did_you_mean(found[1], re.findall(r"[\w-]+", found[2]))
    if found := re.match(r".*nrecognized arguments:.*?(--\w+)", message):
        names = [name for action in parser._actions for name in action.option_strings]
        return did_you_mean(found[1], names)
    return ""


def in_words(parser: jsonargparse.ArgumentParser, message: str) -> str:
    """Return a message of jsonargparse in words of the command line."""
    message = " ".join(message.split()).rstrip(".")
    if found := re.match(r'Parser key "(\w+)": .*?' + VALUE, message):
        name, *values = found.groups()
        option = next(action for action in parser._actions if action.dest == name)
        kind, value = getattr(option, "_typehint", option.type), "".join(filter(None, values))
        return f"--{name} must be {expected(kind)}, but is {value!r} ({option.help})"
    if "subcommand" in message:
        given = re.search("invalid choice: ('.*?') ", message)
        wrong = f"there is no command {given[1]}" if given else "a command is missing"
        return f"{wrong}; there are {', '.join(commands_of(parser))}"
    if found := re.match(r"the following arguments are required: (\w+)\.(\w+)", message):
        command, name = found.groups()
        arguments = commands_of(parser)[command]._actions
        what = next(action.help for action in arguments if action.dest == name)
        return f"`eamp {command}` needs its argument {name}: {what}"
    if found := re.match(r"argument (\S+): invalid choice: ('.*?') \(choose from (.*)\)", message):
        return f"{found[1]} must be one of {found[3]}, but is {found[2]}"
    message = re.sub(r"argument (\S+): expected one argument", r"\1 needs a value", message)
    return message.replace("unrecognized arguments:", "there is no option or argument")


def commands_of(parser: jsonargparse.ArgumentParser) -> dict[str, Any]:
    """Return the parsers of the commands by name."""
    return dict(getattr(parser._subcommands_action, "choices", {}))


def expected(kind: Any) -> str:
    """Return how an error names a type; ``None`` stands for an option that was left out."""
    kinds = [each for each in get_args(kind) if each is not type(None)]
    if kind in KINDS or not kinds:
        return KINDS.get(kind, "a text")
    if isinstance(kinds[0], str):  # the choices of a Literal
        return " or ".join(map(str, kinds))
    return " or ".join(map(expected, kinds))
