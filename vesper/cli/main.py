"""The `vesper` command. Imports the package of a subcommand only when that subcommand runs."""

from __future__ import annotations

import contextlib
import importlib
import keyword
import os
import sys
import traceback
from typing import Any

import click

from vesper import __version__
from vesper.cli.exits import OUR_BUG, WRONG_INPUT
from vesper.cli.output.terminal import escaped_output

COMMANDS = {
    "audit": "Show, verify and export the audit log.",
    "bench": "Time a node on every engine, side by side.",
    "cache": "Show what the caches hold and how often they hit; empty them.",
    "check": "Report errors in nodes; apply unambiguous fixes.",
    "compile": "Generate Python or IR from a node.",
    "debug": "Step through a node on both engines, forwards and backwards.",
    "demo": "Show a migration, a fault and a crash on a real server.",
    "divergences": "Show, shrink and close differences of the engines on traffic.",
    "doctor": "Check a configuration against its nodes and databases.",
    "explain": "Explain a diagnostic, with an example.",
    "export": "Write the decision tables of a node as a workbook or as Markdown.",
    "fmt": "Format the text of nodes.",
    "import": "Write nodes from the rules of other tools.",
    "journal": "Show runs with effects; resolve runs with an unknown outcome.",
    "lsp": "Serve an editor by the Language Server Protocol.",
    "migrate": "Roll nodes out to the direct engine; simulate a rollout.",
    "new": "Create a node from a template, or the next version of a node.",
    "nodes": "List nodes and show their contents.",
    "openapi": "Write the OpenAPI document of handlers and exposed functions.",
    "profile": "Show where a node spends its time, on each engine.",
    "replay": "Replay an execution from its trace; change it, derive a fix.",
    "run": "Run a node on one engine or on both.",
    "schema": "Print the JSON Schema of nodes, for editors.",
    "serve": "Serve nodes over HTTP.",
    "status": "Show each node's mode, and what it still needs for promotion.",
    "stubs": "Generate type stubs of nodes for type checkers.",
    "test": "Run cases of nodes; check contracts on generated inputs.",
    "traces": "Show what executions did, step by step; turn traces into tests.",
    "trust": "Trust files of other users; list and remove trusted paths.",
    "verify": "Check that the engines agree on nodes.",
}
_BUG = "This is a bug in Vesper, not in your node. Please report it with the lines above."
RENAMED = {"trace": "traces to-test"}
"""Commands of earlier releases and their present spelling."""


class LazyCommands(click.Group):
    """Lists commands from a table, and imports a command when it runs."""

    def main(self, *arguments: Any, **options: Any) -> Any:
        """Run the command line; its output, and that of its errors, leaves through one stream that escapes."""
        with escaped_output():
            return super().main(*arguments, **options)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in RENAMED:
            raise click.UsageError(f"`vesper {cmd_name}` was renamed; use `vesper {RENAMED[cmd_name]}`", ctx)
        if cmd_name not in COMMANDS:
            return None
        package = f"{cmd_name}_" if keyword.iskeyword(cmd_name) else cmd_name
        command = getattr(importlib.import_module(f"vesper.cli.{package}.command"), "command", None)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


# The stream decides about colours, so click must not.
@click.group(cls=LazyCommands, context_settings={"help_option_names": ["-h", "--help"], "color": True})
@click.version_option(__version__, prog_name="vesper")
def vesper() -> None:
    """Run business logic, written once, on two engines that are verified to agree.

    NODE is a path, an id such as payment_decision_v1, or a name without its version.

    Exit codes: 0 success, 1 an error in a node or its inputs (or the output cannot be written), 2 usage, 3 a bug in
    Vesper.
    """


def main() -> None:
    try:
        vesper(prog_name="vesper")
    except Exception as error:  # noqa: BLE001  # any other exception is a bug in Vesper, and is reported as one
        if isinstance(error, OSError) and error.filename is None:
            _end_without_output(error)
        with escaped_output():
            traceback.print_exc()
            print(f"\n{_BUG}", file=sys.stderr)
        sys.exit(OUR_BUG)


def _end_without_output(error: OSError) -> None:
    """End the command after standard output failed: the disk is full, or the terminal is gone.

    An error of a named file has a file name and does not arrive here. Click itself ends a closed pipe (`| head`).
    """
    with contextlib.suppress(OSError):
        print(f"error: cannot write the output: {error.strerror or type(error).__name__}", file=sys.stderr, flush=True)
    # Python flushes its buffers at exit and would report the error again.
    devnull = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(devnull, stream)
    sys.exit(WRONG_INPUT)
