"""Relations of `vesper verify`, and their results as text and JSON."""

from __future__ import annotations

from typing import Any

import click

from vesper.cli.output.outcomes import json_value, one_line, outcome_json
from vesper.cli.output.progress import Progress
from vesper.values.model import show
from vesper.verify.relations.campaign import verify_program_relations
from vesper.verify.relations.checking import RELATED, verify_relations
from vesper.verify.relations.report import RelationFailure, RelationsReport
from vesper.verify.workers.tasks import Workload

_NOTES = {
    "outcome": "the outcome differs",
    "requests": "the requests differ",
    "refused": "the checker refuses the rewritten node",
    "raised": "Vesper fails on the rewritten node",
}


def check_relations(work: Workload, programs: int, is_text: bool) -> RelationsReport:
    """Check the relations of every node, then of some of the random programs."""
    engines = {name: engine for name, engine in work.engines.items() if name in RELATED}
    report = RelationsReport(work.seed, tuple(engines))
    with Progress("relations", len(work.nodes) + bool(programs)) as progress:
        for each in work.nodes:
            report.add(verify_relations(each, engines, work.seed))
            progress.advance()
        report.add(verify_program_relations(engines, programs, work.seed))
    if is_text:
        for failure in report.failures:
            click.echo(relation_failure_text(failure) + "\n", err=True)
    return report


def relations_line(report: RelationsReport) -> str:
    """Summarise the relations of nodes or programs on one line."""
    return (
        f"relations: {' = '.join(report.engines)}: {'hold' if report.passed else 'FAILED'}; "
        f"{report.nodes} nodes, {sum(report.checked.values())} rewritings of {len(report.checked)} relations "
        f"({report.same_ir} with the same IR), {report.executions} inputs compared, "
        f"{report.not_comparable} not comparable, {sum(report.left_out.values())} rewritings left out, "
        f"{len(report.failures)} failures; seed {report.seed}"
    )


def relations_table(report: RelationsReport) -> str:
    """Return the number of rewritings by relation, one per line."""
    names = [*report.checked, *(name for name in report.left_out if name not in report.checked)]
    return "\n".join(
        f"  {name:<20} {report.checked.get(name, 0):>6} checked {report.left_out.get(name, 0):>5} left out"
        for name in names
    )


def relation_failure_text(failure: RelationFailure) -> str:
    """Render a broken relation: law, smallest input, both outcomes, and the rewritten node."""
    lines = [
        f"error: relation `{failure.relation}` does not hold for `{failure.node.node_id}`: {_NOTES[failure.kind]}",
        f"  law:       {failure.law}",
    ]
    if failure.expected is not None and failure.found is not None and failure.rewritten is not None:
        lines += [
            f"  input:     {_inputs_text(failure.inputs)}  (smallest)",
            *([f"  rewritten: {_inputs_text(failure.converted)}"] if failure.converted != failure.inputs else []),
            f"  {failure.engine}, node:      {one_line(failure.node, failure.expected)}",
            f"  {failure.engine}, rewritten: {one_line(failure.rewritten, failure.found)}",
        ]
    lines += [f"  {line}" for line in failure.detail.splitlines()]
    lines += ["rewritten node:", *(f"  {line}" for line in failure.rewriting.splitlines())]
    return "\n".join(lines)


def relations_json(report: RelationsReport) -> dict[str, Any]:
    """Return a report for `--format json`."""
    return {
        "nodes": report.nodes,
        "seed": report.seed,
        "engines": list(report.engines),
        "checked": report.checked,
        "left_out": report.left_out,
        "same_ir": report.same_ir,
        "executions": report.executions,
        "not_comparable": report.not_comparable,
        "elapsed_seconds": round(report.elapsed_seconds, 3),
        "passed": report.passed,
        "failures": [_failure_json(failure) for failure in report.failures],
    }


def _failure_json(failure: RelationFailure) -> dict[str, Any]:
    found: dict[str, Any] = {
        "relation": failure.relation,
        "law": failure.law,
        "node": failure.node.node_id,
        "kind": failure.kind,
        "rewriting": failure.rewriting,
    }
    if failure.expected is None or failure.found is None or failure.rewritten is None:
        return found | {"detail": failure.detail}
    return found | {
        "engine": failure.engine,
        "inputs": {name: json_value(value) for name, value in failure.inputs.items()},
        "rewriting_inputs": {name: json_value(value) for name, value in failure.converted.items()},
        "expected": outcome_json(failure.node, failure.expected),
        "found": outcome_json(failure.rewritten, failure.found),
    }


def _inputs_text(inputs: dict[str, object]) -> str:
    return ", ".join(f"{name}={show(value)}" for name, value in inputs.items())
