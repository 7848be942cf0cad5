"""Import of a DMN file: nodes for the decisions and services that a caller asks for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from vesper.compiler.pipeline import compile_source
from vesper.importers.dmn.cases import TestCase, read_cases
from vesper.importers.dmn.model import Decision, Model, Service
from vesper.importers.dmn.model_reader import read_model
from vesper.importers.dmn.nodes import ImportedNode, NodeBuilder, Untranslated
from vesper.importers.dmn.types import Refusal
from vesper.importers.dmn.xml_reader import XmlProblem
from vesper.language.diagnostics.diagnostic import Severity
from vesper.language.diagnostics.source import SourceFile


@dataclass(slots=True)
class Imported:
    """Nodes of a file, and parts of the model that are in no node."""

    model: Model
    nodes: list[ImportedNode]
    problems: list[Untranslated]


def import_file(
    path: Path, names: list[str] | None = None, tests: list[Path] | None = None, has_null_inputs: bool = False
) -> Imported:
    """Import decisions and services by name; without names those that no other decision requires.

    `tests` are files of cases; None takes those beside the model that name it.

    Raises `XmlProblem` for a file that is no model, and `KeyError` with an unknown name.
    """
    model = read_model(path)
    chosen = _by_name(model, names) if names else _outermost(model)
    problems = [Untranslated(element, line, "not read", reason, "") for element, line, reason in model.problems]
    cases = [case for file in (_beside(path) if tests is None else tests) for case in read_cases(file)[1]]
    nodes = []
    for element in chosen:
        own = [case for case in cases if (case.service or case.decision) == element.name]
        try:
            nodes.append(_node(model, element, own, has_null_inputs))
        except Refusal as refusal:
            problems.append(Untranslated(element.name, element.line, refusal.category, refusal.reason, ""))
    return Imported(model, nodes, problems)


def _beside(path: Path) -> list[Path]:
    """Return the files of cases beside a model that name it."""
    found = []
    for file in sorted(path.parent.glob("*.xml"))[:200]:
        try:
            if read_cases(file)[0] == path.name:
                found.append(file)
        except XmlProblem:
            continue  # no file of cases
    return found


def _node(model: Model, element: Decision | Service, cases: list[TestCase], has_null_inputs: bool) -> ImportedNode:
    """Build a node. Tables that the checker rejects, such as those with overlapping rows, become expressions."""
    lowered: frozenset[str] = frozenset()
    while True:
        node = _build(NodeBuilder(model, cases, lowered, has_null_inputs), element)
        errors = _errors(node)
        wrong = {name for name, _, _ in errors}
        if not wrong - lowered:
            if errors and not node.problems:
                name, headline, text = errors[0]
                node.problems.append(Untranslated(name or element.name, element.line, "check", headline, text))
            return node
        lowered |= wrong


_ELEMENT = re.compile(r"# (?:Decision|Business knowledge model) `(.*)`$", re.MULTILINE)


def _errors(node: ImportedNode) -> list[tuple[str, str, str]]:
    """Return the errors of the check: the element of the model, the headline, and the text of the node."""
    _, bag = compile_source(SourceFile(f"{node.node_id}.vsp", node.text))
    found = []
    for diagnostic in bag.sorted():
        if diagnostic.severity is Severity.ERROR:
            span = diagnostic.primary.span
            elements = list(_ELEMENT.finditer(node.text[: span.start]))
            name = elements[-1][1] if elements else ""
            found.append((name, diagnostic.headline, node.text[span.start : span.end][:80]))
    return found


def _build(builder: NodeBuilder, element: Decision | Service) -> ImportedNode:
    return builder.build_decision(element) if isinstance(element, Decision) else builder.build_service(element)


def _by_name(model: Model, names: list[str]) -> list[Decision | Service]:
    known: dict[str, Decision | Service] = {each.name: each for each in model.services.values()}
    known.update({each.name: each for each in model.decisions.values()})
    return [known[name] for name in names]


def _outermost(model: Model) -> list[Decision | Service]:
    required = {href.rpartition("#")[2] for each in model.decisions.values() for href, _ in each.required}
    tops: list[Decision | Service] = [each for each in model.decisions.values() if each.id not in required]
    return [*tops, *model.services.values()]
