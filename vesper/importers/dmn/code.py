"""Expressions of Vesper with their FEEL types, and the guards under which their value is FEEL's null.

FEEL returns null where an operand is null or outside a domain. `Code` keeps the conditions of such nulls beside the
expression that is evaluated without them, so that one expression has one `IF a IS NULL OR b == 0 THEN null ELSE …`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING

from vesper.importers.dmn.types import (
    ANY,
    CLOCK,
    MOMENT,
    NULL,
    NUMBER,
    STRING,
    Records,
    Refusal,
    Ty,
    field_names,
    fits_json,
    list_of,
    unify,
)
from vesper.importers.writer import node_name, string_literal

if TYPE_CHECKING:
    from collections.abc import Callable

LOOSE, IMPLIES, OR, AND, NOT, COMPARE, DEFAULT, ADD, MULTIPLY, NEGATE, PRIMARY = range(11)
_WHOLE = re.compile(r"-?\d+$")


@dataclass(frozen=True, slots=True)
class Guard:
    """A condition under which the value is null."""

    condition: str

    def written(self) -> str:
        """Return the condition."""
        return self.condition


@dataclass(frozen=True, slots=True)
class Let:
    """A name for a value that is used more than once."""

    name: str
    text: str

    def written(self) -> str:
        """Return the binding."""
        return f"{self.name} = {self.text}"


@dataclass(frozen=True, slots=True)
class Closure:
    """A function value; it is inlined where it is called."""

    parameters: tuple[str, ...]
    types: tuple[Ty | None, ...]
    call: Callable[[list[Code]], Code]
    """Translate the body for these arguments."""
    has_names: bool = True
    """Whether an argument gets a name, because the body may use it several times."""


@dataclass(frozen=True, slots=True)
class RangeParts:
    """The ends of a range; an absent end is None."""

    low: Code | None
    high: Code | None
    is_low_closed: bool
    is_high_closed: bool
    is_comparison: bool = False
    """Whether it is the range of a comparison such as `(< 5)`."""


@dataclass(frozen=True, slots=True)
class Code:
    """An expression; `steps` are guards and names around it, from the outermost."""

    text: str
    ty: Ty
    level: int = PRIMARY
    steps: tuple[Guard | Let, ...] = ()
    is_path: bool = False
    is_literal: bool = False
    closure: Closure | None = None
    range: RangeParts | None = None
    fields: dict[str, Code] | None = None
    """Entries of a context that has functions or ranges, which are no values of a node, or no entries."""
    items: tuple[Code, ...] | None = None
    """Items of a list literal, or values of a context literal: for functions that need keys when translating."""

    def at(self, level: int) -> str:
        """Return the text, in parentheses if it binds looser than `level`."""
        return self.text if self.level >= level else f"({self.text})"

    @property
    def is_nullable(self) -> bool:
        """Whether the value can be null, by a guard or by itself."""
        return self.ty.is_nullable or any(isinstance(step, Guard) for step in self.steps)

    @property
    def value_type(self) -> Ty:
        """The type of the closed expression."""
        return self.ty.optional() if self.is_nullable else self.ty


_OFFSET = (
    "IF zone_text IS NULL THEN null "
    "ELSE timestamp('2000-01-01T00:00:00Z') - timestamp('2000-01-01T00:00:00' + zone_text)"
)
_CLOCK_TEXT = "[0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.][0-9]+)?)(Z|[+-][0-9]{2}:[0-9]{2})?$"
HELPERS: dict[str, tuple[dict[str, str], str, str]] = {
    "read_date_time": (
        {"date_time_text": "string"},
        "Moment",
        (
            "LET date_time_parts = "
            f"require(groups(date_time_text, '^([0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}T{_CLOCK_TEXT}')), "
            "zone_text = get(date_time_parts, 2) IN "
            f"{{local: timestamp(require(get(date_time_parts, 1)) + 'Z'), offset: ({_OFFSET})}}"
        ),
    ),
    "read_time": (
        {"time_text": "string"},
        "ClockTime",
        (
            f"LET time_parts = require(groups(time_text, '^({_CLOCK_TEXT}')), zone_text = get(time_parts, 2) IN "
            "{local: timestamp('2000-01-01T' + require(get(time_parts, 1)) + 'Z') - timestamp('2000-01-01T00:00:00Z'), "
            f"offset: ({_OFFSET})}}"
        ),
    ),
    "date_time_text": (
        {"moment": "timestamp"},
        "string",
        (
            "LET moment_text = text(moment) IN "
            "IF contains(moment_text, '.') THEN replace_pattern(moment_text, '0*Z$', '') ELSE slice(moment_text, 0, 19)"
        ),
    ),
    "offset_text": (
        {"utc_offset": "optional<duration>"},
        "string",
        (
            "IF utc_offset IS NULL THEN '' ELSE IF total_microseconds(utc_offset) == 0 THEN 'Z' ELSE "
            "(IF total_microseconds(utc_offset) < 0 THEN '-' ELSE '+') + "
            "replace_pattern(slice(text(timestamp('2000-01-01T00:00:00Z') + abs(utc_offset)), 11, 19), ':00$', '')"
        ),
    ),
}
"""Functions for times whose offset is known at run time only: parameters, returned type, value."""


def null(ty: Ty, records: Records) -> Code:
    """Return a null of a type."""
    if ty.kind in ("null", "never"):
        return Code("null", NULL)
    return Code(f"(null AS {records.written(ty.optional())})", ty.optional())


def number(text: str) -> Code:
    """Return a number literal."""
    return Code(text, NUMBER, NEGATE if text.startswith("-") else PRIMARY, is_literal=True)


def _let_value(code: Code) -> str:
    """Return the value of a LET: the word IN ends it, so a membership or a binder inside needs parentheses."""
    return f"({code.text})" if " IN " in code.text and code.level < PRIMARY else code.text


class Builder:
    """Makes expressions: fresh names, guards, conversions between types."""

    def __init__(self, records: Records, taken: set[str]) -> None:
        self.records = records
        self.taken = taken
        self.helpers: dict[str, tuple[str, dict[str, str], str, str]] = {}
        """Functions for times: name, parameters, returned type and value."""

    def helper(self, name: str) -> str:
        """Return the name of a function for times, which the node then declares."""
        if name not in self.helpers:
            parameters, returns, value = HELPERS[name]
            moment = {"Moment": MOMENT, "ClockTime": CLOCK}.get(returns)
            self.helpers[name] = (
                self.fresh(name), parameters, returns if moment is None else self.records.name(moment), value,
            )  # fmt: skip
        return self.helpers[name][0]

    def fresh(self, hint: str) -> str:
        """Return a name that no other part of the node has."""
        name = node_name(hint, self.taken)
        self.taken.add(name)
        return name

    def decimal(self, code: Code) -> Code:
        """Return a number whose type is decimal without context: a whole literal gets a point."""
        if code.is_literal and code.ty.kind == "number" and _WHOLE.match(code.text):
            return replace(code, text=f"{code.text}.0")
        return code

    def close(self, code: Code) -> Code:
        """Return the expression with its guards and names: a value that can be used anywhere."""
        if code.closure is not None or code.range is not None:
            return code
        code = self.decimal(code)
        if not code.steps:
            return code
        text, ty = code.text, code.ty
        for is_let, group in groupby(reversed(code.steps), lambda step: isinstance(step, Let)):
            parts = [step.written() for step in reversed(list(group))]
            if is_let:
                text = f"LET {', '.join(parts)} IN {text}"
            else:
                text = f"IF {' OR '.join(parts)} THEN null ELSE {text}"
                ty = ty.optional()
        return Code(text, ty, LOOSE, fields=code.fields)

    def named(self, code: Code, hint: str = "item") -> Code:
        """Return a path to the value: itself, or a new name for it."""
        if code.is_path or code.closure is not None or code.range is not None:
            return code
        if code.is_literal and not code.steps:
            return code
        closed = self.close(code)
        name = self.fresh(hint)
        ty = closed.ty
        text = _let_value(closed)
        if ty.kind == "null":
            text = f"(null AS {self.records.written(ty)})"
        return Code(name, ty, PRIMARY, (Let(name, text),), is_path=True, fields=code.fields)

    def core(self, code: Code, hint: str) -> Code:
        """Give the guarded part of an expression a name, inside its guards."""
        if code.is_path or (code.is_literal and not code.steps):
            return code
        code = self.decimal(code)
        name = self.fresh(hint)
        return Code(name, code.ty, steps=(*code.steps, Let(name, _let_value(code))), is_path=True)

    def bound(self, code: Code, hint: str) -> tuple[Code, tuple[Guard | Let, ...]]:
        """Return a path or literal without steps for a value that several closed expressions use, and its names."""
        if code.closure is not None or code.range is not None or code.fields is not None:
            return code, ()
        if not code.steps and (code.is_path or code.is_literal):
            return code, ()
        named = self.named(Code(code.text, code.ty, code.level, code.steps), hint)
        return replace(named, steps=()), named.steps

    def within(self, steps: tuple[Guard | Let, ...], code: Code) -> Code:
        """Put names around an expression that uses them."""
        if not steps or code.closure is not None or code.range is not None:
            return code
        kept = tuple(step for step in code.steps if step not in steps)
        return replace(code, steps=(*steps, *kept), is_path=False)

    def strict(self, code: Code, hint: str = "item") -> Code:
        """Return the value without null; a null becomes a guard."""
        if not code.ty.is_nullable:
            return code
        code = self.named(code, hint)
        guard = Guard(f"{code.text} IS NULL")
        steps = code.steps if guard in code.steps else (*code.steps, guard)
        return replace(code, ty=code.ty.required(), steps=steps)

    def combine(self, parts: list[Code], text: str, ty: Ty, level: int = PRIMARY) -> Code:
        """Return an expression over parts, with the guards and names of all of them."""
        steps: list[Guard | Let] = []
        for part in parts:
            steps += [step for step in part.steps if step not in steps]
        return Code(text, ty, level, tuple(steps))

    def guarded(self, code: Code, *conditions: str) -> Code:
        """Add conditions under which the value is null."""
        added = tuple(Guard(each) for each in conditions if Guard(each) not in code.steps)
        return replace(code, steps=(*code.steps, *added))

    def function(self, name: str, arguments: list[Code], ty: Ty, *more: str) -> Code:
        """Return a call of a function of Vesper with values that are not null."""
        values = [self.decimal(self.strict(each)) for each in arguments]
        texts = [*(each.text for each in values), *more]
        return self.combine(values, f"{name}({', '.join(texts)})", ty)

    def convert(self, code: Code, ty: Ty) -> Code | None:
        """Return the value as a type that holds its own type; None where it does not."""
        have = code.value_type
        if have == ty or have.optional() == ty:
            return self.close(code)
        if ty.kind == "any":
            return self.to_any(code)
        if have.kind == "null":
            return null(ty, self.records) if ty.is_nullable else None
        if unify(ty, have) != ty:
            return None
        closed = self.close(code)
        if have.required() == ty.required():
            return closed
        if have.kind == "list":
            if have.item.kind == "never":
                return Code(f"([] AS {self.records.written(ty.required())})", ty.required())
            return self._convert_items(closed, ty)
        if have.kind == "context":
            return self._convert_fields(closed, ty)
        return None

    def _convert_items(self, code: Code, ty: Ty) -> Code | None:
        source = self.strict(code, "items")
        name = self.fresh("item")
        item = self.convert(Code(name, source.ty.item, is_path=True), ty.item)
        if item is None:
            return None
        written = self.records.written(ty.item)
        body = f"({item.text}) AS {written}" if ty.item.is_nullable else item.text
        return self.close(self.combine([source], f"[{body} FOR {name} IN {source.at(ADD)}]", ty.required()))

    def _convert_fields(self, code: Code, ty: Ty) -> Code | None:
        source = self.core(self.strict(code, "context"), "context")
        inside, own = field_names(ty), field_names(source.ty)
        parts = []
        for name, wanted in zip(ty.names, ty.items, strict=True):
            have = source.ty.field(name)
            assert have is not None
            part = self.convert(Code(f"{source.text}.{own[name]}", have, is_path=True), wanted)
            if part is None:
                return None
            parts.append(f"{inside[name]}: {part.at(OR)}")
        text = f"({{{', '.join(parts)}}} AS {self.records.written(ty.required())})"
        return self.close(self.combine([source], text, ty.required()))

    def to_any(self, code: Code) -> Code:
        """Return the value as a json: numbers as numbers, null as the null of JSON."""
        have = code.value_type
        if have.kind == "any" and not have.is_nullable:
            return self.close(code)
        if not fits_json(have):
            raise Refusal("not supported", f"a {have.describe()} among values of other types")
        if have.kind in ("null", "never"):
            return Code("parse_json('null')", ANY)
        if have.is_nullable:
            path = self.named(code, "item")
            inner = self.to_any(replace(path, ty=path.ty.required(), steps=()))
            text = f"IF {path.text} IS NULL THEN parse_json('null') ELSE {inner.text}"
            return self.close(Code(text, ANY, LOOSE, path.steps))
        code = self.decimal(code)
        match have.kind:
            case "number":
                return self.close(
                    replace(
                        code,
                        text=f"parse_json(text({code.text}))",
                        ty=ANY,
                        level=PRIMARY,
                        is_path=False,
                        is_literal=False,
                    )
                )
            case "list":
                if have.item.kind == "never":
                    return Code("parse_json('[]')", ANY)
                name = self.fresh("item")
                item = self.to_any(Code(name, have.item, is_path=True))
                return self.close(self.combine([code], f"to_json([{item.text} FOR {name} IN {code.at(ADD)}])", ANY))
            case "context":
                path = self.core(code, "context")
                names = field_names(have)
                parts = []
                for name, ty in zip(have.names, have.items, strict=True):
                    part = self.to_any(Code(f"{path.text}.{names[name]}", ty, is_path=True))
                    key = self.string(name)
                    if not key.is_literal:
                        raise Refusal("not supported", "a key with quotes or line breaks in a value of any type")
                    parts.append(f"{key.text}: {part.at(OR)}")
                return self.close(self.combine([path], f"to_json({{{', '.join(parts)}}})", ANY))
        return self.close(self.combine([code], f"to_json({code.text})", ANY))

    def from_any(self, code: Code, ty: Ty) -> Code:
        """Return a json as a type; a value of another kind is null, as in FEEL."""
        kinds = {"number": "decimal", "string": "string", "boolean": "boolean"}
        source = self.core(self.strict(code, "item"), "item")
        if ty.kind in kinds:
            source = self.guarded(source, f"kind({source.text}) != '{ty.kind}'")
            return self.combine([source], f"CAST({source.text} AS {kinds[ty.kind]})", ty.required())
        if ty.kind == "list" and ty.item.kind == "any":
            source = self.guarded(source, f"kind({source.text}) != 'array'")
            return self.combine([source], f"CAST({source.text} AS array<json>)", list_of(ANY))
        raise Refusal("not supported", f"a value of any type where a {ty.describe()} is needed")

    def any_items(self, code: Code) -> Code:
        """Return the items of a json: those of an array, none of null, and any other value alone."""
        value = self.core(self.strict(code, "item"), "item")
        kind = f"kind({value.text})"
        text = (
            f"IF {kind} == 'array' THEN CAST({value.text} AS array<json>) "
            f"ELSE IF {kind} == 'null' THEN [] ELSE [{value.text}]"
        )
        return self.close(self.combine([value], text, list_of(ANY), LOOSE))

    def string(self, text: str) -> Code:
        """Return a string literal."""
        found = string_literal(text)
        has_parts = ("'" in text and '"' in text) or "\n" in text or "\r" in text
        return Code(found, STRING, ADD if has_parts else PRIMARY, is_literal=not has_parts)
