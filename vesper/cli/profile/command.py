"""`vesper profile`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TextIO

import click

from vesper.cli.exits import WRONG_INPUT
from vesper.cli.journal.open_journal import read_journal_settings
from vesper.cli.journal.text import document, table
from vesper.cli.load_node import compile_or_exit, find_case, find_node
from vesper.cli.options import NODE, config_option, input_options, nodes_option, now_option, style_option
from vesper.cli.run.inputs import print_refusal, read_inputs, read_start
from vesper.cli.traces.open_traces import report_trace_errors, traces_of
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
from vesper.repository.locate import NodeNotFound, locate
from vesper.trace.model import Exchange, Trace
from vesper.trace.profile import Profile, profile
from vesper.trace.programs import program_of
from vesper.trace.recorder import Unanswered, exchange_of, record_trace
from vesper.values.inputs import accept_inputs
from vesper.values.model import plain
from vesper.values.node_id import is_of_node


@click.command("profile")
@click.argument("node", type=NODE)
@nodes_option
@input_options
@now_option("the start of the case, or now,")
@click.option("--case", "case_name", metavar="NAME", help="Case of the node; the first one by default.")
@click.option("--trace", "trace_id", metavar="TRACE", help="Inputs and answers of a trace.")
@config_option("for --trace")
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
    """Show where a node spends its time, by step and by operation, on each engine.

    Requests are answered by a case or a trace: effects are neither performed nor timed. A step is timed by cutting the
    node off after it; differences of some ten nanoseconds are noise.
    """
    if (bool(pairs or json_file) + (case_name is not None) + (trace_id is not None)) > 1:
        raise click.UsageError("give only one of --input or --json, --case, and --trace")
    if trace_id is not None and start is not None:
        raise click.UsageError("a trace has its own start: omit --now")
    with report_trace_errors():
        if trace_id is not None:
            with traces_of(read_journal_settings(config, None)) as traces:
                found = traces.find(trace_id)
            _check_node(node, root, found)
        else:
            compiled = compile_or_exit(find_node(node, root))
            if pairs or json_file is not None or not compiled.cases:
                found = _trace_inputs(compiled, pairs, json_file, start)
            else:
                found = _trace_case(compiled, case_name, start)
        result = profile(found, {**PAIR, TieredEngine.name: DirectEngine(ALWAYS)})
    if not isinstance(found.outcome, Returned):
        ended = "it has not ended" if found.outcome is None else outcome_rows(found.outcome)[""]
        click.echo(
            f"note: this execution does not return; steps that it does not reach are not timed: {ended}", err=True
        )
    click.echo(document(_json(result)) if style == "json" else "\n".join(_lines(result)))


def _check_node(wanted: str, root: Path, trace: Trace) -> None:
    """Check that the trace is of NODE. The definition in the trace is timed; the file may have changed since."""
    if is_of_node(trace.node_id, wanted):
        try:
            compiled, _ = compile_file(locate(trace.node_id, root))
        except NodeNotFound:
            compiled = None
    else:
        compiled = compile_or_exit(find_node(wanted, root))
        if compiled.node.node_id != trace.node_id:
            owner = f"trace {trace.trace_id} is of {trace.node_id}"
            raise click.ClickException(f"{owner}, not of {compiled.node.node_id}: `vesper profile {trace.node_id} …`")
    if compiled is None or compiled.semantic_hash != trace.semantic_hash:
        click.echo(
            f"note: {trace.node_id} is timed as recorded in the trace: its file has changed or is missing", err=True
        )


def _trace_inputs(compiled: Compiled, pairs: tuple[str, ...], json_file: TextIO | None, start: str | None) -> Trace:
    inputs, unread = read_inputs(compiled, pairs, json_file)
    declared = compiled.node.declared_inputs
    if unread or accept_inputs(declared, inputs)[1]:  # refusing inputs is not worth timing
        sys.exit(print_refusal(compiled, [REFERENCE], inputs, unread, "text"))
    now = read_start(start)
    return _trace(compiled, inputs, now, AnswerBook(Defaults(now)))


def _trace_case(compiled: Compiled, wanted: str | None, start: str | None) -> Trace:
    case = compiled.cases[0] if wanted is None else find_case(compiled, wanted)
    now = start_of(case) if start is None else read_start(start)
    inputs = {name: plain(value) for name, value in case.inputs.items()}
    return _trace(compiled, inputs, now, AnswerBook(CaseAnswers(case), Defaults(now)))


def _trace(compiled: Compiled, inputs: Mapping[str, object], now: datetime, book: AnswerBook) -> Trace:
    """Record the execution to time, with the answers of the debugger."""

    def respond(request: Request, _: object) -> Exchange:
        try:
            known = book.answer(request)
        except NoAnswer:
            raise Unanswered from None
        return exchange_of(request, known.result, known.failure)

    found = record_trace(compiled, program_of(compiled, "python"), "python", "profile", inputs, now, respond)
    if found.outcome is None:
        step = plain_path(found.waits_at or "")
        click.echo(f"error: `{step}` has no answer: give a --case or a --trace that answers it", err=True)
        sys.exit(WRONG_INPUT)
    return found


def _time_text(nanoseconds: float) -> str:
    if nanoseconds >= 1_000_000:
        return f"{nanoseconds / 1_000_000:.2f} ms"
    return f"{nanoseconds / 1_000:.2f} µs" if nanoseconds >= 1_000 else f"{nanoseconds:.0f} ns"


def _lines(result: Profile) -> list[str]:
    engines = list(result.total)
    rows = [
        ["step", *engines],
        *([each.name, *(_time_text(each.nanoseconds[e]) for e in engines)] for each in result.steps),
    ]
    rows.append(["total", *(_time_text(result.total[each]) for each in engines)])
    lines = [f"{result.node_id}, one execution", "", *table(rows)]
    if result.operations:
        rows = [["operation", "uses", *engines]]
        for each in result.operations:
            rows.append([each.name, str(each.stands), *(_time_text(each.nanoseconds[one]) for one in engines)])
        lines += ["", *table(rows)]
    return lines


def _json(result: Profile) -> dict[str, object]:
    def round_times(times: object) -> dict[str, float]:
        assert isinstance(times, dict)
        return {name: round(value, 1) for name, value in times.items()}

    return {
        "node": result.node_id,
        "total_ns": round_times(result.total),
        "steps": [{"step": each.name, "ns": round_times(each.nanoseconds)} for each in result.steps],
        "operations": [
            {"operation": each.name, "stands": each.stands, "ns": round_times(each.nanoseconds)}
            for each in result.operations
        ],
    }
