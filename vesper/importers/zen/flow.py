"""Steps of the node that a model becomes: names, types and conditions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from vesper.importers.writer import node_name
from vesper.importers.zen.terms import Term, finished
from vesper.importers.zen.types import NOTHING, NUMBER, ArrayOf, Record, Slot, Type, Variable, resolve


@dataclass(frozen=True, slots=True)
class Problem:
    """A part of a model that the node does not compute, or not exactly: its place and its description."""

    place: str
    text: str
    is_refused: bool = True
    """Whether the node ends with an error there; false for a note about the model itself."""

    def __str__(self) -> str:
        return f"{self.place}: {self.text}"


@dataclass(slots=True)
class Step:
    """A step with its type, which is written when all types are known."""

    name: str
    fields: dict[str, Any]
    type: Slot | None = None
    is_typed: bool = True
    """Whether the step states its type; one that follows from the value is left out."""
    note: tuple[str, ...] = ()
    is_helper: bool = False
    """Whether the importer added the step; it is left out where nothing uses it."""
    inner: list[Step] = field(default_factory=list)
    """Steps of a loop."""


class Flow:
    """Collects the steps of a node."""

    def __init__(self) -> None:
        self.taken: set[str] = set()
        self.steps: list[Step] = []
        self.problems: list[Problem] = []
        self.known: dict[str, set[str]] = {}
        """Steps that are not null where the condition of the same text holds."""
        self.untranslated: list[str] = []
        """Names of the constants that say which parts have a translation."""

    def fresh(self, name: str) -> str:
        """Return a new name of a step."""
        unique = node_name(name, self.taken)
        self.taken.add(unique)
        return unique

    def compute(
        self, key: str, term: Term, condition: str = "", *, is_helper: bool = False, note: tuple[str, ...] = ()
    ) -> Term:
        """Add a step that computes a term, and return its path."""
        name = self.fresh(key)
        is_optional = term.is_nullable or term.type == NOTHING
        fields = {"step": name, "operation": "compute"}
        if condition:
            fields["when"] = condition
        fields["value"] = finished(term)
        slot = Slot(Variable() if term.type == NOTHING else term.type, is_optional)
        self.steps.append(Step(name, fields, slot, _is_typed(term), note, is_helper))
        return self.path(name, slot, condition)

    def path(self, name: str, slot: Slot, condition: str = "") -> Term:
        """Return the term of a step's value."""
        if condition and not slot.is_optional:
            self.known.setdefault(condition, set()).add(name)
        checks = (name,) if slot.is_optional or condition else ()
        return Term(name, slot.type, checks=checks, is_path=True)

    def facts(self, condition: str) -> set[str]:
        """Return the steps that are known not to be null in a step with this condition."""
        return set(self.known.get(condition, ())) if condition else set()

    @contextmanager
    def inside(self, step: Step) -> Iterator[None]:
        """Add steps to a loop."""
        outer, self.steps = self.steps, step.inner
        try:
            yield
        finally:
            self.steps = outer

    def used_steps(self, others: str) -> list[Step]:
        """Return the steps without helpers that neither a step nor `others` uses."""
        kept = self.steps
        while True:
            fewer = [step for step in kept if not step.is_helper or _is_used(step, kept, others)]
            if len(fewer) == len(kept):
                return kept
            kept = fewer


def _is_used(step: Step, steps: list[Step], others: str) -> bool:
    pattern = re.compile(rf"(?<![a-z0-9_.]){step.name}(?![a-z0-9_])")
    return bool(pattern.search(others)) or any(
        pattern.search(text) for each in steps if each is not step for text in _texts(each)
    )


def _texts(step: Step) -> Iterator[str]:
    yield from _strings({key: value for key, value in step.fields.items() if key != "step"})
    for each in step.inner:
        yield from _texts(each)


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _strings(each)
    elif isinstance(value, list):
        for each in value:
            yield from _strings(each)


def _is_typed(term: Term) -> bool:
    """Return whether the type of a step does not follow from its text."""
    type_: Type = resolve(term.type)
    if isinstance(type_, ArrayOf | Record | Variable) or type_ == NOTHING or term.is_nullable:
        return True
    return type_ == NUMBER and not finished(term).startswith("normalize(")
