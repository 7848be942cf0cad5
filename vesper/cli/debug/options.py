"""Options of `vesper debug`, and which of them exclude each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import click

from vesper.cli.engine_names import EngineChoice
from vesper.cli.options import (
    NODE,
    ReadFile,
    apply_options,
    config_option,
    input_options,
    nodes_option,
    now_option,
    reveal_option,
)
from vesper.engines.engine import Engine
from vesper.engines.registry import PAIR, REFERENCE

debug_options = apply_options(
    click.argument("node", type=NODE, required=False),
    nodes_option,
    click.option("--comparative", is_flag=True, help="Run both engines, side by side."),
    click.option("--engine", type=EngineChoice(("interp",)), help=f"Run one engine; {REFERENCE} by default."),
    input_options,
    now_option("the start of the case"),
    click.option("--case", "case_name", metavar="NAME", help="Inputs and answers of a case; the first one by default."),
    click.option("--trace", "trace_id", metavar="TRACE", help="Inputs and answers of a recorded run."),
    reveal_option,
    click.option("--answer", "answers", multiple=True, metavar="STEP=JSON", help="Answer a step with this value."),
    click.option("--fail", "failures", multiple=True, metavar="STEP=CODE", help="Let a step fail with this code."),
    click.option("--live", is_flag=True, help="Perform each effect for real when you step past it."),
    config_option("for --live, --trace and running services"),
    click.option("--break-on", "break_on", multiple=True, metavar="WHERE", help="Breakpoint; repeat for more."),
    click.option("--commands", "command_file", type=ReadFile(), help="File of commands, one a line."),
    click.option("--execute", "-x", "execute", multiple=True, metavar="COMMAND", help="Command; repeat for more."),
    click.option("--width", type=click.IntRange(20, 1000), help="Columns; by default those of the terminal."),
    click.option("--dap", is_flag=True, help="Serve the Debug Adapter Protocol on stdin and stdout."),
    click.option("--port", type=click.IntRange(0, 65535), help="Serve it on this port of 127.0.0.1 instead."),
    click.option("--list", "is_listed", is_flag=True, help="Without NODE: list breakpoints of running services."),
    click.option("--clear", is_flag=True, help="Without NODE: remove all breakpoints of running services."),
)
_OPTIONS_OF_SESSION = {
    "comparative": "--comparative", "engine": "--engine", "pairs": "--input", "json_file": "--json", "start": "--now",
    "case_name": "--case", "reveal": "--reveal", "answers": "--answer", "failures": "--fail",
    "command_file": "--commands", "execute": "--execute", "width": "--width",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class DebugOptions:
    """The command line of `vesper debug`."""

    node: str | None
    root: Path
    comparative: bool
    engine: str | None
    pairs: tuple[str, ...]
    json_file: TextIO | None
    start: str | None
    case_name: str | None
    trace_id: str | None
    reveal: bool
    answers: tuple[str, ...]
    failures: tuple[str, ...]
    live: bool
    config: Path | None
    break_on: tuple[str, ...]
    command_file: TextIO | None
    execute: tuple[str, ...]
    width: int | None
    dap: bool
    port: int | None
    is_listed: bool
    clear: bool

    @property
    def serves_editor(self) -> bool:
        return self.dap or self.port is not None

    @property
    def watches_services(self) -> bool:
        return self.node is None and self.trace_id is None

    @property
    def engines(self) -> list[Engine]:
        return [PAIR[name] for name in (PAIR if self.comparative else [self.engine or REFERENCE])]


def check_combination(options: DebugOptions) -> None:
    """Refuse options without effect in the chosen mode, and options that exclude each other."""
    if options.serves_editor:
        others = {"trace_id": "--trace", "break_on": "--break-on", "is_listed": "--list", "clear": "--clear"}
        _refuse(options, _OPTIONS_OF_SESSION | others, "the launch request of the editor has these settings")
    elif options.watches_services:
        if not (options.break_on or options.is_listed or options.clear):
            raise click.UsageError("name a NODE to debug, or give --break-on for the nodes of running services")
        _refuse(options, _OPTIONS_OF_SESSION | {"live": "--live"}, "running services do not stop at breakpoints")
    elif options.is_listed or options.clear:
        raise click.UsageError("--list and --clear apply to running services: omit NODE and --trace")
    else:
        _check_session(options)


def _check_session(options: DebugOptions) -> None:
    if options.comparative and options.engine is not None:
        raise click.UsageError("--comparative runs both engines: omit --engine")
    if options.live and (options.answers or options.failures):
        raise click.UsageError(
            "--live performs effects, and the journal records their answers: omit --answer and --fail"
        )
    if options.trace_id is None:
        if options.reveal:
            raise click.UsageError("--reveal applies to a recorded run: it requires --trace")
        return
    given = (options.node, options.start, options.case_name)
    if options.pairs or options.json_file or options.live or any(each is not None for each in given):
        raise click.UsageError("--trace has its own node, inputs, start and answers: omit the others")


def _refuse(options: DebugOptions, names: Mapping[str, str], why: str) -> None:
    given = [option for name, option in names.items() if getattr(options, name) not in (None, False, ())]
    if given:
        raise click.UsageError(f"{why}: omit {', '.join(given)}")
