"""A comparison of two versions as JSON."""

from __future__ import annotations

from typing import Any

from vesper.changes.compare.comparing import CompareResult
from vesper.changes.compare.versions import Run, Version, VersionPair
from vesper.changes.compare.witness import Witness, shown_inputs
from vesper.cli.output.outcomes import json_value, outcome_json
from vesper.engines.version_outcomes import request_text
from vesper.language.ir.nodes import Place
from vesper.values.model import scalar_text


def compare_json(result: CompareResult) -> dict[str, Any]:
    pair, searched = result.pair, result.searched
    return {
        "verdict": result.verdict.replace(" ", "_"),
        "reason": result.reason,
        "before": _version_json(pair.before),
        "after": _version_json(pair.after),
        "interface": list(result.interface),
        "inputs": searched.tried,
        "differing_inputs": searched.differing,
        "not_comparable": searched.not_comparable,
        "paths": len(searched.paths),
        "solver": result.solver,
        "seconds": round(result.seconds, 3),
        "seed": result.seed,
        "witnesses": [witness_json(pair, each) for each in result.witnesses],
    }


def witness_json(pair: VersionPair, witness: Witness) -> dict[str, Any]:
    types = {each.name: each.type for each in pair.union_node(pair.before).inputs}
    given = witness.given
    found: dict[str, Any] = {
        "inputs": {name: json_value(value, types.get(name)) for name, value in shown_inputs(pair, given).items()}
    }
    if pair.reads_now and given.now is not None:
        found["now"] = scalar_text(given.now)
    if given.answers:
        found["completions"] = [
            {"path": each.path, "occurrence": each.occurrence}
            | ({"returns": json_value(each.value)} if each.failure is None else {"fails": each.failure})
            for each in given.answers
        ]
    changed = witness.changed
    return found | {
        "where": changed.where,
        "values": [json_value(changed.before), json_value(changed.after)],
        "before": _run_json(pair.before, witness.run.before, witness.before),
        "after": _run_json(pair.after, witness.run.after, witness.after),
    }


def _version_json(version: Version) -> dict[str, Any]:
    compiled = version.compiled
    return {"node": compiled.node.node_id, "file": compiled.source.path, "semantic_hash": compiled.semantic_hash}


def _run_json(version: Version, run: Run, place: Place | None) -> dict[str, Any]:
    found = {"outcome": outcome_json(version.node, run.outcome)}
    if run.requests:
        found["requests"] = [request_text(each) for each in run.requests]  # type: ignore[assignment]
    if place is not None:
        found["decides"] = {"file": version.compiled.source.path, "line": place.line, "column": place.column}
    return found
