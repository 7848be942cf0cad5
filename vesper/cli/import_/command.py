"""`vesper import`. Imports the module of a subcommand only when that subcommand runs."""

from __future__ import annotations

import importlib

import click

COMMANDS = {
    "dmn": "Write nodes from a DMN model.",
    "zen": "Write a node from a JSON decision model of zen.",
    "xlsx": "Write a node from a decision table in an XLSX workbook.",
    "csv": "Write a node from a decision table in a CSV file.",
}


class LazyImports(click.Group):
    """A command group that lists the formats from a table, and imports a command when it runs."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = getattr(importlib.import_module(f"vesper.cli.import_.{cmd_name}"), "command", None)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group("import", cls=LazyImports)
def command() -> None:
    """Write nodes from the rules of other tools.

    What cannot be translated is listed with its place and left as an error in the node. Exit code 0: all was
    translated; 1: some was not.
    """
