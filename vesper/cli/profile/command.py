"""`vesper profile`."""

from __future__ import annotations

import sys
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
from vesper.debug.case_trace import NoAnswer, trace_case, trace_inputs
from vesper.debug.view import outcome_rows
from vesper.engines.direct_engine import DirectEngine, TieredEngine
from vesper.engines.outcome import Returned
from vesper.engines.registry import PAIR, REFERENCE
from vesper.engines.tiering import ALWAYS
from vesper.repository.locate import NodeNotFound, locate
from vesper.trace.model import Trace
from vesper.trace.profile import Profile, profile, time_text
from vesper.values.inputs import accept_inputs
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
            try:
                if pairs or json_file is not None or not compiled.cases:
                    found = _trace_inputs(compiled, pairs, json_file, start)
                else:
                    found = _trace_case(compiled, case_name, start)
            except NoAnswer as problem:
                click.echo(f"error: {problem}: give a --case or a --trace that answers it", err=True)
                sys.exit(WRONG_INPUT)
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
    return trace_inputs(compiled, inputs, read_start(start))


def _trace_case(compiled: Compiled, wanted: str | None, start: str | None) -> Trace:
    case = compiled.cases[0] if wanted is None else find_case(compiled, wanted)
    return trace_case(compiled, case, None if start is None else read_start(start))


def _lines(result: Profile) -> list[str]:
    engines = list(result.total)
    rows = [
        ["step", *engines],
        *([each.name, *(time_text(each.nanoseconds[e]) for e in engines)] for each in result.steps),
    ]
    rows.append(["total", *(time_text(result.total[each]) for each in engines)])
    lines = [f"{result.node_id}, one execution", "", *table(rows)]
    if result.operations:
        rows = [["operation", "uses", *engines]]
        for each in result.operations:
            rows.append([each.name, str(each.stands), *(time_text(each.nanoseconds[one]) for one in engines)])
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
