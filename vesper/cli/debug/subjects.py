"""The execution that a session debugs: of a recorded run, of a case, of given inputs, or a live one."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from vesper.cli.debug.options import DebugOptions
from vesper.cli.debug.recorded_run import find_trace
from vesper.cli.exits import WRONG_INPUT
from vesper.cli.load_node import compile_or_exit, find_node
from vesper.cli.run.inputs import print_refusal, read_inputs, read_start
from vesper.compiler import Compiled
from vesper.debug.responses import Live, ManualAnswers
from vesper.debug.session import Session
from vesper.debug.start import (
    NoSuchCase,
    Subject,
    case_of,
    subject_for_real,
    subject_of_case,
    subject_of_trace,
    unfit_inputs,
)
from vesper.debug.view import outcome_rows
from vesper.engines.engine import EngineUnavailable
from vesper.engines.registry import REFERENCE
from vesper.language.check.cases import Case
from vesper.language.diagnostics.suggest import did_you_mean


def choose_subject(options: DebugOptions) -> Subject:
    """Return the execution that the command line selects, with the answers of `--answer` and `--fail`."""
    if options.trace_id is not None:
        subject = subject_of_trace(find_trace(options.trace_id, options.config, options.reveal), options.engines)
    else:
        assert options.node is not None
        compiled = compile_or_exit(find_node(options.node, options.root))
        subject = _live_subject(compiled, options) if options.live else _case_subject(compiled, options)
    _add_answers(subject.manual, options)
    return subject


def _case_subject(compiled: Compiled, options: DebugOptions) -> Subject:
    """Build a subject from a case, from given inputs, or from the first case with some inputs replaced."""
    needs_case = options.case_name is not None or options.json_file is None
    case = _find_case(compiled, options.case_name) if needs_case else None
    start = None if options.start is None else read_start(options.start)
    return subject_of_case(compiled, options.engines, case, _read_inputs(compiled, options), start)


def _live_subject(compiled: Compiled, options: DebugOptions) -> Subject:
    """Build a subject whose effects are performed. The first case contributes nothing."""
    given = _read_inputs(compiled, options)
    case = None if options.case_name is None else _find_case(compiled, options.case_name)
    subject = subject_for_real(compiled, options.engines, case, given, read_start(options.start))
    if unfit_inputs(subject):
        code = print_refusal(compiled, [REFERENCE], dict(subject.inputs), {}, "text")
        click.echo("--live does not use the first case: give --input, --json or --case", err=True)
        sys.exit(code)
    return subject


def _find_case(compiled: Compiled, wanted: str | None) -> Case | None:
    try:
        return case_of(compiled, wanted)
    except NoSuchCase as problem:
        raise click.UsageError(str(problem)) from None


def _read_inputs(compiled: Compiled, options: DebugOptions) -> dict[str, object]:
    given, unread = read_inputs(compiled, options.pairs, options.json_file)
    if unread:
        problems = ", ".join(f"{each.path}: {each.kind.value}" for found in unread.values() for each in found)
        click.echo(f"the inputs do not fit {compiled.node.node_id}: {problems}", err=True)
        sys.exit(WRONG_INPUT)
    unknown = [name for name in given if name not in {each.name for each in compiled.node.inputs}]
    if unknown:
        hint = did_you_mean(unknown[0], [each.name for each in compiled.node.inputs])
        raise click.UsageError(f"{compiled.node.node_id} has no input `{unknown[0]}`" + (f"; {hint}" if hint else ""))
    return given


def _add_answers(said: ManualAnswers, options: DebugOptions) -> None:
    for option, texts, add in (("--answer", options.answers, said.set_answer), ("--fail", options.failures, said.fail)):
        for text in texts:
            step, equals, value = text.partition("=")
            if not equals:
                raise click.UsageError(f"{option} {text}: write STEP=…")
            try:
                add(step, value)
            except ValueError as problem:
                raise click.UsageError(f"{option} {text}: {problem}") from None


@contextmanager
def open_live_world(subject: Subject, config: Path | None) -> Iterator[Live]:
    """Open the Host that performs the effects; abandon an unfinished execution at the end, in the journal too."""
    from vesper.cli.run.hosted import host_or_exit
    from vesper.effects.settings import ConfigError

    with host_or_exit(config) as host:
        try:
            world = Live(host, subject.compiled, subject.engines[0].name, subject.inputs, subject.now, subject.manual)
        except ConfigError as problem:
            raise click.ClickException(str(problem)) from None
        try:
            yield world
        finally:
            ran = world.finish(None)
            if ran is not None:
                click.echo(f"execution {ran.execution}: {outcome_rows(ran.outcome)['']}")


def open_session(subject: Subject, world: Live | None) -> Session:
    try:
        return subject.session(world)
    except EngineUnavailable as problem:
        raise click.UsageError(str(problem)) from None
