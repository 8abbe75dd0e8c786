"""The command line: a module for each command, whose docstring is the command's help."""

import sys
from collections.abc import Sequence

import eamp
from eamp.optional import extra

with extra("cli"):  # every command needs jsonargparse
    from eamp.cli import (
        bench,
        cite,
        data,
        diagnose,
        models,
        report,
        reproduce,
        sweep,
        train,
        tune,
        work,
    )
    from eamp.cli.exit_status import told
    from eamp.cli.parser import ArgumentParser, with_underscores
    from eamp.cli.warning_lines import warnings_as_lines

MODULES = (reproduce, train, sweep, work, tune, diagnose, report, bench, data, models, cite)
COMMANDS = {module.__name__.rpartition(".")[2]: module for module in MODULES}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status; a mistake is told in one line, with status 2."""

    def run() -> int:
        given = sys.argv[1:] if arguments is None else arguments
        options = build().parse_args(with_underscores(given))
        return COMMANDS[options.subcommand].run(options[options.subcommand])

    with warnings_as_lines():
        return told(run)


def build() -> ArgumentParser:
    """Return the parser of all commands."""
    parser = ArgumentParser(
        prog="eamp",
        description="Entropy-aware message passing in graph neural networks.",
        version=eamp.__version__,
        epilog="Names of options may be written with dashes or underscores.",
    )
    subcommands = parser.add_subcommands()
    for name, module in COMMANDS.items():
        command = ArgumentParser(description=module.__doc__, epilog=f"example:\n  {module.EXAMPLE}")
        module.add(command)
        subcommands.add_subcommand(name, command, help=module.__doc__)
        command.prog = f"eamp {name}"  # jsonargparse adds the options of `eamp` itself
    return parser
