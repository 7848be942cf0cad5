"""Failed tests as text, for `vesper test` and the pytest plugin. Contains no Python traceback."""

from __future__ import annotations

from vesper.cli.engine_names import engine_label
from vesper.cli.output.branches import refusal_notes
from vesper.cli.output.outcomes import one_line, span_of
from vesper.compiler import Compiled
from vesper.engines.outcome import ContractBroken, DeclaredError, Outcome, Returned
from vesper.language.check.cases import Case
from vesper.language.check.properties import RUNS
from vesper.language.diagnostics.diagnostic import Label
from vesper.language.diagnostics.excerpt import display_width, render_excerpt
from vesper.values.model import Value, printable, same, show
from vesper.verify.claims import ClaimResult
from vesper.verify.differential.verifier import steps_by_expression
from vesper.verify.node_tests import PROMISES, CaseAnswer, CaseResult, FailedExample, PropertyFailure, PropertyReport

_OUR_BUG = "this is a bug in Vesper, not in your node; please report it"


def case_failure_text(compiled: Compiled, result: CaseResult) -> str:
    """Render a failed case: its place, its expected and its actual outcome, by engine."""
    case = result.case
    lines = [
        f"error: case `{printable(case.name)}` of {compiled.node.node_id} is not met",
        f"  --> {compiled.source.path}:{case.line}",
    ]
    several = len(result.answers) > 1
    for answer in result.answers:
        if answer.is_met and not result.disagree:
            continue
        lines += ([f"  on engine {engine_label(answer.engine)}:"] if several else []) + _comparison_lines(
            compiled, case, answer
        )
    if result.disagree:
        lines.append(f"  = the engines differ: {_OUR_BUG} (`vesper verify {compiled.node.node_id}` shows where)")
    elif result.is_our_bug:
        lines.append(f"  = {_OUR_BUG}")
    return "\n".join(lines)


def _comparison_lines(compiled: Compiled, case: Case, answer: CaseAnswer) -> list[str]:
    outcome = answer.outcome
    if outcome is None:
        return [f"  expected  {expected_text(compiled, case)}", f"  actual    {answer.problem}"]
    fields = _fields(case, outcome)
    if fields is None:
        return [f"  expected  {expected_text(compiled, case)}", f"  actual    {one_line(compiled.node, outcome)}"]
    rows = [("", "expected", "actual", "")]
    for name, (wanted, found) in fields.items():
        rows.append((name, _plain(wanted), _plain(found), "" if same(wanted, found) else "<- differs"))
    widths = [max(display_width(row[column]) for row in rows) for column in range(3)]
    padded = ([_pad(text, width) for text, width in zip(row, (*widths, 0), strict=True)] for row in rows)
    return ["  " + "  ".join(row).rstrip() for row in padded]


def _fields(case: Case, outcome: Outcome) -> dict[str, tuple[Value, Value]] | None:
    """Return expected and actual values by name; None if the node ended in another way."""
    wanted: dict[str, Value]
    if case.expect and isinstance(outcome, Returned):
        wanted = case.expect
    elif case.error and isinstance(outcome, DeclaredError):
        wanted = case.error
    else:
        return None
    return {name: (value, outcome.value[name]) for name, value in wanted.items()}


def expected_text(compiled: Compiled, case: Case) -> str:
    """Render the expected outcome of a case on one line."""
    node = compiled.node
    if case.breaks is not None:
        phase, index = case.breaks
        return f"{phase} {index + 1} broken: `{dict(node.phases())[phase][index].text}`"
    if case.fails is not None:
        return f"failed {case.fails}"
    if case.error is not None:
        return one_line(node, DeclaredError(case.error))
    return one_line(node, Returned(case.expect)) if case.expect else "returned, with any outputs"


def property_failure_text(compiled: Compiled, failure: PropertyFailure, seed: int) -> str:
    """Render a broken property: the clause, the smallest input, and a case to paste."""
    node = compiled.node
    inputs = ", ".join(f"{name}={show(value)}" for name, value in failure.inputs.items()) or "none"
    footer = [f"input:  {inputs}  (smallest; found after {failure.tried} inputs, seed {seed})"]
    if failure.kind in PROMISES:
        clause = dict(node.phases())[failure.kind][failure.index]
        outcome = next(iter(failure.outcomes.values()))
        assert isinstance(outcome, ContractBroken)
        values = ", ".join(f"{name} = {show(value)}" for name, value in outcome.values.items())
        footer += [f"values: {values}"] if values else []
        footer.append("help: fix the steps, or restrict the inputs with a precondition")
        label = Label(span_of(compiled.source, clause.holds.place), "false for this input")
        what = "a postcondition" if failure.kind == "postcondition" else "an invariant"
        text = render_excerpt(
            compiled.source, f"error: {what} of {node.node_id} breaks: `{clause.text}`", label, (), footer
        )
    else:
        title = "an engine is at fault on" if failure.kind == "engine_fault" else "the engines disagree on"
        answers = [f"{engine_label(name)}:  {one_line(node, outcome)}" for name, outcome in failure.outcomes.items()]
        lines = [f"error: {title} {node.node_id}", f"  --> {compiled.source.path}:1", *footer, *answers, _OUR_BUG]
        text = "\n".join([*lines[:2], *(f"  = {line}" for line in lines[2:])])
    if failure.case is None:
        return text
    return f"{text}\nto keep it, paste under `testing: test_cases:`\n\n{failure.case}"


def claim_failure_text(compiled: Compiled, result: ClaimResult, seed: int) -> str:
    """Render a property that does not hold: the claim, and the smallest runs that break it."""
    claim, failure = result.claim, result.failure
    lines = [
        f"error: property `{printable(claim.name)}` of {compiled.node.node_id} does not hold: `{claim.text}`",
        f"  --> {compiled.source.path}:{claim.line}",
    ]
    if failure is None:
        lines[0] = f"error: property `{printable(claim.name)}` of {compiled.node.node_id} was never tried"
        help_ = "add cases whose inputs meet it, or weaken `where`"
        return "\n".join([*lines, f"  = none of {result.drawn} drawn inputs return and meet its `where`: {help_}"])
    names = ("inputs",) if len(failure.runs) == 1 else RUNS
    for name, run, outcome in zip(names, failure.runs, failure.outcomes, strict=True):
        inputs = ", ".join(f"{each}={show(value)}" for each, value in run.items())
        lines.append(f"  {name}: {inputs or 'none'}  ->  {one_line(compiled.node, outcome)}")
    if failure.code is not None:
        lines.append(f"  = the claim itself fails with {failure.code}")
    lines.append(
        f"  = the smallest found, after {failure.tried} inputs, seed {seed}, on {engine_label(failure.engine)}"
    )
    return "\n".join(lines)


def notes(compiled: Compiled, report: PropertyReport) -> list[str]:
    """Return notes about the property test that are not failures."""
    found = []
    node = compiled.node
    if report.is_starved:
        found.append(
            f"only {report.examples} of {report.drawn} drawn inputs ({report.distinct} different ones) meet the "
            f"constraints and preconditions; {report.wanted} were wanted: add cases"
        )
    found += refusal_notes(compiled, report.refused, report.drawn)
    for (phase, index), count in report.broken_by_answers.items():
        clause = dict(node.phases())[phase][index]
        found.append(
            f"{phase} `{clause.text}` (line {clause.holds.place.line}) broke in {count} of {report.examples} examples, "
            "with answers of effects generated from their types only"
        )
    failed = {kind: count for kind, count in report.outcomes.items() if kind.startswith("failed ")}
    if failed and node.is_pure():
        listed = ", ".join(f"{kind.removeprefix('failed ')} {count}" for kind, count in sorted(failed.items()))
        found.append(f"{sum(failed.values())} of {report.examples} examples failed: {listed}")
    if report.first_failed is not None:
        found[-1] += f"; {_failed_text(compiled, report.first_failed)}"
    if report.given_up:
        found.append(f"{report.given_up} executions were stopped: they requested more than 1,000 effects")
    return found


def _failed_text(compiled: Compiled, failed: FailedExample) -> str:
    node, at = compiled.node, failed.at
    assert at is not None, "a failure without a place refuses its inputs, which are no example"
    step = steps_by_expression(node).get(at)
    where = f"line {node.expressions()[at].place.line}" + ("" if step is None else f", step `{step}`")
    inputs = ", ".join(f"{name}={_cut(show(value))}" for name, value in failed.inputs.items())
    return f"the first is {failed.code} in {where}, shortest such input: {inputs or 'none'}"


def _plain(value: object) -> str:
    return _cut(printable(value) if isinstance(value, str) else show(value))


def _cut(shown: str) -> str:
    return shown if len(shown) <= 100 else shown[:97] + "..."


def _pad(text: str, width: int) -> str:
    return text + " " * (width - display_width(text))
