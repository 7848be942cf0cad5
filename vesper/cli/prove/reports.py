"""Results of `vesper prove` as JSON and JUnit."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import dataclass, field
from typing import Any

from vesper.cli.prove.text import title_of
from vesper.cli.verify.reports import xml_text
from vesper.compiler import Compiled
from vesper.proof.claims.claims_file import LostProof
from vesper.proof.claims.model import CLAUSE, CONDITION, NodeProof, Result, Verdict


@dataclass(slots=True)
class ProveResults:
    """Results of one `vesper prove`."""

    time_limit: float
    nodes: list[tuple[Compiled, NodeProof]] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    """Files with errors."""
    lost: list[LostProof] = field(default_factory=list)
    saved: int = 0
    """Proven clauses of the committed file."""
    is_check: bool = False
    seconds: float = 0.0

    def add(self, compiled: Compiled, proof: NodeProof) -> None:
        self.nodes.append((compiled, proof))

    def counts(self, *kinds: str) -> dict[Verdict, int]:
        found = [proof.counted(kinds) for _, proof in self.nodes]
        return {verdict: sum(each[verdict] for each in found) for verdict in Verdict}

    @property
    def is_failed(self) -> bool:
        has_defects = not self.is_check and any(proof.defects for _, proof in self.nodes)
        return has_defects or bool(self.lost or self.refused)


def prove_json(run: ProveResults) -> dict[str, Any]:
    """Return the results as JSON values."""
    shown: dict[str, Any] = {
        "nodes": [_node_json(compiled, proof) for compiled, proof in run.nodes],
        "clauses": {verdict.value: count for verdict, count in run.counts(CLAUSE).items()},
        "time_limit": run.time_limit,
        "refused": run.refused,
        "passed": not run.is_failed,
    }
    if run.is_check:
        shown["lost"] = [
            {"node": each.node_id, "phase": each.phase, "clause": each.text, "why": each.why} for each in run.lost
        ]
        shown["saved"] = run.saved
    return shown


def _node_json(compiled: Compiled, proof: NodeProof) -> dict[str, Any]:
    return {
        "node": proof.node_id,
        "path": compiled.source.path,
        "hash": proof.semantic_hash,
        "seconds": round(proof.seconds, 3),
        "from_cache": proof.is_cached,
        "claims": [_result_json(each) for each in proof.results],
    }


def _result_json(result: Result) -> dict[str, Any]:
    claim, witness = result.claim, result.witness
    line, column, end_line, end_column = claim.place
    shown: dict[str, Any] = {
        "kind": claim.kind,
        "claim": title_of(claim),
        "text": claim.text,
        "result": result.verdict.value,
        "is_defect": result.verdict is Verdict.REFUTED and claim.is_defect_if_refuted,
        "line": line,
        "column": column,
        "end_line": end_line,
        "end_column": end_column,
    }
    optional = {"group": claim.group or None, "code": claim.code or None, "reason": result.reason}
    shown |= {name: value for name, value in optional.items() if value is not None}
    if witness is not None:
        shown["witness"] = {"inputs": witness.inputs, "case": witness.case, "outcome": witness.outcome}
    return shown


def prove_junit(run: ProveResults) -> str:
    """Return JUnit XML: a suite for each node, a test for each claim but conditions; unknown ones are skipped."""
    root = ET.Element("testsuites", name="vesper prove", time=f"{run.seconds:.3f}")
    for _, proof in run.nodes:
        listed = [each for each in proof.results if each.claim.kind != CONDITION]
        suite = _suite(root, proof.node_id, proof.seconds)
        for each in listed:
            _test(suite, proof.node_id, each)
    for lost in run.lost:
        suite = _suite(root, lost.node_id, 0.0)
        test = ET.SubElement(suite, "testcase", classname=lost.node_id, name=xml_text(f"{lost.phase} `{lost.text}`"))
        ET.SubElement(test, "failure", message="was proven and is not any more", type="lost").text = xml_text(lost.why)
    for path in run.refused:
        suite = _suite(root, path, 0.0)
        test = ET.SubElement(suite, "testcase", classname=path, name="can be checked")
        ET.SubElement(test, "error", message="the node has errors", type="node-refused")
    for suite in root:
        suite.set("tests", str(len(suite)))
        for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            suite.set(name, str(len(suite.findall(f"testcase/{tag}"))))
    for count in ("tests", "failures", "errors"):
        root.set(count, str(sum(int(suite.get(count, "0")) for suite in root)))
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode")


def _suite(root: ET.Element, name: str, seconds: float) -> ET.Element:
    return ET.SubElement(root, "testsuite", name=name, time=f"{seconds:.3f}")


def _test(suite: ET.Element, node_id: str, result: Result) -> None:
    claim = result.claim
    name = f"{title_of(claim)} at line {claim.place[0]}"
    test = ET.SubElement(suite, "testcase", classname=node_id, name=xml_text(name))
    if result.verdict is Verdict.UNKNOWN:
        ET.SubElement(test, "skipped", message=xml_text(result.reason or "unknown"))
    elif result.verdict is Verdict.REFUTED and claim.is_defect_if_refuted:
        failure = ET.SubElement(test, "failure", message="refuted", type="refuted")
        witness = result.witness
        lines = [result.reason or ""] if witness is None else [witness.inputs, witness.outcome]
        failure.text = xml_text("\n".join(lines))
