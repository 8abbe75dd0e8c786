"""The command line: a module for each command, whose docstring is the command's help."""

from collections.abc import Sequence

import eamp
from eamp.optional import extra

with extra("cli"):  # every command needs jsonargparse
    from eamp.cli import bench, cite, data, diagnose, report, reproduce, sweep, train, tune, work
    from eamp.cli.exit_status import told
    from eamp.cli.parser import ArgumentParser

MODULES = (reproduce, train, sweep, work, tune, diagnose, report, bench, data, cite)
COMMANDS = {module.__name__.rpartition(".")[2]: module for module in MODULES}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status; a mistake is told in one line, with status 2."""

    def run() -> int:
        options = build().parse_args(arguments)
        return COMMANDS[options.subcommand].run(options[options.subcommand])

    return told(run)


def build() -> ArgumentParser:
    """Return the parser of all commands."""
    parser = ArgumentParser(
        prog="eamp",
        description="Entropy-aware message passing in graph neural networks.",
        version=eamp.__version__,
    )
    subcommands = parser.add_subcommands()
    for name, module in COMMANDS.items():
        command = ArgumentParser(description=module.__doc__)
        module.add(command)
        subcommands.add_subcommand(name, command, help=module.__doc__)
    return parser
