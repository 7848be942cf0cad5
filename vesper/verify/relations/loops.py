"""Relations of loops: one loop as two, the second from the state of the first."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import fields, is_dataclass

from vesper.language.diagnostics.source import Span
from vesper.language.syntax import ast
from vesper.language.syntax.yaml_tree import Mapping, Scalar, Sequence, Tree
from vesper.values.types import ArrayOf
from vesper.verify.relations.renaming import Spellings
from vesper.verify.relations.rewritings import Relation, Rewriting, edited
from vesper.verify.relations.step_order import has_only, step_lists, word_of
from vesper.verify.relations.subject import NOWHERE, Data, Edits, Subject, entry, to_tree


def _split(subject: Subject, chance: random.Random) -> Rewriting | None:
    """Run a loop over the first items, then over the rest from that state."""
    if not subject.compiled.node.is_pure():
        return None  # the paths of requests have the iteration
    loops = {each.name.text: each.action for each in _steps(subject.document.flow) if each.name is not None}
    for items in step_lists(subject):
        for index, item in enumerate(items.items):
            loop = loops.get(word_of(entry(item, "step")))
            is_plain = has_only(item, "step", "operation", "over", "state", "steps", "next")
            if isinstance(loop, ast.Loop) and isinstance(item, Mapping) and is_plain and loop.state:
                halves = _halves(subject, item, loop, chance)
                if halves is not None:
                    edits = Edits(subject)
                    edits.put(items, Sequence((*items.items[:index], *halves, *items.items[index + 1 :]), NOWHERE))
                    return edited(edits)
    return None


def _steps(part: object) -> Iterator[ast.Step]:
    """Yield the steps of a flow at any depth."""
    if isinstance(part, ast.Step):
        yield part
    if isinstance(part, tuple):
        for each in part:
            yield from _steps(each)
    elif is_dataclass(part) and not isinstance(part, ast.Expression | Scalar):
        for field in fields(part):
            yield from _steps(getattr(part, field.name))


def _halves(subject: Subject, item: Mapping, loop: ast.Loop, chance: random.Random) -> tuple[Tree, Tree] | None:
    """Return the two loops; the second keeps the name."""
    binding = loop.binding
    if binding is None or not isinstance(subject.type_at(binding.over.span), ArrayOf):
        return None
    first = subject.fresh(chance, "first")
    copy = _rename_inner_steps(subject, item, chance)
    if copy is None:
        return None
    count = chance.randrange(4)
    names = ", ".join(word.text for word in binding.names)
    where = "" if binding.where is None else f" WHERE {subject.text_of(binding.where.span)}"
    over = subject.text_of(binding.over.span)
    state: dict[str, Data] = {each.name.text: f"{first}.{each.name.text}" for each in loop.state}
    return (
        _with(copy, {"step": first, "over": f"{names} IN take({over}, {count}){where}"}),
        _with(item, {"over": f"{names} IN drop({over}, {count}){where}", "state": state}),
    )


def _rename_inner_steps(subject: Subject, item: Mapping, chance: random.Random) -> Mapping | None:
    """Return a loop with other names of its inner steps; names of steps are unique in a node."""
    spellings, edits = Spellings(subject), Edits(subject)
    steps = entry(item, "steps")
    span = NOWHERE if steps is None else steps.span
    inner = [
        name
        for name, kinds in sorted(spellings.kinds.items())
        if "step" in kinds and any(span.start <= start < span.end for start, _ in spellings.declared[name])
    ]
    for name in inner:
        new = subject.fresh(chance, "copied")
        spans = [Span(*each) for each in spellings.spans[name] if item.span.start <= each[0] < item.span.end]
        if name in spellings.blocked or not all(edits.replace(each, new) for each in spans):
            return None
    copy = edits.rebuild(item)
    assert isinstance(copy, Mapping), "a step is a mapping"
    return copy


def _with(step: Mapping, changes: dict[str, Data]) -> Mapping:
    """Return a step with some of its fields replaced."""
    entries = ((key, to_tree(changes[key.text]) if key.text in changes else value) for key, value in step.entries)
    return Mapping(tuple(entries), NOWHERE)


RELATIONS = (Relation("split_loops", "a loop is two, over the first items and over the rest", _split),)
