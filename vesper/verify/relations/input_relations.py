"""Relations of inputs: an input in parts, from which the node computes it."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import partial

from vesper.language.diagnostics.source import Span
from vesper.language.ir.nodes import Input
from vesper.language.syntax import ast
from vesper.language.syntax.yaml_tree import Mapping as MappingTree
from vesper.language.syntax.yaml_tree import Scalar, Tree
from vesper.values.types import DECIMAL, INTEGER, Record
from vesper.verify.relations.layouts import block_text
from vesper.verify.relations.renaming import Spellings
from vesper.verify.relations.rewritings import Relation, Rewriting
from vesper.verify.relations.subject import Edits, Subject, entry, to_tree

_WORD = re.compile(r"[A-Za-z0-9]+")
Convert = Callable[[Mapping[str, object]], dict[str, object]]


def _plain_inputs(subject: Subject) -> list[tuple[Input, str]]:
    """Return the inputs without constraints and defaults, each with its type as written."""
    spellings = Spellings(subject)
    inputs = entry(subject.tree, "inputs")
    constrained = {each.name.text for each in subject.document.types if each.constraints}
    found = []
    for each in subject.compiled.node.inputs:
        written = entry(inputs, each.name)
        if not isinstance(written, Scalar) or spellings.kinds[each.name] != {"input"}:
            continue
        # Constraints of a type are numbered with those of the inputs, in their order.
        if each.name not in spellings.blocked and not constrained & set(_WORD.findall(written.text)):
            found.append((each, written.text))
    return found


def _replace_uses(subject: Subject, name: str, of_name: Callable[[str], str], edits: Edits) -> bool:
    """Replace every use of an input, bare or as `input.x`; False where one cannot be."""
    uses = Spellings(subject).spans[name]
    declared = next(each.name.span for each in subject.document.inputs if each.name.text == name)
    done = {(declared.start, declared.end)}
    for site in subject.sites:
        match site.expression:
            case ast.Field(base=ast.Name(text="input"), name=word) if word.text == name:
                done.add((word.span.start, word.span.end))
                if not edits.replace(site.span, of_name("input.")):
                    return False
            case ast.Name(text=text, span=span) if text == name and (span.start, span.end) not in done:
                done.add((span.start, span.end))
                if not edits.replace(Span(span.start, span.end), of_name("")):
                    return False
    return uses <= done


def _replace_input(subject: Subject, name: str, new: dict[str, str], convert: Convert, edits: Edits) -> Rewriting:
    """Return the rewriting that declares new inputs in the place of one."""
    inputs = entry(subject.tree, "inputs")
    assert isinstance(inputs, MappingTree)
    entries: list[tuple[Scalar, Tree]] = []
    for key, value in inputs.entries:
        added = to_tree(dict(new))
        assert isinstance(added, MappingTree)
        entries += added.entries if key.text == name else ((key, value),)
    edits.put(inputs, MappingTree(tuple(entries), inputs.span))
    return Rewriting(block_text(edits.tree()), convert)


def _wrap(subject: Subject, chance: random.Random) -> Rewriting | None:
    """Pass an input as the only field of a record."""
    plain = _plain_inputs(subject)
    if not plain:
        return None
    given, type_ = chance.choice(plain)
    field, name, edits = subject.fresh(chance, "field"), subject.fresh(chance, "wrapped"), Edits(subject)
    if not _replace_uses(subject, given.name, lambda base: f"{base}{name}.{field}", edits):
        return None
    edits.declare("types", f"Wrapped{len(subject.words)}", {"fields": {field: type_}})
    new = {name: f"Wrapped{len(subject.words)}"}
    return _replace_input(subject, given.name, new, partial(_convert_wrapped, given.name, name, field), edits)


def _convert_wrapped(old: str, name: str, field: str, inputs: Mapping[str, object]) -> dict[str, object]:
    return {**{each: value for each, value in inputs.items() if each != old}, name: {field: inputs.get(old)}}


def _split_record(subject: Subject, chance: random.Random) -> Rewriting | None:
    """Pass the fields of a record as inputs; build it where it is used."""
    has_constraints = any(each.constraints for each in subject.document.types)
    declared = {each.name.text: each for each in subject.document.types if isinstance(each, ast.RecordType)}
    plain = [(each, type_) for each, type_ in _plain_inputs(subject) if type_ in declared]
    if not plain or has_constraints:
        return None
    given, type_ = chance.choice(plain)
    assert isinstance(given.type, Record)
    names = {field: subject.fresh(chance, "part") for field, _ in given.type.fields}
    edits = Edits(subject)

    def build(base: str) -> str:
        return "{" + ", ".join(f"{field}: {base}{name}" for field, name in names.items()) + "}"

    if not _replace_uses(subject, given.name, build, edits):
        return None
    types = {part.name.text: subject.source.slice(part.type.span) for part in declared[type_].fields}
    new = {name: types[field] for field, name in names.items()}
    return _replace_input(subject, given.name, new, partial(_convert_record, given.name, names), edits)


def _convert_record(old: str, names: Mapping[str, str], inputs: Mapping[str, object]) -> dict[str, object]:
    record = inputs[old]
    assert isinstance(record, dict)
    parts = {name: record[field] for field, name in names.items() if field in record}
    return {**{each: value for each, value in inputs.items() if each != old}, **parts}


def _split_number(subject: Subject, chance: random.Random) -> Rewriting | None:
    """Pass a number as two inputs of which it is the sum."""
    plain = [each for each, _ in _plain_inputs(subject) if each.type in (INTEGER, DECIMAL)]
    if not plain:
        return None
    given = chance.choice(plain)
    names = subject.fresh(chance, "first"), subject.fresh(chance, "second")
    edits = Edits(subject)
    if not _replace_uses(subject, given.name, lambda base: f"({base}{names[0]} + {base}{names[1]})", edits):
        return None
    new = {name: str(given.type) for name in names}
    return _replace_input(subject, given.name, new, partial(_convert_number, given.name, names), edits)


def _convert_number(old: str, names: tuple[str, str], inputs: Mapping[str, object]) -> dict[str, object]:
    first, second = split_number(inputs[old])
    return {**{each: value for each, value in inputs.items() if each != old}, names[0]: first, names[1]: second}


def split_number(value: object) -> tuple[object, object]:
    """Return two numbers of one sign whose sum has the value's digits and places."""
    if isinstance(value, str):
        value = Decimal(value)
    if isinstance(value, int):
        half = abs(value) // 3 * (1 if value >= 0 else -1)
        return value - half, half
    assert isinstance(value, Decimal)
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    whole = int("".join(map(str, digits)))
    parts = whole - whole // 3, whole // 3
    first, second = (Decimal((sign if part else 0, tuple(map(int, str(part))), exponent)) for part in parts)
    return first, second


RELATIONS = (
    Relation("wrapped_inputs", "an input is the field of a record", _wrap),
    Relation("split_records", "a record is built from inputs of its fields", _split_record),
    Relation("split_numbers", "a number is the sum of two inputs", _split_number),
)
