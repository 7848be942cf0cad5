"""A drawn node as data, and its `.vsp` text. Removing a part of the data removes its text.

Scalars are written in any YAML style, selected by the text alone, so that removing other parts does not change them.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from vesper.values.types import Type
from vesper.verify.programs.terms import Term
from vesper.verify.programs.types import quote_yaml, type_text

_PLAIN = re.compile(r"[A-Za-z0-9_(]([A-Za-z0-9_().=<>+*?'\"\-]| (?!#))*(?<! )", re.ASCII)
_FLOW = re.compile(r"[A-Za-z0-9_(]([A-Za-z0-9_().=<>+*'\"\-]| (?!#))*(?<! )", re.ASCII)


@dataclass(frozen=True, slots=True)
class DrawnRecord:
    name: str
    fields: tuple[tuple[str, Type], ...]
    constraints: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class DrawnInput:
    name: str
    type: Type
    constraints: tuple[str, ...]
    default: str | None
    written: str | None = None
    """Text of the type if it is a name."""


@dataclass(frozen=True, slots=True)
class DrawnNamed:
    """A named type that is not a record."""

    name: str
    type: Type
    constraints: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DrawnFunction:
    name: str
    params: tuple[tuple[str, Type], ...]
    returns: Type
    value: Term


@dataclass(frozen=True, slots=True)
class DrawnConstant:
    name: str
    type: Type
    value: str


@dataclass(frozen=True, slots=True)
class DrawnCompute:
    """One value or a block of values; a mapping is a record and a list an array, as YAML."""

    values: tuple[tuple[str, Written], ...]
    is_block: bool


@dataclass(frozen=True, slots=True)
class DrawnTable:
    name: str
    rows: tuple[tuple[Term, Term], ...]
    otherwise: Term


@dataclass(frozen=True, slots=True)
class DrawnFlow:
    """Any other step, by fields."""

    fields: Mapping[str, Tree]


Written: TypeAlias = "Term | list[Term] | dict[str, Term]"
Tree: TypeAlias = "Term | str | list[Tree] | dict[str, Tree]"
"""YAML: an expression or template, verbatim text, a list or a mapping."""
DrawnStep: TypeAlias = DrawnCompute | DrawnTable | DrawnFlow


@dataclass(frozen=True, slots=True)
class Draft:
    """A whole node."""

    node_id: str
    records: tuple[DrawnRecord, ...]
    inputs: tuple[DrawnInput, ...]
    constants: tuple[DrawnConstant, ...]
    outputs: tuple[tuple[str, Type], ...]
    preconditions: tuple[Term, ...]
    steps: tuple[DrawnStep, ...]
    returned: tuple[tuple[str, Term | None], ...]
    """Value of each output; None for the step of its name. Written as a list if all are None.

    Empty if the last step leaves the node on every way."""
    postconditions: tuple[Term, ...]
    named: tuple[DrawnNamed, ...] = ()
    functions: tuple[DrawnFunction, ...] = ()
    type: str = "function"
    error_codes: tuple[str, ...] = ()
    """Members of `error_code`; empty for a node without declared errors."""
    invariants: tuple[Term, ...] = ()
    capabilities: tuple[str, ...] = ()

    def text(self) -> str:
        return "\n".join(_lines(self)) + "\n"


def _choice(text: str, ways: int) -> int:
    return zlib.crc32(text.encode("utf-8", "surrogatepass")) % ways


def scalar(text: str, in_flow: bool = False) -> str:
    """Return a text on one line, in a YAML style that reads back exactly."""
    way = _choice(text, 4)
    if (_FLOW if in_flow else _PLAIN).fullmatch(text) and way > 0:
        return text
    if _is_plain_text(text) and way != 1:
        return "'" + text.replace("'", "''") + "'"
    return quote_yaml(text)


def _is_plain_text(text: str) -> bool:
    """Return whether a text has no characters that YAML treats as line breaks or skips."""
    return text.isprintable() and "\ufeff" not in text


def _entry(margin: str, key: str, text: str) -> Iterator[str]:
    """Yield `key: expression`; a long one may be folded below its key."""
    # In a template, quotes may be literal, so open strings in holes cannot be recognised.
    is_template = key in ("template", "message", "note", "text", "endpoint")
    is_foldable = len(text) > 60 and "  " not in text and _is_plain_text(text) and not is_template
    if not is_foldable or _choice(text, 3) > 0:
        yield f"{margin}{key}: {scalar(text)}"
        return
    yield f"{margin}{key}: >-"
    inside = " " * (len(margin) + 4)
    yield from (inside + line for line in _fold(text))


def _fold(text: str) -> list[str]:
    """Fold a text at single spaces, never so that a line starts or ends with one."""
    lines = [""]
    quote = ""
    for word in re.split("( )", text):
        if word == " " and len(lines[-1]) > 50 and not quote:
            lines.append("")
            continue
        lines[-1] += word
        for character in word:
            if quote:
                quote = "" if character == quote else quote
            elif character in "'\"":
                quote = character
    return lines


def _lines(draft: Draft) -> Iterator[str]:
    yield f"node_id: {draft.node_id}"
    yield f"type: {draft.type}"
    yield "intent: A random program"
    if draft.records or draft.named:
        yield "types:"
        for named in draft.named:
            yield f"  {named.name}: {{type: {type_text(named.type)}, constraints: [{', '.join(named.constraints)}]}}"
        for record in draft.records:
            yield f"  {record.name}:"
            yield "    fields:"
            yield from (f"      {name}: {scalar(type_text(type_))}" for name, type_ in record.fields)
            yield from _clauses("    ", "constraints", record.constraints)
    if draft.inputs:
        yield "inputs:"
        for each in draft.inputs:
            yield from _input(each)
    yield "outputs:"
    yield "  success:"
    yield from (f"    {name}: {scalar(type_text(type_))}" for name, type_ in draft.outputs)
    if draft.error_codes:
        yield "  error:"
        yield f"    error_code: enum[{', '.join(draft.error_codes)}]"
        yield "    message: string"
    if draft.constants:
        yield "constants:"
        for constant in draft.constants:
            type_ = scalar(type_text(constant.type), in_flow=True)
            yield f"  {constant.name}: {{type: {type_}, value: {constant.value}}}"
    if draft.functions:
        yield "functions:"
        for function in draft.functions:
            yield from _function(function)
    if draft.preconditions or draft.postconditions or draft.invariants:
        yield "contracts:"
        yield from _clauses("  ", "preconditions", draft.preconditions)
        yield from _clauses("  ", "postconditions", draft.postconditions)
        yield from _clauses("  ", "invariants", draft.invariants)
    yield "flow:"
    for step in draft.steps:
        yield from _step(step)
    yield from _return(draft)
    if draft.capabilities:
        yield "security:"
        yield f"  capabilities_required: [{', '.join(draft.capabilities)}]"


def _step(step: DrawnStep) -> Iterator[str]:
    match step:
        case DrawnTable():
            yield from _table(step)
        case DrawnCompute():
            yield from _compute(step)
        case DrawnFlow(fields):
            yield from _item("  ", dict(fields))


def _function(each: DrawnFunction) -> Iterator[str]:
    yield f"  {each.name}:"
    if each.params:
        yield "    params:"
        yield from (f"      {name}: {scalar(type_text(type_))}" for name, type_ in each.params)
    yield f"    returns: {scalar(type_text(each.returns))}"
    yield from _entry("    ", "value", str(each.value))


def _input(each: DrawnInput) -> Iterator[str]:
    written = scalar(each.written or type_text(each.type))
    if not each.constraints and each.default is None:
        yield f"  {each.name}: {written}"
        return
    yield f"  {each.name}:"
    yield f"    type: {written}"
    if each.constraints:
        yield f"    constraints: [{', '.join(each.constraints)}]"
    if each.default is not None:
        yield f"    default: {each.default}"


def _clauses(margin: str, key: str, clauses: tuple[Term, ...]) -> Iterator[str]:
    if clauses:
        yield f"{margin}{key}:"
        yield from (f"{margin}  - {scalar(str(each))}" for each in clauses)


def _compute(step: DrawnCompute) -> Iterator[str]:
    if step.is_block:
        yield "  - operation: compute"
        yield "    compute:"
        for name, value in step.values:
            yield from _value("      ", name, value)
        return
    for name, value in step.values:
        yield f"  - step: {name}"
        yield "    operation: compute"
        yield from _value("    ", "value", value)


def _value(margin: str, key: str, value: Written) -> Iterator[str]:
    match value:
        case Term():
            yield from _entry(margin, key, str(value))
        case []:
            yield f"{margin}{key}: []"
        case list():
            yield f"{margin}{key}:"
            yield from (f"{margin}  - {scalar(str(each))}" for each in value)
        case _:
            yield f"{margin}{key}:"
            for name, each in value.items():
                yield from _entry(f"{margin}  ", name, str(each))


def _tree(margin: str, key: str, value: Tree) -> Iterator[str]:
    match value:
        case Term():
            yield from _entry(margin, key, str(value))
        case str():
            yield f"{margin}{key}: {value}"
        case list() if not value:
            yield f"{margin}{key}: []"
        case list():
            yield f"{margin}{key}:"
            for each in value:
                yield from _item(f"{margin}  ", each)
        case _:
            yield f"{margin}{key}:"
            for name, each in value.items():
                yield from _tree(f"{margin}  ", name, each)


def _item(margin: str, value: Tree) -> Iterator[str]:
    """Yield the lines of one list entry."""
    assert not isinstance(value, list), "no field has lists of lists"
    if not isinstance(value, dict):
        yield f"{margin}- {scalar(str(value)) if isinstance(value, Term) else value}"
        return
    lines = [line for key, each in value.items() for line in _tree(f"{margin}  ", key, each)] or ["{}"]
    yield f"{margin}- {lines[0].removeprefix(margin + '  ')}"
    yield from lines[1:]


def _table(step: DrawnTable) -> Iterator[str]:
    yield f"  - step: {step.name}"
    yield "    operation: decision_table"
    yield "    rows:"
    for when, then in step.rows:
        if _choice(str(when), 2):
            yield f"      - {{when: {scalar(str(when), in_flow=True)}, then: {scalar(str(then), in_flow=True)}}}"
        else:
            yield from _entry("      - ", "when", str(when))
            yield from _entry("        ", "then", str(then))
    yield f"      - {{otherwise: {scalar(str(step.otherwise), in_flow=True)}}}"


def _return(draft: Draft) -> Iterator[str]:
    if not draft.returned:
        return
    yield "  - operation: return"
    if all(value is None for _, value in draft.returned):
        yield f"    success: [{', '.join(name for name, _ in draft.returned)}]"
        return
    yield "    success:"
    for name, value in draft.returned:
        yield from _entry("      ", name, name if value is None else str(value))
