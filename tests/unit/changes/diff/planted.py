"""Single edits of real nodes, each with the kinds of difference that a diff must name."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vesper.changes.diff.version import NodeVersion
from vesper.compiler.callees import Collection, Neighbours, collection_folder
from vesper.compiler.pipeline import compile_source
from vesper.language.diagnostics.source import SourceFile
from vesper.language.syntax import ast
from vesper.language.syntax.yaml_tree import Mapping, Scalar, Sequence, Tree
from vesper.verify.relations.layouts import block_text
from vesper.verify.relations.subject import NOWHERE, Edits, Subject, entry

PLACES = {
    "flow": ("step.", "row.", "requirement.", "block.", "column.", "condition.", "handler.", "constraint.", "table."),
    "preconditions": ("precondition.",),
    "postconditions": ("postcondition.",),
    "invariants": ("invariant.",),
    "functions": ("function.", "row.", "table.", "column."),
    "types": ("constraint.",),
}
"""Beginnings of the kinds of a changed expression, by its section."""


@dataclass(frozen=True, slots=True)
class Planted:
    """An edited text, and the beginnings of kinds of which the only difference has one."""

    name: str
    text: str
    kinds: tuple[str, ...]
    action: str


def version_at(version: NodeVersion, text: str) -> NodeVersion | None:
    """Return a text at the place of a node; None where it has errors."""
    path = Path(version.compiled.source.path)
    neighbours = Neighbours(Collection(collection_folder(path)), (path.stem,))
    compiled, _ = compile_source(SourceFile(path.as_posix(), text), neighbours, judge_contracts=False)
    return None if compiled is None else NodeVersion(compiled, version.shown, version.libraries, version.inlined)


def plain_text(subject: Subject) -> str:
    """Return the node as the edits of this module leave it: without cases, in block style."""
    return block_text(Edits(subject).tree())


def edits_of(subject: Subject, chance: random.Random) -> Iterator[Planted]:
    """Yield one edit of each kind that the node has a place for."""
    yield from _literals(subject, chance)
    yield from _operators(subject, chance)
    yield from _rows(subject, chance)
    yield from _clauses(subject, chance)
    yield from _declarations(subject, chance)


def _literals(subject: Subject, chance: random.Random) -> Iterator[Planted]:
    sites = [each for each in subject.of_kind(ast.Number) if each.section in PLACES]
    for site in _some(sites, chance, 4):
        edits = Edits(subject)
        text = subject.text_of(site.span)
        if edits.replace(site.span, str(int(text) + 7) if text.isdigit() else f"{text}7"):
            yield Planted(f"number {text}", block_text(edits.tree()), PLACES[site.section], "changed")


def _operators(subject: Subject, chance: random.Random) -> Iterator[Planted]:
    swapped = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "+": "-", "AND": "OR", "OR": "AND", "==": "!=", "*": "+"}
    sites = [
        each for each in subject.of_kind(ast.Infix)
        if isinstance(each.expression, ast.Infix) and each.expression.operator.text in swapped
        and each.section in PLACES
    ]  # fmt: skip
    for site in _some(sites, chance, 3):
        assert isinstance(site.expression, ast.Infix)
        operator, edits = site.expression.operator, Edits(subject)
        if edits.replace(operator.span, swapped[operator.text]):
            name = f"operator {operator.text}"
            yield Planted(name, block_text(edits.tree()), PLACES[site.section], "changed")


def _rows(subject: Subject, chance: random.Random) -> Iterator[Planted]:
    tables = [each for each in _trees(subject.tree) if isinstance(each, Mapping) and _rows_of(each)]
    for table in _some(tables, chance, 2):
        rows = _rows_of(table)
        assert rows is not None
        items = list(rows.items)
        last = len(items) - 1
        at = chance.randrange(last) if last else 0
        if last > 1:
            yield _edited(subject, "row removed", rows, [*items[:at], *items[at + 1 :]], "row.removed", "removed")
        if last > 2:
            one = chance.randrange(last - 1)
            swapped = [*items[:one], items[one + 1], items[one], *items[one + 2 :]]
            yield _edited(subject, "rows swapped", rows, swapped, "row.moved", "moved")


def _clauses(subject: Subject, chance: random.Random) -> Iterator[Planted]:
    contracts = entry(subject.tree, "contracts")
    for section in ("preconditions", "postconditions", "invariants"):
        listed = entry(contracts, section)
        if isinstance(listed, Sequence) and len(listed.items) > 1:
            at = chance.randrange(len(listed.items))
            rest = [*listed.items[:at], *listed.items[at + 1 :]]
            kind = section.removesuffix("s")
            yield _edited(subject, f"{kind} removed", listed, rest, f"{kind}.removed", "removed")
            added = [*listed.items, Scalar("1 + 1 == 2 OR 3 > 4", '"', NOWHERE)]
            yield _edited(subject, f"{kind} added", listed, added, f"{kind}.added", "added")


def _declarations(subject: Subject, chance: random.Random) -> Iterator[Planted]:
    inputs = entry(subject.tree, "inputs")
    if isinstance(inputs, Mapping):
        new = (Scalar("added_input", "", NOWHERE), Scalar("optional<integer>", '"', NOWHERE))
        yield _edited_entries(subject, "input added", inputs, (*inputs.entries, new), "input.added", "added")
    constants = entry(subject.tree, "constants")
    for key, value in constants.entries if isinstance(constants, Mapping) else ():
        number = entry(value, "value")
        if isinstance(number, Scalar) and number.text.isdigit():
            edits = Edits(subject)
            edits.put(number, Scalar(str(int(number.text) + 1), "", NOWHERE))
            yield Planted(f"constant {key.text}", block_text(edits.tree()), ("constant.value",), "changed")
    intent = entry(subject.tree, "intent")
    if intent is not None:
        edits = Edits(subject)
        edits.put(intent, Scalar("another intent", '"', NOWHERE))
        yield Planted("intent", block_text(edits.tree()), ("node.intent",), "changed")
    security = entry(subject.tree, "security")
    level = entry(security, "audit_level")
    if isinstance(level, Scalar):
        edits = Edits(subject)
        edits.put(level, Scalar("basic" if level.text != "basic" else "detailed", "", NOWHERE))
        yield Planted("audit level", block_text(edits.tree()), ("security.audit_level",), "changed")


def _edited(subject: Subject, name: str, old: Tree, items: list[Tree], kind: str, action: str) -> Planted:
    edits = Edits(subject)
    edits.put(old, Sequence(tuple(items), NOWHERE))
    return Planted(name, block_text(edits.tree()), (kind,), action)


def _edited_entries(
    subject: Subject, name: str, old: Tree, entries: tuple[tuple[Scalar, Tree], ...], kind: str, action: str
) -> Planted:
    edits = Edits(subject)
    edits.put(old, Mapping(entries, NOWHERE))
    return Planted(name, block_text(edits.tree()), (kind,), action)


def _rows_of(table: Mapping) -> Sequence | None:
    rows = entry(table, "rows")
    return rows if isinstance(rows, Sequence) and rows.items else None


def _trees(tree: Tree) -> Iterator[Tree]:
    yield tree
    match tree:
        case Sequence(items=items):
            for item in items:
                yield from _trees(item)
        case Mapping(entries=entries):
            for _, value in entries:
                yield from _trees(value)


def _some(listed: list[Any], chance: random.Random, count: int) -> list[Any]:
    return chance.sample(listed, min(count, len(listed)))
