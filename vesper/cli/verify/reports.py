"""Results of `vesper verify` as JSON, JUnit and SARIF 2.1.0."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree as ET

from vesper import __version__
from vesper.cli.output.branches import below_text, refused_json, uncovered_json, uncovered_lines
from vesper.cli.output.outcomes import json_value, outcome_json
from vesper.cli.verify.relations import relation_failure_text, relations_json
from vesper.cli.verify.text import broken_text, case_text, crash_text, difference_text, failure_text
from vesper.compiler import Compiled
from vesper.verify.differential.verifier import Difference, Report
from vesper.verify.programs.campaign import ProgramFailure, ProgramsReport
from vesper.verify.relations.report import RelationsReport
from vesper.verify.workers.crashes import Crash


@dataclass(frozen=True, slots=True)
class VerifiedNode:
    """A verified node."""

    compiled: Compiled
    report: Report
    saved: list[Path]
    """Files of its disagreements, in order."""
    crashes: list[tuple[Crash, Path | None]] = field(default_factory=list)
    """Crashes, with the files of their inputs."""
    is_given_up: bool = False

    @property
    def passed(self) -> bool:
        return self.report.passed and not self.crashes


@dataclass(slots=True)
class VerifyResults:
    """Results of one command."""

    engines: list[str]
    seed: int
    against: str | None
    nodes: list[VerifiedNode]
    refused: list[str]
    """Files with errors."""
    drawn: ProgramsReport | None
    elapsed_seconds: float
    min_coverage: float | None = None
    """Percentage of branches that every node must cover."""
    is_interrupted: bool = False
    relations: RelationsReport | None = None

    def coverage_message(self, each: VerifiedNode) -> str | None:
        """Return the message about a node that misses the minimum."""
        percent = each.report.coverage.percent
        if self.min_coverage is None or percent >= self.min_coverage:
            return None
        return below_text(each.report.node_id, percent, self.min_coverage)

    @property
    def engines_disagree(self) -> bool:
        differences = (difference for each in self.nodes for difference in each.report.differences)
        if any(not each.with_function for each in differences) or not all(each.passed for each in self._campaigns):
            return True
        # A crash of the user's function is none of ours.
        return any(crash.engine != each.report.against for each in self.nodes for crash, _ in each.crashes)

    @property
    def passed(self) -> bool:
        of_nodes = not self.refused and all(each.passed and self.coverage_message(each) is None for each in self.nodes)
        return of_nodes and all(each.passed for each in self._campaigns) and not self.is_interrupted

    @property
    def _campaigns(self) -> list[ProgramsReport | RelationsReport]:
        return [each for each in (self.drawn, self.relations) if each is not None]


# -- JSON -----------------------------------------------------------------------------------------


def verify_json(found: VerifyResults) -> dict[str, Any]:
    reports = [each.report for each in found.nodes]
    drawn = found.drawn
    disagreeing = [] if drawn is None else [each for each in drawn.failures if each.difference is not None]
    crashing = [] if drawn is None else [each for each in drawn.failures if each.kind == "crashed"]
    return {
        "executions": sum(each.executions for each in reports) + (0 if drawn is None else drawn.executions),
        "programs": 0 if drawn is None else drawn.programs,
        "disagreements": sum(len(each.differences) for each in reports) + len(disagreeing),
        "crashes": sum(len(each.crashes) for each in found.nodes) + len(crashing),
        "not_comparable": sum(each.not_comparable for each in reports) + (0 if drawn is None else drawn.not_comparable),
        "paths_covered": sum(len(each.coverage.guards) for each in reports),
        "paths_total": sum(each.coverage.guards_total for each in reports),
        "operations_covered": len({op for each in reports for op in each.coverage.operations}),
        "engines": found.engines,
        "against": found.against,
        "seed": found.seed,
        "elapsed_seconds": round(found.elapsed_seconds, 3),
        "passed": found.passed,
        "interrupted": found.is_interrupted,
        "refused": found.refused,
        "ways": _ways(reports, drawn),
        "nodes": [_node_json(each) for each in found.nodes],
        "random_programs": None if drawn is None else _programs_json(drawn),
        "relations": None if found.relations is None else relations_json(found.relations),
    }


def _ways(reports: list[Report], drawn: ProgramsReport | None) -> dict[str, int]:
    """Return the number of compared executions of each way."""
    counts: Counter[str] = Counter()
    for each in reports:
        counts.update(each.ways)
    counts.update({} if drawn is None else drawn.ways)
    return dict(sorted(counts.items()))


def _node_json(each: VerifiedNode) -> dict[str, Any]:
    compiled, report = each.compiled, each.report
    clauses = compiled.node.postconditions
    return {
        "node": report.node_id,
        "semantic_hash": report.semantic_hash,
        "seed": report.seed,
        "executions": report.executions,
        "not_comparable": report.not_comparable,
        "not_taken": report.refused,
        "outcomes": report.outcomes,
        "failures": dict(sorted(report.failures.items())),
        "ways": dict(sorted(report.ways.items())),
        "cases": report.cases,
        "failed_cases": [{"case": f.case.name, "engine": f.engine} for f in report.case_failures],
        "broken_postconditions": [
            {
                "clause": clauses[broken.index].text,
                "line": clauses[broken.index].holds.place.line,
                "inputs": {name: json_value(value) for name, value in broken.inputs.items()},
                "values": {name: json_value(value) for name, value in broken.outcome.values.items()},
            }
            for broken in report.broken
        ],
        "paths_covered": len(report.coverage.guards),
        "paths_total": report.coverage.guards_total,
        "branches_covered": report.coverage.branches_covered,
        "branches_total": report.coverage.branches_total,
        "coverage_percent": round(report.coverage.percent, 1),
        "uncovered_branches": uncovered_json(report.coverage.uncovered),
        "refused_by": refused_json(compiled, report.broken_clauses),
        "distinct_paths": len(report.coverage.paths),
        "operations_covered": len(report.coverage.operations),
        "operations_total": report.coverage.operations_total,
        "elapsed_seconds": round(report.elapsed_seconds, 3),
        "passed": each.passed,
        "given_up": each.is_given_up,
        "crashes": [_crash_json(crash) for crash, _ in each.crashes],
        "disagreements": [_difference_json(compiled, difference) for difference in report.differences],
    }


def _programs_json(report: ProgramsReport) -> dict[str, Any]:
    return {
        "programs": report.programs,
        "seed": report.seed,
        "executions": report.executions,
        "not_comparable": report.not_comparable,
        "outcomes": report.outcomes,
        "ways": dict(sorted(report.ways.items())),
        "passed": report.passed,
        "failures": [_failure_json(failure) for failure in report.failures],
    }


def _failure_json(failure: ProgramFailure) -> dict[str, Any]:
    found: dict[str, Any] = {"seed": failure.seed, "kind": failure.kind, "program": failure.text}
    if failure.compiled is not None and failure.difference is not None:
        return found | {"disagreement": _difference_json(failure.compiled, failure.difference)}
    return found | {"detail": failure.detail}


def _crash_json(crash: Crash) -> dict[str, Any]:
    inputs = None if crash.inputs is None else {name: json_value(value) for name, value in crash.inputs.items()}
    return {
        "engine": crash.engine or None,
        "kind": crash.ending.kind,
        "ending": crash.ending.text,
        "stage": crash.stage,
        "number": abs(crash.number),
        "inputs": inputs,
        "reduced": crash.is_reduced,
        "detail": crash.detail,
    }


def _difference_json(compiled: Compiled, difference: Difference) -> dict[str, Any]:
    return {
        "inputs": {name: json_value(value) for name, value in difference.inputs.items()},
        "way": difference.way,
        "step": difference.step,
        "line": None if difference.place is None else compiled.node.expressions()[difference.place].place.line,
        "answers": {name: outcome_json(compiled.node, done.outcome) for name, done in difference.answers.items()},
    }


# -- problems of JUnit and SARIF ----------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Problem:
    rule: str
    text: str
    path: str
    line: int
    case: str | None = None
    """The test case of the problem."""


_RULES = {
    "engines-disagree": "The engines answer differently to the same inputs.",
    "engine-crashes": "An engine hangs, ends its process, raises an exception or needs too much memory.",
    "way-disagrees": "A way into the node answers differently than the engines.",
    "function-disagrees": "The node and the function that it was compared with answer differently.",
    "postcondition-breaks": "A postcondition breaks on inputs that meet the constraints and preconditions.",
    "case-fails": "A test case of the node is not met.",
    "not-comparable": "More than 1 in 100 inputs could not be compared.",
    "coverage-missed": "The node covers fewer of its branches than --min-coverage.",
    "node-refused": "The node has errors and was not verified.",
    "program-fails": "A random program is refused, ends Vesper or is answered differently by the engines.",
    "relation-fails": "A rewriting of a node is refused, ends Vesper or has other outcomes than the node.",
}


def _problems(each: VerifiedNode, results: VerifyResults) -> list[_Problem]:
    compiled, report = each.compiled, each.report
    path = compiled.source.path
    expressions = compiled.node.expressions()
    found = [_Problem("case-fails", case_text(compiled, f), path, 1, f.case.name) for f in report.case_failures]
    for difference, saved in zip(report.differences, each.saved, strict=True):
        rule = "function-disagrees" if difference.with_function else "engines-disagree"
        rule = rule if difference.way is None else "way-disagrees"
        line = 1 if difference.place is None else expressions[difference.place].place.line
        found.append(_Problem(rule, difference_text(compiled, difference, saved), path, line))
    for crash, saved_as in each.crashes:
        found.append(_Problem("engine-crashes", crash_text(compiled, crash, report.seed, saved_as), path, 1))
    for broken in report.broken:
        line = compiled.node.postconditions[broken.index].holds.place.line
        found.append(_Problem("postcondition-breaks", broken_text(compiled, broken), path, line))
    if report.too_many_lost or report.is_function_unused:
        text = f"{report.not_comparable} inputs were not comparable, {report.executions} were compared"
        found.append(_Problem("not-comparable", text, path, 1))
    below = results.coverage_message(each)
    if below is not None:
        uncovered = report.coverage.uncovered
        text = "\n".join([below, *uncovered_lines(path, uncovered, len(uncovered))])
        found.append(_Problem("coverage-missed", text, path, uncovered[0].place.line))
    return found


def _failure_texts(found: VerifyResults) -> dict[str, list[str]]:
    """Return the failures that belong to no line of a node, by rule."""
    drawn, relations = found.drawn, found.relations
    return {
        "program-fails": [] if drawn is None else [failure_text(each, None, None) for each in drawn.failures],
        "relation-fails": [] if relations is None else [relation_failure_text(each) for each in relations.failures],
    }


# -- JUnit ----------------------------------------------------------------------------------------


def verify_junit(found: VerifyResults) -> str:
    """Return JUnit XML: a suite for each node, with its cases, the agreement and its postconditions."""
    root = ET.Element("testsuites", name="vesper verify", time=f"{found.elapsed_seconds:.3f}")
    for each in found.nodes:
        _junit_node(root, each, found)
    for path in found.refused:
        suite = ET.SubElement(root, "testsuite", name=path, tests="1", failures="0", errors="1", time="0.000")
        test = ET.SubElement(suite, "testcase", classname=path, name="can be checked", time="0.000")
        ET.SubElement(test, "error", message=_RULES["node-refused"], type="node-refused")
    if (drawn := found.drawn) is not None:
        name = f"{drawn.programs} programs, {drawn.executions} inputs, seed {drawn.seed}"
        _junit_campaign(root, "random programs", "program-fails", drawn, name, _failure_texts(found)["program-fails"])
    if (relations := found.relations) is not None:
        name = f"{sum(relations.checked.values())} rewritings, {relations.executions} inputs, seed {relations.seed}"
        _junit_campaign(root, "relations", "relation-fails", relations, name, _failure_texts(found)["relation-fails"])
    for count in ("tests", "failures", "errors"):
        root.set(count, str(sum(int(suite.get(count, "0")) for suite in root)))
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode")


def _junit_node(root: ET.Element, each: VerifiedNode, found: VerifyResults) -> None:
    report, problems = each.report, _problems(each, found)
    by_test: dict[str, list[_Problem]] = {f"case: {case.name}": [] for case in each.compiled.cases}
    agreement = f"{' = '.join(report.engines)} on {report.executions} inputs, seed {report.seed}"
    by_test |= {agreement: [], "postconditions hold": []}
    by_test |= {} if found.min_coverage is None else {"coverage": []}
    by_rule = {"postcondition-breaks": "postconditions hold", "coverage-missed": "coverage"}
    for problem in problems:
        name = f"case: {problem.case}" if problem.case is not None else agreement
        by_test[by_rule.get(problem.rule, name)].append(problem)
    failures = str(sum(bool(listed) for listed in by_test.values()))
    seconds = f"{report.elapsed_seconds:.3f}"
    suite = ET.SubElement(
        root, "testsuite", name=report.node_id, tests=str(len(by_test)), failures=failures, errors="0", time=seconds
    )
    properties = ET.SubElement(suite, "properties")
    coverage = report.coverage
    for name, count in (("branches_covered", coverage.branches_covered), ("branches_total", coverage.branches_total)):
        ET.SubElement(properties, "property", name=name, value=str(count))
    for name, listed in by_test.items():
        time = seconds if name == agreement else "0.000"
        test = ET.SubElement(suite, "testcase", classname=report.node_id, name=xml_text(name), time=time)
        if listed:
            failure = ET.SubElement(test, "failure", message=_RULES[listed[0].rule], type=listed[0].rule)
            failure.text = xml_text("\n\n".join(problem.text for problem in listed))
    if coverage.uncovered:
        lines = uncovered_lines(each.compiled.source.path, coverage.uncovered, len(coverage.uncovered))
        ET.SubElement(suite, "system-out").text = xml_text("\n".join(lines))


def _junit_campaign(
    root: ET.Element, label: str, rule: str, report: ProgramsReport | RelationsReport, name: str, texts: list[str]
) -> None:
    seconds = f"{report.elapsed_seconds:.3f}"
    count = "0" if report.passed else "1"
    suite = ET.SubElement(root, "testsuite", name=label, tests="1", failures=count, errors="0", time=seconds)
    test = ET.SubElement(suite, "testcase", classname=label, name=name, time=seconds)
    if not report.passed:
        failure = ET.SubElement(test, "failure", message=_RULES[rule], type=rule)
        failure.text = xml_text("\n\n".join(texts))


def xml_text(text: str) -> str:
    """Escape control characters and surrogates, which XML 1.0 cannot represent."""
    return "".join(c if c in "\t\n" or " " <= c <= "\ud7ff" or "\ue000" <= c <= "\ufffd" or c > "\uffff"
                   else f"\\u{ord(c):04x}" for c in text)  # fmt: skip


# -- SARIF ----------------------------------------------------------------------------------------

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def verify_sarif(found: VerifyResults) -> dict[str, Any]:
    """Return a SARIF log with results at lines of the nodes."""
    results = [_sarif_result(problem) for each in found.nodes for problem in _problems(each, found)]
    for path in found.refused:
        results.append(_sarif_result(_Problem("node-refused", f"`vesper check {path}` says what is wrong", path, 1)))
    for rule, texts in _failure_texts(found).items():
        results += [
            {"ruleId": rule, "ruleIndex": _rule_index(rule), "level": "error", "message": {"text": text}}
            for text in texts
        ]
    rules = [{"id": rule, "shortDescription": {"text": text}} for rule, text in _RULES.items()]
    driver = {"name": "vesper verify", "version": __version__, "rules": rules}
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule_index(rule: str) -> int:
    return list(_RULES).index(rule)


def _sarif_result(problem: _Problem) -> dict[str, Any]:
    path = PurePath(problem.path)
    uri = path.as_uri() if path.is_absolute() else quote(path.as_posix())
    place = {"artifactLocation": {"uri": uri}, "region": {"startLine": problem.line}}
    return {
        "ruleId": problem.rule,
        "ruleIndex": _rule_index(problem.rule),
        "level": "error",
        "message": {"text": problem.text},
        "locations": [{"physicalLocation": place}],
    }
