"""Results of `vesper verify` as text."""

from __future__ import annotations

from pathlib import Path

from vesper.cli.output.outcomes import one_line, span_of
from vesper.compiler import Compiled
from vesper.engines.outcome import Returned
from vesper.language.check.cases import Case
from vesper.language.diagnostics.diagnostic import Label
from vesper.language.diagnostics.excerpt import render_excerpt
from vesper.language.diagnostics.source import Span
from vesper.language.ir.nodes import Raise, Require, Return
from vesper.language.ir.statements import all_statements
from vesper.values.model import show
from vesper.verify.differential.verifier import BrokenPostcondition, CaseFailure, Difference, Report
from vesper.verify.programs.campaign import ProgramFailure, ProgramsReport
from vesper.verify.workers.crashes import Crash, crash_lines

_FAILURES = {
    "refused": "the checker refuses",
    "raised": "Vesper fails on",
    "crashed": "an engine crashes on",
}


def failure_text(failure: ProgramFailure, saved: Path | None, case: Path | None) -> str:
    """Render a random program that revealed a bug."""
    if failure.compiled is not None and failure.difference is not None:
        shown = difference_text(failure.compiled, failure.difference, case)
    else:
        what = _FAILURES[failure.kind]
        shown = f"error: {what} a random program that is valid by construction (seed {failure.seed})\n{failure.detail}"
    note = "" if saved is None else f"\nnote: the program is saved as {saved.as_posix()}"
    return f"{shown.rstrip()}{note}"


def case_text(compiled: Compiled, failure: CaseFailure) -> str:
    """Render a failed case."""
    wanted = _expected_text(compiled, failure.case)
    answer = failure.problem or ("" if failure.outcome is None else one_line(compiled.node, failure.outcome))
    return f"case `{failure.case.name}`\n  wants  {wanted}\n  {failure.engine} gave  {answer}"


def summary_line(report: Report, crashes: int = 0, is_given_up: bool = False) -> str:
    """Summarise one node on one line."""
    codes = ", ".join(f"{code} {count}" for code, count in sorted(report.failures.items()))
    shown = {kind: kind.replace("_", " ") for kind in report.outcomes} | {"failed": f"failed ({codes})"}
    outcomes = ", ".join(f"{count} {shown[kind]}" for kind, count in sorted(report.outcomes.items()))
    coverage = report.coverage
    compared = " = ".join([*report.engines, *([report.against] if report.against else [])])
    refused = f", {report.refused} refused by the node" if report.against else ""
    verdict = _crash_verdict(crashes, is_given_up) if crashes else _verdict(report)
    return (
        f"{report.node_id}: {compared}: {verdict}; "
        f"{report.executions} inputs compared ({outcomes}){refused}, {report.not_comparable} not comparable, "
        f"{len(report.differences)} disagreements, {report.cases} cases; "
        f"{coverage.branches_covered} of {coverage.branches_total} branches on {len(coverage.paths)} paths, "
        f"{len(coverage.operations)} of {coverage.operations_total} operations; seed {report.seed}"
    )


def _crash_verdict(crashes: int, is_given_up: bool) -> str:
    counted = f"{crashes} crash{'es' if crashes > 1 else ''}"
    return f"FAILED: given up after {counted}" if is_given_up else f"FAILED: {counted}"


def _verdict(report: Report) -> str:
    if report.passed:
        return "agree"
    if report.is_function_unused:
        return "FAILED: the node refused all inputs, so nothing was compared; raise --max-examples, or add cases"
    if report.too_many_lost and not (report.differences or report.case_failures or report.broken):
        return "FAILED: more than 1 in 100 inputs could not be compared"
    return "FAILED"


def total_line(reports: list[Report], wrong: int) -> str:
    """Summarise several nodes on one line, of which `wrong` failed."""
    covered = sum(report.coverage.branches_covered for report in reports)
    total = sum(report.coverage.branches_total for report in reports)
    operations = len({op for report in reports for op in report.coverage.operations})
    return (
        f"{len(reports)} nodes, {wrong} failed: {sum(report.executions for report in reports)} inputs compared; "
        f"{covered} of {total} branches, {operations} different operations"
    )


def programs_line(report: ProgramsReport) -> str:
    """Summarise all random programs on one line."""
    outcomes = ", ".join(f"{times} {kind.replace('_', ' ')}" for kind, times in sorted(report.outcomes.items()))
    return (
        f"random programs: {' = '.join(report.engines)}: {'agree' if report.passed else 'FAILED'}; "
        f"{report.programs} programs, {report.executions} inputs compared ({outcomes}), "
        f"{report.not_comparable} not comparable, {len(report.failures)} failures; seed {report.seed}"
    )


def crash_text(compiled: Compiled, crash: Crash, seed: int, saved: Path | None) -> str:
    """Render a crash: the engine, how it ended, and the input as far as it was reduced."""
    source, place = compiled.source, crash.place
    if crash.stage == "case":
        place = f"on case `{compiled.cases[-crash.number - 1].name}`"
    footer = crash_lines(crash, seed)
    if saved is not None:
        footer.append(f"note: saved as {saved.as_posix()}")
    title = f"error: {crash.subject} {crash.ending.text} on `{compiled.node.node_id}`"
    return render_excerpt(source, title, Label(Span(0, len(source.line_text(1))), place), (), footer)


def broken_text(compiled: Compiled, broken: BrokenPostcondition) -> str:
    """Render a broken postcondition: the clause, the smallest input, and the values of its names."""
    clause = compiled.node.postconditions[broken.index]
    inputs = ", ".join(f"{name}={show(value)}" for name, value in broken.inputs.items())
    values = ", ".join(f"{name} = {show(value)}" for name, value in broken.outcome.values.items())
    footer = [
        f"input:  {inputs}  (smallest; found after {broken.tried} inputs)",
        f"values: {values}",
        "help: fix the steps, or restrict the inputs with a precondition",
    ]
    title = f"error: a postcondition of `{compiled.node.node_id}` breaks: `{clause.text}`"
    span = span_of(compiled.source, clause.holds.place)
    return render_excerpt(compiled.source, title, Label(span, "false for this input"), (), footer)


def _expected_text(compiled: Compiled, case: Case) -> str:
    if case.breaks is None:
        return one_line(compiled.node, Returned(case.expect or {}))
    phase, index = case.breaks
    return f"{phase} {index + 1} broken: `{dict(compiled.node.phases())[phase][index].text}`"


def difference_text(compiled: Compiled, difference: Difference, saved: Path | None) -> str:
    """Render a disagreement: the place, the smallest input, and the outcome on each engine."""
    node, source = compiled.node, compiled.source
    if difference.place is None:
        label = "all observed values agree; the outcomes differ"
        if difference.with_function or difference.way is not None:
            label = "the answers differ"
        span = Span(0, len(source.line_text(1)))
    else:
        place = node.expressions()[difference.place].place
        what = f"step `{difference.step}`" if difference.step else "this clause"
        span, label = span_of(source, place), f"{what}: the first value that differs"
    inputs = ", ".join(f"{name}={show(value)}" for name, value in difference.inputs.items())
    footer = [f"input:  {inputs}  (smallest; found after {difference.tried} inputs)"]
    for name, done in difference.answers.items():
        value = next((v for index, v in reversed(done.marks) if index == difference.place), None)
        here = f"{show(value)} here, then " if value is not None else ""
        answers = " answers" if difference.way is not None else ":"
        footer.append(f"{name + answers:<7} {here}{one_line(node, done.outcome)}")
    if difference.responses:
        footer.append(f"effects answered: {_responses(difference)}")
    if saved is not None:
        footer.append(f"note: saved as {saved.as_posix()}")
    who = f"the engines and {list(difference.answers)[-1]}" if difference.with_function else "the engines"
    title = f"error: {who} disagree on `{node.node_id}`"
    if difference.way is not None:
        title = f"error: the engines agree on `{node.node_id}`, and the way `{difference.way_name}` does not"
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


def _responses(difference: Difference) -> str:
    shown = (
        f"{path}={show(found.result)}" if found.failure is None else f"{path} failed {found.failure}"
        for path, found in difference.responses
    )
    return ", ".join(shown)
