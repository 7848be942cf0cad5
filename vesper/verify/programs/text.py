"""A drawn node as data, and its `.vsp` text. Removing a part of the data removes its text.

Scalars are written in any YAML style, selected by the text alone, so that removing other parts does not change them.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from vesper.language.syntax.shapes import IMPLIED, SHORT
from vesper.values.types import Enum, Outside, Type
from vesper.verify.programs.terms import Term
from vesper.verify.programs.types import quote_yaml, type_text

_PLAIN = re.compile(r"[A-Za-z0-9_(]([A-Za-z0-9_().=<>+*?'\"\-]| (?!#))*(?<! )", re.ASCII)
_FLOW = re.compile(r"[A-Za-z0-9_(]([A-Za-z0-9_().=<>+*'\"\-]| (?!#))*(?<! )", re.ASCII)


@dataclass(frozen=True, slots=True)
class DrawnRecord:
    name: str
    fields: tuple[tuple[str, Type], ...]
    constraints: tuple[Term, ...]
    outside: Outside | None = None


@dataclass(frozen=True, slots=True)
class DrawnInput:
    name: str
    type: Type
    constraints: tuple[str, ...]
    default: str | None
    written: str | None = None
    """Text of the type if it is a name."""
    outside: str | None = None
    flag: str | None = None
    """Another input of the draft, which is its flag."""


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
    max_depth: int | None = None
    """Bound of the calls of a recursive function."""


@dataclass(frozen=True, slots=True)
class DrawnConstant:
    name: str
    type: Type
    value: str


@dataclass(frozen=True, slots=True)
class DrawnParameter:
    name: str
    type: Type | str
    """Type of its values, or the kind of scale."""
    entries: tuple[tuple[str, str], ...]
    """Date and YAML text of each value."""


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
    """A random step of any kind as a mapping of its fields, if it is no `DrawnCompute` or `DrawnTable`."""

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
    parameters: tuple[DrawnParameter, ...] = ()
    outside: Outside = field(default_factory=Outside)
    """Outside names and flags of the outputs."""

    def text(self) -> str:
        return "\n".join(_lines(self)) + "\n"


def error_codes(tree: Tree) -> Iterator[str]:
    """Yield the members of `error_code` that the steps in a tree raise."""
    if isinstance(tree, dict):
        if isinstance(code := tree.get("error_code"), str):
            yield code
        for each in tree.values():
            yield from error_codes(each)
    elif isinstance(tree, list):
        for each in tree:
            yield from error_codes(each)


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
            yield from _named(named)
        for record in draft.records:
            yield f"  {record.name}:"
            yield "    fields:"
            yield from _fields("      ", record.fields, record.outside or Outside())
            if record.outside is not None and record.outside.rest is not None:
                yield "    open: true"
            yield from _clauses("    ", "constraints", record.constraints)
    if draft.inputs:
        yield "inputs:"
        flags = {each.flag for each in draft.inputs}
        for each in draft.inputs:
            if each.name not in flags:
                yield from _input(each)
    yield "outputs:"
    yield "  success:"
    yield from _fields("    ", draft.outputs, draft.outside)
    if draft.error_codes:
        yield "  error:"
        yield f"    error_code: enum[{', '.join(draft.error_codes)}]"
        yield "    message: string"
    if draft.parameters:
        yield "parameters:"
        for parameter in draft.parameters:
            is_scale = isinstance(parameter.type, str)
            written = parameter.type if isinstance(parameter.type, str) else type_text(parameter.type)
            yield f"  {parameter.name}:"
            yield f"    {'scale' if is_scale else 'type'}: {written if is_scale else scalar(written)}"
            yield "    since:"
            for since, value in parameter.entries:
                yield f"      {since}: {{value: {value}}}"
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


def _named(named: DrawnNamed) -> Iterator[str]:
    if isinstance(named.type, Enum):
        texts = dict(zip(named.type.members, named.type.outside, strict=False))
        listed = ", ".join(f"{quote_yaml(name)}: {quote_yaml(text)}" for name, text in texts.items())
        yield f"  {named.name}: {{type: {quote_yaml(type_text(named.type))}, as: {{{listed}}}}}"
        return
    yield f"  {named.name}: {{type: {type_text(named.type)}, constraints: [{', '.join(named.constraints)}]}}"


def _fields(margin: str, fields: tuple[tuple[str, Type], ...], outside: Outside) -> Iterator[str]:
    """Write fields or outputs. Flags and undeclared keys are written with what they belong to."""
    names, flags = dict(outside.names), dict(outside.flags)
    for name, type_ in fields:
        if name in outside.hidden():
            continue
        written = scalar(type_text(type_))
        if name not in names and name not in flags:
            yield f"{margin}{name}: {written}"
            continue
        yield f"{margin}{name}:"
        yield f"{margin}  type: {written}"
        yield from _outside(margin, names.get(name), flags.get(name))


def _outside(margin: str, outside: str | None, flag: str | None) -> Iterator[str]:
    if outside is not None:
        yield f"{margin}  as: {quote_yaml(outside)}"
    if flag is not None:
        yield f"{margin}  absent: {flag}"


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
    if each.max_depth is not None:
        yield f"    max_depth: {each.max_depth}"
    yield from _entry("    ", "value", str(each.value))


def _input(each: DrawnInput) -> Iterator[str]:
    written = scalar(each.written or type_text(each.type))
    if not each.constraints and each.default is None and each.outside is None and each.flag is None:
        yield f"  {each.name}: {written}"
        return
    yield f"  {each.name}:"
    yield f"    type: {written}"
    if each.constraints:
        yield f"    constraints: [{', '.join(each.constraints)}]"
    if each.default is not None:
        yield f"    default: {each.default}"
    yield from _outside("  ", each.outside, each.flag)


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
        if _choice(name, 2):
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
    lines = [line for key, each in _short(value).items() for line in _tree(f"{margin}  ", key, each)] or ["{}"]
    yield f"{margin}- {lines[0].removeprefix(margin + '  ')}"
    yield from lines[1:]


def _short(fields: dict[str, Tree]) -> dict[str, Tree]:
    """Return the fields of some steps without `operation`, where another key implies it."""
    operation = fields.get("operation")
    if not isinstance(operation, str) or _choice(str(fields.get("step", operation)), 2):
        return fields
    if operation in SHORT and SHORT[operation] in fields:
        own = {SHORT[operation]: operation}
        return {own.get(key, key): each for key, each in fields.items() if key != "operation"}
    implied = next((IMPLIED[key] for key in IMPLIED if key in fields), None)
    return {key: each for key, each in fields.items() if key != "operation" or implied != operation}


def _table(step: DrawnTable) -> Iterator[str]:
    yield f"  - step: {step.name}"
    if _choice(step.name, 2):
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
    head = "  - return:"
    if _choice(draft.node_id, 2):
        yield "  - operation: return"
        head = "    success:"
    if all(value is None for _, value in draft.returned):
        yield f"{head} [{', '.join(name for name, _ in draft.returned)}]"
        return
    yield head
    for name, value in draft.returned:
        yield from _entry("      ", name, name if value is None else str(value))
