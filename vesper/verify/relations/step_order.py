"""Relations of lists of steps: swapped, added and extracted ones."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import TypeVar

from vesper.language.ir import nodes as ir
from vesper.language.ir.failures import possible_codes
from vesper.language.ir.statements import all_statements, expressions_of
from vesper.language.syntax.yaml_tree import Mapping, Scalar, Sequence, Tree
from vesper.verify.relations.functions import EXTRACTED, free_names, written_type
from vesper.verify.relations.rewritings import Relation, Rewriting, edited
from vesper.verify.relations.subject import NOWHERE, Data, Edits, Site, Subject, entry, to_tree

_PURE = ("compute", "decision_table")
_PURE_FIELDS = ("step", "operation", "value", "rows", "type")
_MAX_STEPS = 2
_UNUSED = ("1 + 1", "'a' + 'b'", "IF 1 < 2 THEN 0.10 ELSE 0.20", "[1, 2, 3]")
_Item = TypeVar("_Item")


def step_lists(subject: Subject) -> list[Sequence]:
    """Return the flow and every list of steps in it, outer ones first."""
    flow = entry(subject.tree, "flow")
    return [] if flow is None else list(_lists(flow))


def _lists(tree: Tree) -> Iterator[Sequence]:
    if isinstance(tree, Sequence):
        if tree.items and all(entry(item, "operation") is not None for item in tree.items):
            yield tree
        for item in tree.items:
            yield from _lists(item)
    elif isinstance(tree, Mapping):
        for key, value in tree.entries:
            if key.text != "parameters":
                yield from _lists(value)


def word_of(tree: Tree | None) -> str:
    """Return the text of a scalar; empty for anything else."""
    return tree.text if isinstance(tree, Scalar) else ""


def has_only(step: Tree, *keys: str) -> bool:
    """Return whether a step has no other fields than these."""
    return isinstance(step, Mapping) and all(key.text in keys for key, _ in step.entries)


def _reorder(subject: Subject, chance: random.Random) -> Rewriting | None:
    """Swap neighbouring steps of which neither uses the other and at most one can fail."""
    edits = Edits(subject)
    facts = _StepDependencies(subject)
    has_any = False
    for items in step_lists(subject):
        order = _swap(list(items.items), _step_name, facts, chance)
        if order is not None:
            edits.put(items, Sequence(tuple(order), NOWHERE))
            has_any = True
        for item in items.items:
            computed = entry(item, "compute")
            if isinstance(computed, Mapping):
                pairs = _swap(list(computed.entries), lambda pair: pair[0].text, facts, chance)
                if pairs is not None:
                    edits.put(computed, Mapping(tuple(pairs), NOWHERE))
                    has_any = True
    return edited(edits) if has_any else None


def _step_name(item: Tree) -> str:
    """Return the name of a pure step without conditions and handlers; empty for others."""
    is_pure = word_of(entry(item, "operation")) in _PURE and has_only(item, *_PURE_FIELDS)
    return word_of(entry(item, "step")) if is_pure else ""


class _StepDependencies:
    """Dependencies of named steps: the names that each reads, and whether it can fail."""

    def __init__(self, subject: Subject) -> None:
        self._reads: dict[str, set[str]] = {}
        self._fails: dict[str, bool] = {}
        for statement in all_statements(subject.compiled.node.body):
            if not isinstance(statement, ir.Step | ir.Branch):
                continue
            refs = (part for root in expressions_of((statement,)) for part in ir.walk(root))
            self._reads[statement.name] = {part.name for part in refs if isinstance(part, ir.Ref)}
            self._fails[statement.name] = bool(possible_codes(statement, {}))

    def are_independent(self, first: str, second: str) -> bool:
        if first not in self._reads or second not in self._reads:
            return False
        has_edge = first in self._reads[second] or second in self._reads[first]
        return not has_edge and not (self._fails[first] and self._fails[second])

    def can_fail(self, name: str) -> bool:
        return self._fails.get(name, True)


def _swap(
    items: list[_Item], name_of: Callable[[_Item], str], facts: _StepDependencies, chance: random.Random
) -> list[_Item] | None:
    has_any = False
    for index in range(len(items) - 1):
        first, second = name_of(items[index]), name_of(items[index + 1])
        if first and second and facts.are_independent(first, second) and (not has_any or chance.random() < 0.7):
            items[index], items[index + 1] = items[index + 1], items[index]
            has_any = True
    return items if has_any else None


def _add_unused(subject: Subject, chance: random.Random) -> Rewriting | None:
    """Add steps before others whose values are not used and cannot fail."""
    if subject.has_numbered_requests:
        return None
    edits = Edits(subject)
    lists = step_lists(subject)
    for items in chance.sample(lists, min(len(lists), _MAX_STEPS)):
        at = chance.randrange(len(items.items))
        value = chance.choice((*_UNUSED, _array_of_input(subject, chance)))
        step: Data = {"step": subject.fresh(chance, "unused"), "operation": "compute", "value": value}
        edits.put(items, Sequence((*items.items[:at], to_tree(step), *items.items[at:]), NOWHERE))
    return edited(edits) if lists else None


def _array_of_input(subject: Subject, chance: random.Random) -> str:
    names = [each.name for each in subject.compiled.node.inputs]
    return f"[input.{chance.choice(names)}]" if names else "[true]"


def _extract_steps(subject: Subject, chance: random.Random) -> Rewriting | None:
    """Compute expressions that cannot fail in steps of their own before the step around them."""
    if subject.has_numbered_requests:
        return None
    edits = Edits(subject)
    sites = [site for site in subject.of_kind(*EXTRACTED) if site.section == "flow" and not site.locals]
    chance.shuffle(sites)
    used: list[Tree] = []
    for site in sites:
        if len(used) >= min(subject.max_sites, _MAX_STEPS):
            break
        place = None if subject.can_fail(site.span) else _place(subject, site)
        type_ = written_type(subject, subject.type_at(site.span))
        if place is None or type_ is None or place[0] in used:
            continue
        items, at = place
        name = subject.fresh(chance, "step")
        step: Data = {"step": name, "operation": "compute", "type": type_, "value": subject.text_of(site.span)}
        if edits.replace(site.span, name):
            edits.put(items, Sequence((*items.items[:at], to_tree(step), *items.items[at:]), NOWHERE))
            used.append(items)
    return edited(edits) if used else None


def _place(subject: Subject, site: Site) -> tuple[Sequence, int] | None:
    """Return the innermost list of steps around an expression, and the position of its step.

    Steps of a compute with several entries are visible only below, so an expression that uses one has no place.
    """
    for items in reversed(step_lists(subject)):
        for index, item in enumerate(items.items):
            if item.span.start <= site.span.start and site.span.end <= item.span.end:
                inside = {pair[0].text for pair in _computed(item)}
                is_visible = not any(name.text in inside for name in free_names(site.expression))
                return (items, index) if is_visible else None
    return None


def _computed(item: Tree) -> tuple[tuple[Scalar, Tree], ...]:
    computed = entry(item, "compute")
    return computed.entries if isinstance(computed, Mapping) else ()


RELATIONS = (
    Relation("reordered_steps", "independent steps have the same outcomes in another order", _reorder, True),
    Relation("unused_steps", "a step that cannot fail and is not used keeps the outcomes", _add_unused, True),
    Relation("extracted_steps", "an expression that cannot fail is a step of its own", _extract_steps),
)
