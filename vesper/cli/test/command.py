"""`vesper test`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from vesper.cli.engine_names import EngineChoice, engine_label
from vesper.cli.exits import FINE, OUR_BUG, WRONG_INPUT
from vesper.cli.load_node import find_nodes, print_diagnostics
from vesper.cli.options import NODE, format_option, min_coverage_option, nodes_option
from vesper.cli.output.branches import below_text, refused_json, uncovered_json, uncovered_lines
from vesper.cli.output.outcomes import json_text, json_value, outcome_json
from vesper.cli.output.progress import Progress
from vesper.cli.output.terminal import style as style_text
from vesper.cli.test.failure_text import (
    case_failure_text,
    claim_failure_text,
    expected_text,
    notes,
    property_failure_text,
)
from vesper.compiler import Compiled, compile_file
from vesper.compiler.reading import shown_path
from vesper.engines.engine import Engine, EngineUnavailable
from vesper.engines.registry import ENGINES, NAMES, PAIR, REFERENCE
from vesper.language.check.cases import Case
from vesper.verify.claims import ClaimResult
from vesper.verify.node_tests import CaseResult, NodeResult, NodeTester, PropertyFailure, PropertyReport

PROPERTIES = "properties"
"""Name of the property test of a node, beside its cases."""


@dataclass(slots=True)
class _Results:
    """Results of one `vesper test`."""

    engines: tuple[str, ...]
    seed: int
    results: list[NodeResult] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    """Files with errors."""
    without_cases: list[str] = field(default_factory=list)
    min_coverage: float | None = None
    """Percentage of branches that every node must cover."""
    is_cut: bool = False
    """Whether `--fail-fast` ended the run early."""


@click.command("test")
@click.argument("paths", type=NODE, nargs=-1)
@nodes_option
@click.option(
    "--engine",
    type=EngineChoice(NAMES, "both"),
    default=REFERENCE,
    show_default=True,
    help="Engine of the tests; `both` also requires that the engines agree.",
)
@click.option("-k", "wanted", metavar="NAME", help="Only tests whose `node_id::case` contains NAME.")
@click.option(
    "--max-examples",
    type=click.IntRange(0, 10**7),
    default=100,
    show_default=True,
    help="Generated inputs of each node; 0 runs only cases.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the generated inputs.")
@click.option("--fail-fast", is_flag=True, help="Stop at the first test that fails.")
@click.option("--require-cases", is_flag=True, help="Fail nodes without cases.")
@min_coverage_option
@format_option("text", "json", "junit")
def command(
    paths: tuple[str, ...],
    root: Path,
    engine: str,
    wanted: str | None,
    max_examples: int,
    seed: int,
    fail_fast: bool,
    require_cases: bool,
    min_coverage: float | None,
    style: str,
) -> None:
    """Run the cases of nodes, and check contracts on generated inputs.

    PATHS are files, folders or node names; by default every node under --nodes is tested. A node fails if a
    postcondition or an invariant breaks on inputs that meet its constraints and preconditions; the smallest such input
    is printed as a case to paste. Branches that nothing covered are named. See docs/how-to/test-nodes.md, also for
    plain pytest.

    Exit codes: 0 all passed, 1 a test failed, a node has errors or misses --min-coverage, 2 usage, 3 a bug in Vesper
    (an engine is at fault, or two engines disagree).
    """
    files = find_nodes(paths, root)
    if not files:
        raise click.UsageError("no .vsp files found: name files or folders, or the folder of nodes with --nodes")
    names = list(PAIR) if engine == "both" else [engine]
    run = _Results(tuple(names), seed, min_coverage=min_coverage)
    with Progress("testing", len(files)) as progress:
        for result in _run_tests(run, files, wanted, max_examples, fail_fast, progress):
            run.results.append(result)
            if style == "text":
                _print_node(result, run)
    if wanted is not None and not run.results and not run.refused:
        raise click.UsageError(f"-k {wanted}: no name of a node or case contains it")
    if style == "text":
        click.echo(_summary(run, require_cases))
    else:
        click.echo(
            json_text(_json(run, require_cases), is_ascii=False) if style == "json" else _junit(run, require_cases)
        )
    sys.exit(_exit_code(run, require_cases))


def _run_tests(
    run: _Results, files: list[Path], wanted: str | None, max_examples: int, fail_fast: bool, progress: Progress
) -> Iterator[NodeResult]:
    engines: dict[str, Engine] = {name: ENGINES[name] for name in run.engines}
    for path in progress.over(files):
        compiled, bag = compile_file(path)
        if bag.sorted():
            print_diagnostics(bag.source, bag.sorted(), "full")
        if compiled is None:
            run.refused.append(shown_path(path.as_posix()))
            if fail_fast:
                run.is_cut = True
                return
            continue
        cases = [case for case in compiled.cases if is_wanted(wanted, full_name(compiled, case.name))]
        has_properties = max_examples > 0 and is_wanted(wanted, full_name(compiled, PROPERTIES))
        if not compiled.cases and is_wanted(wanted, compiled.node.node_id):
            run.without_cases.append(compiled.node.node_id)
        if wanted is not None and not cases and not has_properties:
            continue
        result = _test_node(compiled, engines, cases, max_examples if has_properties else 0, run.seed, fail_fast)
        yield result
        if fail_fast and not result.passed:
            run.is_cut = path != files[-1]
            return


def _test_node(
    compiled: Compiled, engines: dict[str, Engine], cases: list[Case], max_examples: int, seed: int, fail_fast: bool
) -> NodeResult:
    tester = NodeTester(compiled, engines)
    result = NodeResult(compiled)
    try:
        for case in cases:
            result.cases.append(tester.run_case(case))
            if fail_fast and not result.passed:
                return result
        if max_examples:
            result.properties = tester.run_properties(max_examples, seed)
            result.claims = tester.run_claims(max_examples, seed)
    except EngineUnavailable as problem:
        raise click.UsageError(f"engine {', '.join(engines)}: {problem}") from None
    return result


def full_name(compiled: Compiled, name: str) -> str:
    return f"{compiled.node.node_id}::{name}"


def is_wanted(wanted: str | None, name: str) -> bool:
    return wanted is None or wanted.casefold() in name.casefold()


def _coverage_message(run: _Results, result: NodeResult) -> str | None:
    """Return the message about a node that misses `--min-coverage`."""
    if run.min_coverage is None or result.coverage_percent >= run.min_coverage:
        return None
    return below_text(result.compiled.node.node_id, result.coverage_percent, run.min_coverage)


def _exit_code(run: _Results, require_cases: bool) -> int:
    if any(result.is_our_bug for result in run.results):
        return OUR_BUG
    is_wrong = (
        run.refused
        or (require_cases and run.without_cases)
        or any(_coverage_message(run, each) for each in run.results)
    )
    return WRONG_INPUT if is_wrong or not all(result.passed for result in run.results) else FINE


# -- text -----------------------------------------------------------------------------------------


def _print_node(result: NodeResult, run: _Results) -> None:
    compiled, seed = result.compiled, run.seed
    for failed in result.failed_cases:
        click.echo(_colour(case_failure_text(compiled, failed)) + "\n", err=True)
    report = result.properties
    for failure in () if report is None else report.failures:
        click.echo(_colour(property_failure_text(compiled, failure, seed)) + "\n", err=True)
    for claim in result.claims:
        if not claim.passed:
            click.echo(_colour(claim_failure_text(compiled, claim, seed)) + "\n", err=True)
    verdict = style_text("ok    ", "green") if result.passed else style_text("FAILED", "red", "bold")
    parts = [f"{sum(each.passed for each in result.cases)}/{len(result.cases)} cases"]
    if report is not None:
        parts.append(f"{report.examples} examples")
    if result.claims:
        parts.append(f"{sum(each.passed for each in result.claims)}/{len(result.claims)} properties")
    if result.branches_total:
        parts.append(f"{len(result.branches)} of {result.branches_total} branches")
    click.echo(f"{verdict}  {compiled.node.node_id}  {', '.join(parts)}")
    for line in uncovered_lines(compiled.source.path, result.uncovered):
        click.echo(f"        {line}")
    for note in () if report is None else notes(compiled, report):
        click.echo(f"        note: {note}")
    below = _coverage_message(run, result)
    if below is not None:
        click.echo(click.style(below, fg="red", bold=True), err=True)


def _colour(text: str) -> str:
    headline, newline, rest = text.partition("\n")
    return style_text(headline, "red", "bold") + newline + rest


def _summary(run: _Results, require_cases: bool) -> str:
    cases = [each for result in run.results for each in result.cases]
    examples = sum(result.properties.examples for result in run.results if result.properties is not None)
    failed = sum(not result.passed for result in run.results)
    parts = [f"{_count(len(run.results), 'node')} tested", f"{failed} failed"]
    parts.append(f"{sum(each.passed for each in cases)} of {_count(len(cases), 'case')} passed")
    parts.append(f"{_count(examples, 'example')}")
    lines = [f"{', '.join(parts)}; engine {' = '.join(map(engine_label, run.engines))}, seed {run.seed}"]
    if run.refused:
        lines.append(f"error: {_count(len(run.refused), 'file')} with errors not tested: {', '.join(run.refused)}")
    if run.without_cases:
        kind, more = ("error", "") if require_cases else ("note", " (--require-cases makes this an error)")
        lines.append(f"{kind}: without cases: {', '.join(run.without_cases)}{more}")
    if run.is_cut:
        lines.append("note: --fail-fast stopped here; the rest was not tested")
    return "\n".join(lines)


def _count(count: int, one: str) -> str:
    return f"{count} {one if count == 1 else one + 's'}"


# -- JSON -----------------------------------------------------------------------------------------


def _json(run: _Results, require_cases: bool) -> dict[str, Any]:
    return {
        "passed": _exit_code(run, require_cases) == FINE,
        "engines": list(run.engines),
        "seed": run.seed,
        "refused": run.refused,
        "without_cases": run.without_cases,
        "stopped_early": run.is_cut,
        "nodes": [_node_json(result) for result in run.results],
    }


def _node_json(result: NodeResult) -> dict[str, Any]:
    compiled, report = result.compiled, result.properties
    return {
        "node": compiled.node.node_id,
        "path": compiled.source.path,
        "semantic_hash": compiled.semantic_hash,
        "passed": result.passed,
        "branches_covered": len(result.branches),
        "branches_total": result.branches_total,
        "coverage_percent": round(result.coverage_percent, 1),
        "uncovered_branches": uncovered_json(result.uncovered),
        "cases": [_case_json(compiled, each) for each in result.cases],
        "properties": None if report is None else _properties_json(compiled, report),
        "claims": [_claim_json(compiled, each) for each in result.claims],
    }


def _case_json(compiled: Compiled, result: CaseResult) -> dict[str, Any]:
    found: dict[str, Any] = {"name": result.case.name, "line": result.case.line, "passed": result.passed}
    if result.passed:
        return found
    answers = {
        answer.engine: {"problem": answer.problem} if answer.outcome is None else outcome_json(node, answer.outcome)
        for node in (compiled.node,)
        for answer in result.answers
    }
    return found | {"expected": expected_text(compiled, result.case), "actual": answers, "disagree": result.disagree}


def _properties_json(compiled: Compiled, report: PropertyReport) -> dict[str, Any]:
    return {
        "passed": report.passed,
        "examples": report.examples,
        "drawn": report.drawn,
        "distinct_examples": report.distinct,
        "refused_by": refused_json(compiled, report.refused),
        "outcomes": report.outcomes,
        "notes": notes(compiled, report),
        "failures": [_failure_json(compiled, each) for each in report.failures],
    }


def _claim_json(compiled: Compiled, result: ClaimResult) -> dict[str, Any]:
    claim, failure = result.claim, result.failure
    types = {each.name: each.type for each in compiled.node.inputs}
    found: dict[str, Any] = {"name": claim.name, "line": claim.line, "passed": result.passed}
    found |= {"examples": result.examples, "drawn": result.drawn}
    if failure is None:
        return found
    return found | {
        "code": failure.code,
        "engine": failure.engine,
        "runs": [
            {"inputs": {name: json_value(each, types.get(name)) for name, each in run.items()},
             "outcome": outcome_json(compiled.node, outcome)}
            for run, outcome in zip(failure.runs, failure.outcomes, strict=True)
        ],
    }  # fmt: skip


def _failure_json(compiled: Compiled, failure: PropertyFailure) -> dict[str, Any]:
    node = compiled.node
    types = {each.name: each.type for each in node.inputs}
    found: dict[str, Any] = {"kind": failure.kind}
    if not failure.is_our_bug:
        clause = dict(node.phases())[failure.kind][failure.index]
        found |= {"clause": clause.text, "line": clause.holds.place.line}
    return found | {
        "inputs": {name: json_value(value, types.get(name)) for name, value in failure.inputs.items()},
        "outcomes": {name: outcome_json(node, outcome) for name, outcome in failure.outcomes.items()},
        "case": failure.case,
    }


# -- JUnit ----------------------------------------------------------------------------------------


def _junit(run: _Results, require_cases: bool) -> str:
    """Return JUnit XML: a suite for each node, with its cases and its properties as tests."""
    from xml.etree import ElementTree as ET

    suites = ET.Element("testsuites", name="vesper test")
    for result in run.results:
        tests: list[tuple[str, str | None]] = [
            (each.case.name, None if each.passed else case_failure_text(result.compiled, each)) for each in result.cases
        ]
        if (report := result.properties) is not None:
            texts = [property_failure_text(result.compiled, each, run.seed) for each in report.failures]
            tests.append((PROPERTIES, "\n\n".join(texts) or None))
        tests += [
            (each.claim.name, None if each.passed else claim_failure_text(result.compiled, each, run.seed))
            for each in result.claims
        ]
        if require_cases and not result.compiled.cases:
            tests.append(("cases", "error: the node has no cases"))
        uncovered = uncovered_lines(result.compiled.source.path, result.uncovered, len(result.uncovered))
        if run.min_coverage is not None:
            below = _coverage_message(run, result)
            tests.append(("coverage", None if below is None else "\n".join([below, *uncovered])))
        suite = _add_suite(suites, result.compiled.node.node_id, result.compiled.source.path, tests)
        _add_coverage(suite, len(result.branches), result.branches_total, uncovered)
    for path in run.refused:
        _add_suite(suites, Path(path).stem, path, [("check", f"error: the node has errors: `vesper check {path}`")])
    ET.indent(suites)
    text: str = ET.tostring(suites, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}'


def _add_coverage(suite: Any, covered: int, total: int, uncovered: list[str]) -> None:
    """Add the branches of a node to its suite; JUnit has properties first and output last."""
    from xml.etree import ElementTree as ET

    properties = ET.Element("properties")
    for name, value in (("branches_covered", covered), ("branches_total", total)):
        ET.SubElement(properties, "property", name=name, value=str(value))
    suite.insert(0, properties)
    if uncovered:
        ET.SubElement(suite, "system-out").text = _xml_text("\n".join(uncovered))


def _add_suite(suites: Any, name: str, path: str, tests: list[tuple[str, str | None]]) -> Any:
    from xml.etree import ElementTree as ET

    failures = sum(failure is not None for _, failure in tests)
    suite = ET.SubElement(suites, "testsuite", name=name, file=_xml_text(path), tests=str(len(tests)))
    suite.set("failures", str(failures))
    for title, failure in tests:
        case = ET.SubElement(suite, "testcase", classname=name, name=_xml_text(title), file=_xml_text(path))
        if failure is not None:
            message = _xml_text(failure.partition("\n")[0])
            ET.SubElement(case, "failure", message=message).text = _xml_text(failure)
    return suite


def _xml_text(text: str) -> str:
    """Escape control characters and surrogates, which XML cannot represent."""
    return "".join(c if c in "\n\t" or c.isprintable() else c.encode("unicode_escape").decode() for c in text)
