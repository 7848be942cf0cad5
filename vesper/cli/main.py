"""The `vesper` command. Each subcommand is a module of its own and is imported only when it is used."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import traceback

import click

from vesper import __version__
from vesper.cli.exits import OUR_BUG, WRONG_INPUT

COMMANDS = {
    "audit": "See what the audit log says, and show that nobody changed it.",
    "bench": "Time a node on every engine, beside each other.",
    "cache": "See what the caches hold and how often they help, and empty them.",
    "check": "Check nodes and say what is wrong with them.",
    "compile": "Write a node as Python, or as IR.",
    "debug": "Step through a node on both engines, forwards and backwards.",
    "divergences": "See where the engines differ on live traffic, and make the smallest case of it.",
    "explain": "Say what a diagnostic means, with an example.",
    "fmt": "Lay out the text of nodes in the one way.",
    "journal": "See what ran, and finish what was left.",
    "migrate": "Move nodes to the direct engine, and simulate what that takes.",
    "new": "Write a small node to start from, or the next version of one.",
    "nodes": "List nodes and show what is in them.",
    "profile": "Say where a node spends its time, on each engine.",
    "replay": "Replay an execution from its trace, change it, and make a fix of it.",
    "run": "Run a node on one engine or on both.",
    "status": "Say in which mode each node runs, and what it lacks until the next one.",
    "stubs": "Write type stubs, so that type checkers know the nodes.",
    "test": "Run the cases of nodes, and try their contracts on generated inputs.",
    "traces": "See what executions did, step by step.",
    "verify": "Show that the engines agree on a node.",
}
RENAMED = {"trace": "traces to-test"}
"""Commands of earlier releases and their present spelling."""


class LazyCommands(click.Group):
    """Knows the names and one line of help; loads a command when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in RENAMED:
            raise click.UsageError(f"`vesper {cmd_name}` was renamed; use `vesper {RENAMED[cmd_name]}`", ctx)
        if cmd_name not in COMMANDS:
            return None
        command = getattr(importlib.import_module(f"vesper.cli.{cmd_name}.command"), "command", None)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=LazyCommands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="vesper")
def vesper() -> None:
    """Business logic written once, run on two engines that are shown to agree.

    NODE is a path, an id such as payment_decision_v1, or a name without its version.

    Exit codes: 0 fine, 1 something is wrong with the node or its inputs (or the output cannot be written), 2 usage, 3 a
    bug in Vesper.
    """


def main() -> None:
    try:
        vesper(prog_name="vesper")
    except Exception as error:  # noqa: BLE001  # the last line of defence: whatever it is, it is reported as ours
        if isinstance(error, OSError) and error.filename is None:
            _end_without_output(error)
        traceback.print_exc()
        print("\nThis is a bug in Vesper, not in your node. Please report it with the lines above.", file=sys.stderr)
        sys.exit(OUR_BUG)


def _end_without_output(error: OSError) -> None:
    """Nobody takes what is printed: the disk is full, the terminal is gone. (A file that fails has a name.)

    A reader that has had enough (`vesper check | head`) is the one case that click itself ends with exit code 1.
    """
    with contextlib.suppress(OSError):
        print(f"error: cannot write the output: {error.strerror or type(error).__name__}", file=sys.stderr, flush=True)
    # What is still in the buffers has no place to go; Python would try once more at its end, and complain.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
    sys.exit(WRONG_INPUT)
