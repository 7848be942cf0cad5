"""The `vesper` command. Imports the package of a subcommand only when that subcommand runs."""

from __future__ import annotations

import contextlib
import importlib
import keyword
import os
import sys
import traceback
from typing import TYPE_CHECKING, Any

import click

from vesper import __version__
from vesper.cli.exits import OUR_BUG, WRONG_INPUT
from vesper.cli.output.terminal import escaped_output, keep_lines

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

COMMANDS = {
    "agents": "Show, stop and start supervised agents; send them messages.",
    "agent": "Talk to an agent in the terminal.",
    "audit": "Show, verify and export the audit log.",
    "bench": "Time a node on every engine, side by side.",
    "cache": "Show what the caches hold and how often they hit; empty them.",
    "check": "Report errors in nodes; apply unambiguous fixes.",
    "compare": "Show inputs on which two versions of a node differ.",
    "compile": "Generate Python or IR from a node.",
    "completion": "Print the completion script of bash, zsh or fish.",
    "dashboard": "Show nodes, divergences and runs in a browser.",
    "debug": "Step through a node on both engines, forwards and backwards.",
    "demo": "Show a migration, a fault and a crash on a real server.",
    "divergences": "Show, shrink and close differences of the engines on traffic.",
    "doctor": "Check the installation, and a configuration against its nodes.",
    "explain": "Explain a diagnostic, with an example.",
    "export": "Write the decision tables of a node as a workbook or as Markdown.",
    "fmt": "Format the text of nodes.",
    "import": "Write nodes from the rules of other tools.",
    "interrupts": "Show and answer questions of waiting runs.",
    "journal": "Show runs with effects; resolve runs with an unknown outcome.",
    "kernel": "Run pipelines of nodes: kernel, workers, questions to people.",
    "lsp": "Serve an editor by the Language Server Protocol.",
    "mcp": "Serve nodes, or an author's tools, by the Model Context Protocol.",
    "migrate": "Roll nodes out to the direct engine; simulate a rollout.",
    "new": "Create a node from a template, or the next version of a node.",
    "nodes": "List nodes and show their contents.",
    "openapi": "Write the OpenAPI document of handlers and exposed functions.",
    "play": "Edit, run and save nodes in a browser.",
    "profile": "Show where a node spends its time, on each engine.",
    "prove": "Prove clauses of nodes for every input, or refute them.",
    "queue": "Show queued runs and dead letters; pause queues.",
    "replay": "Replay an execution from its trace; change it, derive a fix.",
    "run": "Run a node on one engine or on both.",
    "schedule": "Show, pause and run scheduled jobs.",
    "schema": "Print the JSON Schema of nodes, for editors.",
    "serve": "Serve nodes over HTTP.",
    "sessions": "Show, fork and delete conversations.",
    "signal": "Send a signal to waiting runs.",
    "status": "Show each node's mode, and what it still needs for promotion.",
    "stubs": "Generate type stubs of nodes for type checkers.",
    "test": "Run cases of nodes; check contracts on generated inputs.",
    "topics": "Show consumers of topics, pause them; requeue dead letters.",
    "traces": "Show what executions did, step by step; turn traces into tests.",
    "trust": "Trust files of other users; list and remove trusted paths.",
    "verify": "Check that the engines agree on nodes.",
    "versions": "Show what candidates of names would change; promote them.",
    "work": "Wake waiting runs and do queued work, without HTTP.",
}
_BUG = "This is a bug in Vesper, not in your node. Please report it with the lines above."
RENAMED = {"trace": "traces to-test"}
"""Commands of earlier releases and their present spelling."""
_SYNONYMS = {
    "build": "compile",
    "dev": "serve",
    "format": "fmt",
    "help": "--help",
    "init": "new",
    "lint": "check",
    "list": "nodes list",
    "start": "serve",
    "validate": "check",
    "version": "--version",
}
"""Words of other tools for what a command here does."""
_VERBATIM = {
    "compile",
    "completion",
    "debug",
    "explain",
    "export",
    "fmt",
    "lsp",
    "mcp",
    "openapi",
    "schema",
    "serve",
    "stubs",
}
"""Commands that print code or documents, whose lines are not wrapped."""
NODES_ONLY = {
    "bench",
    "check",
    "compare",
    "compile",
    "debug",
    "fmt",
    "openapi",
    "profile",
    "prove",
    "run",
    "status",
    "stubs",
    "test",
    "verify",
}
"""Commands whose arguments are nodes: shells complete these without importing the command."""


class LazyCommands(click.Group):
    """A command group that lists commands from a table, and imports a command when it runs."""

    def main(self, *arguments: Any, **options: Any) -> Any:
        """Run the command line. Output and errors go through a stream that escapes control characters."""
        with escaped_output():
            return super().main(*arguments, **options)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in RENAMED:
            raise click.UsageError(f"`vesper {cmd_name}` was renamed; use `vesper {RENAMED[cmd_name]}`", ctx)
        if cmd_name not in COMMANDS:
            if ctx.resilient_parsing:
                return None
            raise click.UsageError(f"no command `{cmd_name}`; {_command_hint(cmd_name)}", ctx)
        if ctx.resilient_parsing and cmd_name in NODES_ONLY and not _completes_option():
            return _nodes_only(cmd_name)
        if cmd_name in _VERBATIM:
            keep_lines()
        package = f"{cmd_name}_" if keyword.iskeyword(cmd_name) else cmd_name
        command = getattr(importlib.import_module(f"vesper.cli.{package}.command"), "command", None)
        assert isinstance(command, click.Command)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the commands and options that begin like this. Imports no command."""
        from click.shell_completion import CompletionItem

        found = [CompletionItem(name, help=text) for name, text in COMMANDS.items() if name.startswith(incomplete)]
        return found + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def _completes_option() -> bool:
    """Return whether a shell completes an option or, possibly, its value."""
    return any(word.startswith("-") for word in os.environ.get("COMP_WORDS", "-").split()[-2:])


def _nodes_only(name: str) -> click.Command:
    from vesper.cli.options import NODE, nodes_option

    nodes = click.Argument(["nodes"], nargs=-1, type=NODE)
    return nodes_option(click.Command(name, params=[nodes], context_settings={"ignore_unknown_options": True}))


def _command_hint(word: str) -> str:
    from vesper.language.diagnostics.suggest import did_you_mean

    if word in _SYNONYMS:
        return f"did you mean `vesper {_SYNONYMS[word]}`?"
    longer = [name for name in COMMANDS if name.startswith(word)]
    return did_you_mean(longer[0] if len(longer) == 1 else word, COMMANDS) or "`vesper --help` lists the commands"


# The stream decides about colours, so click must not.
@click.group(
    cls=LazyCommands,
    invoke_without_command=True,
    no_args_is_help=True,
    subcommand_metavar="COMMAND [ARGS]...",
    context_settings={"help_option_names": ["-h", "--help"], "color": True},
)
@click.option("--version", "shows_version", is_flag=True, help="Show the version and exit.")
@click.option("-v", "--verbose", is_flag=True, help="With --version: what a bug report needs.")
@click.pass_context
def vesper(context: click.Context, shows_version: bool, verbose: bool) -> None:
    """Run business logic, written once, on two engines that are verified to agree.

    NODE is a path, an id such as payment_decision_v1, or a name without its version.

    Exit codes: 0 success, 1 an error in a node or its inputs (or the output cannot be written), 2 usage, 3 a bug in
    Vesper.
    """
    if shows_version:
        click.echo(f"vesper, version {__version__}")
        if verbose:
            from vesper.cli.doctor.installation import facts

            for name, text in facts().items():
                click.echo(f"{name:<12}  {text}")
        context.exit()
    if verbose or context.invoked_subcommand is None:
        raise click.UsageError("name a command" if not verbose else "-v is for --version: `vesper --version -v`")


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
    finally:
        _drop_unread_output()


def _drop_unread_output() -> None:
    """Discard buffered output after the reader of a pipe has gone.

    Otherwise Python would flush it at exit, and report an error.
    """
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        _drop(1)


def _end_without_output(error: OSError) -> None:
    """End the command after standard output failed: the disk is full, or the terminal is gone.

    An error of a named file has a file name and does not arrive here. Click itself ends a closed pipe (`| head`).
    """
    with contextlib.suppress(OSError):
        print(f"error: cannot write the output: {error.strerror or type(error).__name__}", file=sys.stderr, flush=True)
    # Python flushes its buffers at exit and would report the error again.
    _drop(1, 2)
    sys.exit(WRONG_INPUT)


def _drop(*streams: int) -> None:
    devnull = os.open(os.devnull, os.O_WRONLY)
    for stream in streams:
        os.dup2(devnull, stream)
