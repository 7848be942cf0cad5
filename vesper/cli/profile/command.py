"""`vesper profile`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TextIO

import click

from vesper.cli.exits import WRONG_INPUT
from vesper.cli.journal.open_journal import is_of_node, settings_of, style_option
from vesper.cli.journal.text import document, table
from vesper.cli.load_node import compile_or_exit, find_node, nodes_option
from vesper.cli.run.command import print_refusal, read_inputs, read_start
from vesper.cli.traces.open_traces import clean_trace_errors, traces_of
from vesper.compiler import Compiled, compile_file
from vesper.debug.responses import AnswerBook, CaseAnswers, Defaults, plain_path
from vesper.debug.responses import Unanswered as NoAnswer
from vesper.debug.start import start_of
from vesper.debug.view import outcome_rows
from vesper.engines.direct_engine import DirectEngine, TieredEngine
from vesper.engines.engine import Request
from vesper.engines.outcome import Returned
from vesper.engines.registry import PAIR, REFERENCE
from vesper.engines.tiering import ALWAYS
from vesper.language.diagnostics.suggest import did_you_mean
from vesper.repository.locate import NodeNotFound, locate
from vesper.trace.model import Exchange, Trace
from vesper.trace.profile import Profile, profile
from vesper.trace.programs import program_of
from vesper.trace.recorder import Unanswered, exchange_of, record_trace
from vesper.values.inputs import accept_inputs
from vesper.values.model import plain


@click.command("profile")
@click.argument("node")
@nodes_option
@click.option("--input", "-i", "pairs", multiple=True, metavar="NAME=VALUE", help="An input; give one for each.")
@click.option("--json", "json_file", type=click.File(encoding="utf-8"), help="All inputs as a JSON object; - is stdin.")
@click.option(
    "--now", "start", metavar="TIMESTAMP", help="When the execution starts; as the case says, or now, unless said."
)
@click.option(
    "--case", "case_name", metavar="NAME", help="One of the node's cases; the first, where no input is given."
)
@click.option("--trace", "trace_id", metavar="TRACE", help="Inputs and answers of a trace.")
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The vesper.toml, for --trace; the nearest upwards, unless said.",
)
@style_option
def command(
    node: str,
    root: Path,
    pairs: tuple[str, ...],
    json_file: TextIO | None,
    start: str | None,
    case_name: str | None,
    trace_id: str | None,
    config: Path | None,
    style: str,
) -> None:
    """Say where a node spends its time: by step and by operation, on each engine.

    Requests are answered from a case or a trace: nothing is performed, and the time that effects take is not counted.
    A step is timed by cutting the node off after it; differences of some ten nanoseconds are noise.
    """
    if (bool(pairs or json_file) + (case_name is not None) + (trace_id is not None)) > 1:
        raise click.UsageError("say what to run once: with --input or --json, with --case, or with --trace")
    if trace_id is not None and start is not None:
        raise click.UsageError("a trace has a start of its own: leave --now away")
    with clean_trace_errors():
        if trace_id is not None:
            with traces_of(settings_of(config, None)) as traces:
                found = traces.find(trace_id)
            _check_node(node, root, found)
        else:
            compiled = compile_or_exit(find_node(node, root))
            if pairs or json_file is not None or not compiled.cases:
                found = _of_inputs(compiled, pairs, json_file, start)
            else:
                found = _of_case(compiled, case_name, start)
        told = profile(found, {**PAIR, TieredEngine.name: DirectEngine(ALWAYS)})
    if not isinstance(found.outcome, Returned):
        ended = "it has not ended" if found.outcome is None else outcome_rows(found.outcome)[""]
        click.echo(f"note: this execution does not return, and what it does not reach takes no time: {ended}", err=True)
    click.echo(document(_json(told)) if style == "json" else "\n".join(_lines(told)))


def _check_node(wanted: str, root: Path, trace: Trace) -> None:
    """That the trace is one of NODE. What is timed is the node that the trace carries: its file may be another by now,
    or gone."""
    if is_of_node(trace.node_id, wanted):
        try:
            compiled, _ = compile_file(locate(trace.node_id, root))
        except NodeNotFound:
            compiled = None
    else:
        compiled = compile_or_exit(find_node(wanted, root))
        if compiled.node.node_id != trace.node_id:
            of = f"trace {trace.trace_id} is of {trace.node_id}"
            raise click.ClickException(f"{of}, and not of {compiled.node.node_id}: `vesper profile {trace.node_id} …`")
    if compiled is None or compiled.semantic_hash != trace.semantic_hash:
        click.echo(f"note: {trace.node_id} is timed as it was when the trace was made", err=True)


def _of_inputs(compiled: Compiled, pairs: tuple[str, ...], json_file: TextIO | None, start: str | None) -> Trace:
    inputs, unread = read_inputs(compiled, pairs, json_file)
    declared = [(each.name, each.type, each.default) for each in compiled.node.inputs]
    if unread or accept_inputs(declared, inputs)[1]:  # how fast a node refuses its inputs is not what is asked
        sys.exit(print_refusal(compiled, [REFERENCE], inputs, unread, "text"))
    now = read_start(start)
    return _traced(compiled, inputs, now, AnswerBook(Defaults(now)))


def _of_case(compiled: Compiled, wanted: str | None, start: str | None) -> Trace:
    case = next((each for each in compiled.cases if wanted in (None, each.name)), None)
    if case is None:
        assert wanted is not None
        names = [each.name for each in compiled.cases]
        hint = did_you_mean(wanted, names) or f"the cases are {', '.join(names)}"
        raise click.UsageError(f"{compiled.node.node_id} has no case `{wanted}`; {hint}")
    now = start_of(case) if start is None else read_start(start)
    inputs = {name: plain(value) for name, value in case.inputs.items()}
    return _traced(compiled, inputs, now, AnswerBook(CaseAnswers(case), Defaults(now)))


def _traced(compiled: Compiled, inputs: Mapping[str, object], now: datetime, book: AnswerBook) -> Trace:
    """The execution to be timed, answered as the debugger answers it."""

    def respond(request: Request, _: object) -> Exchange:
        try:
            known = book.answer(request)
        except NoAnswer:
            raise Unanswered from None
        return exchange_of(request, known.result, known.failure)

    found = record_trace(compiled, program_of(compiled, "python"), "python", "profile", inputs, now, respond)
    if found.outcome is None:
        told = plain_path(found.waits_at or "")
        click.echo(f"`{told}` asks, and nobody answers: give a --case or a --trace that has its answer", err=True)
        sys.exit(WRONG_INPUT)
    return found


def _time(nanoseconds: float) -> str:
    if nanoseconds >= 1_000_000:
        return f"{nanoseconds / 1_000_000:.2f} ms"
    return f"{nanoseconds / 1_000:.2f} µs" if nanoseconds >= 1_000 else f"{nanoseconds:.0f} ns"


def _lines(told: Profile) -> list[str]:
    engines = list(told.total)
    rows = [["step", *engines], *([each.name, *(_time(each.nanoseconds[e]) for e in engines)] for each in told.steps)]
    rows.append(["all of it", *(_time(told.total[each]) for each in engines)])
    lines = [f"{told.node_id}, one execution", "", *table(rows)]
    if told.operations:
        rows = [["operation", "stands", *engines]]
        for each in told.operations:
            rows.append([each.name, str(each.stands), *(_time(each.nanoseconds[one]) for one in engines)])
        lines += ["", *table(rows)]
    return lines


def _json(told: Profile) -> dict[str, object]:
    def rounded(times: object) -> dict[str, float]:
        assert isinstance(times, dict)
        return {name: round(value, 1) for name, value in times.items()}

    return {
        "node": told.node_id,
        "total_ns": rounded(told.total),
        "steps": [{"step": each.name, "ns": rounded(each.nanoseconds)} for each in told.steps],
        "operations": [
            {"operation": each.name, "stands": each.stands, "ns": rounded(each.nanoseconds)} for each in told.operations
        ],
    }
