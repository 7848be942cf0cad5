"""The terminal of `vesper debug`: colours, commands that are typed or scripted, and their output."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import TextIO

import click

from vesper.cli.output.terminal import style
from vesper.debug.columns import Style
from vesper.debug.commands import PROMPT, Commands

_COLOURS = {"differs": ("bold", "red"), "title": ("bold",), "dim": ("dim",)}


def terminal_style() -> Style:
    """Return colours for a terminal that has them. NO_COLOR removes the colours and keeps the marks."""
    return lambda text, kind: style(text, *_COLOURS[kind])


def read_script(file: TextIO) -> list[str]:
    """Read all of `--commands` before the session starts, so that an unreadable file executes nothing."""
    try:
        return file.read().splitlines()
    except UnicodeDecodeError:
        raise click.UsageError(f"--commands {file.name}: the file is not UTF-8 text") from None


def run_commands(commands: Commands, script: list[str] | None, execute: tuple[str, ...]) -> None:
    """Run commands of the options, of the script, or of the terminal. Commands that no terminal echoes are printed."""
    if script is None and not execute and sys.stdin is None:
        script = []  # cron and services have no standard input
    is_typed = script is None and not execute and sys.stdin.isatty()
    for line in _typed_lines() if is_typed else _scripted_lines(script, execute):
        if not is_typed:
            click.echo(f"\n{PROMPT}{line}\n" if line.strip() else "")
        print_lines(commands.run(line))
        if commands.is_over:
            return
        if is_typed:
            click.echo()


def _scripted_lines(script: list[str] | None, execute: tuple[str, ...]) -> Iterator[str]:
    yield from execute
    if script is not None or not execute:
        for line in sys.stdin if script is None else script:
            if not line.startswith("#"):
                yield line.rstrip("\n")


def _typed_lines() -> Iterator[str]:
    with suppress(ImportError):
        import readline  # noqa: F401  # line editing and history, where the system has it
    click.echo()
    while True:
        try:
            yield input(PROMPT)
        except EOFError:
            click.echo()
            return
        except KeyboardInterrupt:
            click.echo("\n`quit` ends the session")


def print_lines(lines: list[str]) -> None:
    for line in lines:
        click.echo(line)
