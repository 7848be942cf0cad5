"""`vesper verify`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from vesper.check.cases import Case
from vesper.cli.exits import FINE, OUR_BUG, WRONG_INPUT
from vesper.cli.loading import find_nodes, nodes_option, print_diagnostics
from vesper.cli.show import json_text, json_value, one_line, outcome_json, span_of
from vesper.compiler import Compiled, compile_file
from vesper.compiler.reading import shown_path
from vesper.diagnostics.diagnostic import Label
from vesper.diagnostics.excerpt import render_excerpt
from vesper.diagnostics.source import Span
from vesper.engines.outcome import Returned
from vesper.engines.registry import ENGINES
from vesper.ir.nodes import Raise, Require, Return
from vesper.ir.statements import all_statements
from vesper.spec.values import show
from vesper.verify.differential import BrokenPromise, Difference, Report, Verifier
from vesper.verify.programs_run import ProgramFailure, ProgramsReport, verify_programs
from vesper.verify.regressions import save_program, save_regression


@click.command("verify")
@click.argument("paths", nargs=-1)
@nodes_option
@click.option(
    "--max-examples", type=click.IntRange(1, 10**9), default=10_000, show_default=True, help="Inputs for each node."
)
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed draws the same inputs.")
@click.option(
    "--programs", type=click.IntRange(0, 10**6), default=0, help="Also draw and compare this many random programs."
)
@click.option("--format", "style", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option(
    "--save-to",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("tests/conformance/regressions"),
    show_default=True,
    help="Where a disagreement is kept as a conformance case.",
)
def command(
    paths: tuple[str, ...], root: Path, max_examples: int, seed: int, programs: int, style: str, save_to: Path
) -> None:
    """Show that the engines agree on nodes.

    Runs each node's own test cases, then inputs drawn from its types, constraints and literals, on every engine, and
    compares outcomes and intermediate values. A disagreement is shrunk to the smallest input and kept as a case. A
    postcondition that breaks is a defect of the node. A node with errors is reported, and the others are verified.
    PATHS are files, folders or node names. Random programs test Vesper itself: see docs/how-to/verify-nodes.md.
    """
    files = find_nodes(paths, root)
    if not files:
        raise click.UsageError("there are no .vsp files here")
    compiled_nodes, refused = _compiled(files)
    reports: list[tuple[Compiled, Report, list[Path]]] = []
    for compiled in compiled_nodes:
        report = _verify(compiled, max_examples, seed, show_progress=style == "text")
        saved = [save_regression(save_to, compiled, difference) for difference in report.differences]
        reports.append((compiled, report, saved))
        if style == "text":
            _print_text(compiled, report, saved)
    drawn = _verify_programs(programs, seed, save_to, style) if programs else None
    if style == "json":
        found = _json([(compiled, report) for compiled, report, _ in reports], refused)
        if drawn is not None:
            found |= {"programs": _programs_json(drawn), "passed": found["passed"] and drawn.passed}
        click.echo(json_text(found, is_ascii=False))
    disagree = any(report.differences for _, report, _ in reports) or (drawn is not None and not drawn.passed)
    passed = not refused and all(report.passed for _, report, _ in reports) and (drawn is None or drawn.passed)
    if refused and style == "text":
        click.echo(f"{len(refused)} of {len(files)} nodes have errors and were not verified: {', '.join(refused)}")
    sys.exit(FINE if passed else OUR_BUG if disagree else WRONG_INPUT)


def _compiled(files: list[Path]) -> tuple[list[Compiled], list[str]]:
    """The nodes to verify, and the files with errors, after saying which ones."""
    compiled_nodes: list[Compiled] = []
    refused: list[str] = []
    for path in files:
        compiled, bag = compile_file(path)
        print_diagnostics(bag.source, bag.sorted(), "full")
        if compiled is None:
            refused.append(shown_path(path.as_posix()))
        else:
            compiled_nodes.append(compiled)
    return compiled_nodes, refused


def _verify(compiled: Compiled, max_examples: int, seed: int, show_progress: bool) -> Report:
    verifier = Verifier(compiled, ENGINES, seed)
    if not show_progress or not sys.stderr.isatty():
        return verifier.run(max_examples)
    with click.progressbar(length=max_examples, label=compiled.node.node_id, file=sys.stderr) as bar:
        return verifier.run(max_examples, lambda _: bar.update(1))


def _verify_programs(count: int, seed: int, save_to: Path, style: str) -> ProgramsReport:
    if style == "text" and sys.stderr.isatty():
        with click.progressbar(length=count, label="random programs", file=sys.stderr) as bar:
            report = verify_programs(ENGINES, count, seed, progress=lambda _: bar.update(1))
    else:
        report = verify_programs(ENGINES, count, seed)
    for failure in report.failures:
        saved = save_program(save_to, failure.text)
        case = None
        if failure.compiled is not None and failure.difference is not None:
            case = save_regression(save_to, failure.compiled, failure.difference)
        if style == "text":
            click.echo(failure_text(failure, saved, case) + "\n", err=True)
    if style == "text":
        outcomes = ", ".join(f"{times} {kind.replace('_', ' ')}" for kind, times in sorted(report.outcomes.items()))
        click.echo(
            f"random programs: {' = '.join(report.engines)}: {'agree' if report.passed else 'FAILED'}; "
            f"{report.programs} programs, {report.executions} inputs compared ({outcomes}), "
            f"{report.not_comparable} not comparable, {len(report.failures)} failures; seed {seed}"
        )
    return report


# -- text -----------------------------------------------------------------------------------------


def failure_text(failure: ProgramFailure, saved: Path | None, case: Path | None) -> str:
    """A random program that showed a bug, for a person."""
    if failure.compiled is not None and failure.difference is not None:
        shown = difference_text(failure.compiled, failure.difference, case)
    else:
        what = "the checker refuses" if failure.kind == "refused" else "Vesper fails on"
        shown = f"error: {what} a random program that is drawn to be right (seed {failure.seed})\n{failure.detail}"
    note = "" if saved is None else f"\nnote: the program is saved as {saved.as_posix()}"
    return f"{shown.rstrip()}{note}"


def _print_text(compiled: Compiled, report: Report, saved: list[Path]) -> None:
    for failure in report.case_failures:
        wanted = _wanted(compiled, failure.case)
        answer = failure.problem or ("" if failure.outcome is None else one_line(compiled.node, failure.outcome))
        click.echo(f"case `{failure.case.name}`\n  wants  {wanted}\n  {failure.engine} gave  {answer}", err=True)
    for difference, path in zip(report.differences, saved, strict=True):
        click.echo(difference_text(compiled, difference, path) + "\n", err=True)
    for broken in report.broken:
        click.echo(broken_text(compiled, broken) + "\n", err=True)
    verdict = "agree" if report.passed else "FAILED"
    outcomes = ", ".join(f"{count} {kind.replace('_', ' ')}" for kind, count in sorted(report.outcomes.items()))
    click.echo(
        f"{report.node_id}: {' = '.join(report.engines)}: {verdict}; "
        f"{report.executions} inputs compared ({outcomes}), {report.not_comparable} not comparable, "
        f"{len(report.differences)} disagreements, {report.cases} cases; "
        f"{len(report.guards)} of {report.guards_total} branches on {len(report.paths)} paths; seed {report.seed}"
    )


def broken_text(compiled: Compiled, broken: BrokenPromise) -> str:
    """A postcondition that breaks, for a person: the clause, the smallest input, what the names in it were."""
    clause = compiled.node.postconditions[broken.index]
    inputs = ", ".join(f"{name}={show(value)}" for name, value in broken.inputs.items())
    values = ", ".join(f"{name} = {show(value)}" for name, value in broken.outcome.values.items())
    footer = [
        f"input:  {inputs}  (smallest; found after {broken.tried} inputs)",
        f"values: {values}",
        "help: repair the steps, or say in the preconditions who may call the node",
    ]
    title = f"error: a postcondition of `{compiled.node.node_id}` breaks: `{clause.text}`"
    span = span_of(compiled.source, clause.holds.place)
    return render_excerpt(compiled.source, title, Label(span, "false for this input"), (), footer)


def _wanted(compiled: Compiled, case: Case) -> str:
    if case.breaks is None:
        return one_line(compiled.node, Returned(case.expect or {}))
    phase, index = case.breaks
    return f"{phase} {index + 1} broken: `{dict(compiled.node.phases())[phase][index].text}`"


def difference_text(compiled: Compiled, difference: Difference, saved: Path | None) -> str:
    """A disagreement for a person: the place, the smallest input, what each engine said."""
    node, source = compiled.node, compiled.source
    if difference.place is None:
        span, label = Span(0, len(source.line_text(1))), "every observed value agrees; the outcomes do not"
    else:
        place = node.expressions()[difference.place].place
        what = f"step `{difference.step}`" if difference.step else "this clause"
        span, label = span_of(source, place), f"{what}: the first value that differs"
    inputs = ", ".join(f"{name}={show(value)}" for name, value in difference.inputs.items())
    footer = [f"input:  {inputs}  (smallest; found after {difference.tried} inputs)"]
    for name, done in difference.answers.items():
        value = next((v for index, v in reversed(done.marks) if index == difference.place), None)
        here = f"{show(value)} here, then " if value is not None else ""
        footer.append(f"{name + ':':<7} {here}{one_line(node, done.outcome)}")
    if saved is not None:
        footer.append(f"note: saved as {saved.as_posix()}")
    title = f"error: the engines disagree on `{node.node_id}`"
    if difference.step is not None:
        title += f" at step `{difference.step}`"
        named = (each.name for each in all_statements(node.body) if not isinstance(each, Return | Raise | Require))
        steps = list(dict.fromkeys(name.lstrip("_") for name in named))
        before = steps.index(difference.step)
        footer.append(
            f"note: the {before} step{'s' if before != 1 else ''} before it agree"
            if before
            else "note: it is the first step"
        )
    return render_excerpt(source, title, Label(span, label), (), footer)


# -- JSON -----------------------------------------------------------------------------------------


def _json(reports: list[tuple[Compiled, Report]], refused: list[str]) -> dict[str, Any]:
    return {
        "executions": sum(report.executions for _, report in reports),
        "disagreements": sum(len(report.differences) for _, report in reports),
        "not_comparable": sum(report.not_comparable for _, report in reports),
        "engines": list(ENGINES),
        "passed": not refused and all(report.passed for _, report in reports),
        "refused": refused,
        "nodes": [_node_json(compiled, report) for compiled, report in reports],
    }


def _node_json(compiled: Compiled, report: Report) -> dict[str, Any]:
    return {
        "node": report.node_id,
        "semantic_hash": report.semantic_hash,
        "seed": report.seed,
        "executions": report.executions,
        "not_comparable": report.not_comparable,
        "cases": report.cases,
        "failed_cases": [{"case": f.case.name, "engine": f.engine} for f in report.case_failures],
        "broken_postconditions": [
            {
                "clause": compiled.node.postconditions[each.index].text,
                "line": compiled.node.postconditions[each.index].holds.place.line,
                "inputs": {name: json_value(value) for name, value in each.inputs.items()},
                "values": {name: json_value(value) for name, value in each.outcome.values.items()},
            }
            for each in report.broken
        ],
        "branches_covered": len(report.guards),
        "branches_total": report.guards_total,
        "paths_covered": len(report.paths),
        "disagreements": [_difference_json(compiled, difference) for difference in report.differences],
    }


def _programs_json(report: ProgramsReport) -> dict[str, Any]:
    return {
        "programs": report.programs,
        "seed": report.seed,
        "executions": report.executions,
        "not_comparable": report.not_comparable,
        "outcomes": report.outcomes,
        "passed": report.passed,
        "failures": [_failure_json(failure) for failure in report.failures],
    }


def _failure_json(failure: ProgramFailure) -> dict[str, Any]:
    found: dict[str, Any] = {"seed": failure.seed, "kind": failure.kind, "program": failure.text}
    if failure.compiled is not None and failure.difference is not None:
        return found | {"disagreement": _difference_json(failure.compiled, failure.difference)}
    return found | {"detail": failure.detail}


def _difference_json(compiled: Compiled, difference: Difference) -> dict[str, Any]:
    return {
        "inputs": {name: json_value(value) for name, value in difference.inputs.items()},
        "step": difference.step,
        "line": None if difference.place is None else compiled.node.expressions()[difference.place].place.line,
        "answers": {name: outcome_json(compiled.node, done.outcome) for name, done in difference.answers.items()},
    }
