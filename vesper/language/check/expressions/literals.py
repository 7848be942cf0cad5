"""Literals, read from source text with their declared type.

`0.10` for a decimal is exactly 0.10, and `NO` for a string is "NO".
"""

from __future__ import annotations

import re
from typing import final

from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.diagnostics.suggest import did_you_mean
from vesper.language.syntax.fields import expect_mapping, expect_scalar, expect_sequence
from vesper.language.syntax.yaml_tree import Scalar as YamlScalar
from vesper.language.syntax.yaml_tree import Sequence, Tree
from vesper.values.inputs import hidden_defaults
from vesper.values.json_value import Json, depth_of, parse_json
from vesper.values.literal_text import value_from_text
from vesper.values.model import (
    Key,
    ProblemKind,
    Value,
    ValueProblem,
    sorted_map,
)
from vesper.values.strict_json import MAX_JSON_DEPTH, JsonContent
from vesper.values.types import (
    JSON,
    ArrayOf,
    Enum,
    MapOf,
    OptionalOf,
    Record,
    Recursive,
    SetOf,
    Type,
)


@final
class Unread:
    """The result for an unreadable literal. The bag holds the reason."""


UNREAD = Unread()
MAX_TEXT = 64 * 1024
_JSON_TEXT_HELP = (
    "a json that is one quoted text is JSON text, in which a string has quotes of its own: "
    "`'\"text\"'` (rule `json-text` of the YAML profile)"
)
_NULLS = frozenset({"null", "~", ""})
"""Plain scalars that are null. In quotes they are text."""
_JSON_WORDS: dict[str, JsonContent] = {**dict.fromkeys(_NULLS), "true": True, "false": False}
_JSON_STARTS = ("{", "[", '"')
_UNLIKE_TEXT = re.compile(
    r"[-+]?\.?[0-9].*|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)|True|TRUE|False|FALSE|Null|NULL", re.DOTALL
)
"""Plain scalars inside a json that are JSON numbers or nothing: YAML readers take them for different values."""


def read_literal(type_: Type, tree: Tree, key: str, bag: DiagnosticBag) -> Value | Unread:
    """Return the value of a literal slot, or `UNREAD` after reporting an error. Null is a value."""
    match type_:
        case OptionalOf(inner):
            is_null = isinstance(tree, YamlScalar) and tree.style == "" and tree.text in _NULLS
            return None if is_null else read_literal(inner, tree, key, bag)
        case SetOf(element):
            items = _read_items(element, tree, key, bag)
            return items if isinstance(items, Unread) else _as_set(items, tree, bag)
        case ArrayOf(element):
            return _read_items(element, tree, key, bag)
        case MapOf():
            return _read_map(type_, tree, key, bag)
        case Record():
            return _read_record(type_, tree, key, bag)
        case Recursive():
            return read_literal(JSON, tree, key, bag)
        case _ if type_ == JSON and (not isinstance(tree, YamlScalar) or tree.style == ""):
            return _read_json(tree, key, bag)
        case _:
            return _read_scalar(type_, tree, key, bag)


def _read_scalar(type_: Type, tree: Tree, key: str, bag: DiagnosticBag) -> Value | Unread:
    scalar = expect_scalar(tree, key, bag)
    if scalar is None:
        return UNREAD
    if len(scalar.text) > MAX_TEXT // 4 and len(scalar.text.encode("utf-8")) > MAX_TEXT:
        bag.error(Code.TOO_LARGE, scalar.span, limit=f"{MAX_TEXT:,}", what="bytes in one literal")
        return UNREAD
    try:
        return value_from_text(type_, scalar.text)
    except ValueProblem as problem:
        if problem.kind is ProblemKind.NOT_A_MEMBER and isinstance(type_, Enum):
            help_ = did_you_mean(scalar.text, type_.members)
            bag.error(Code.NOT_A_MEMBER, scalar.span, name=scalar.text, type=type_, help=help_)
        else:
            help_ = _JSON_TEXT_HELP if type_ == JSON else None
            expected = f"a value of type {type_}"
            bag.error(Code.BAD_LITERAL, scalar.span, text=scalar.text, expected=expected, help=help_)
        return UNREAD


def _read_json(tree: Tree, key: str, bag: DiagnosticBag) -> Value | Unread:
    """Read a JSON literal as YAML 1.2 reads it. Only quoted text that is the whole literal is JSON text."""
    content = _json_content(tree, key, bag)
    if isinstance(content, Unread):
        return UNREAD
    if depth_of(content) > MAX_JSON_DEPTH:
        bag.error(Code.TOO_DEEP, tree.span, limit=MAX_JSON_DEPTH, what="nesting in this json")
        return UNREAD
    return Json(content)


def _json_content(tree: Tree, key: str, bag: DiagnosticBag) -> JsonContent | Unread:
    if isinstance(tree, YamlScalar):
        return _json_scalar(tree, bag)
    if isinstance(tree, Sequence):
        items = [_json_content(item, key, bag) for item in tree.items]
        known = [item for item in items if not isinstance(item, Unread)]
        return tuple(known) if len(known) == len(items) else UNREAD
    entries = {word.text: _json_content(value, word.text, bag) for word, value in tree.entries}
    read = {name: value for name, value in entries.items() if not isinstance(value, Unread)}
    return {name: read[name] for name in sorted(read)} if len(read) == len(entries) else UNREAD


def _json_scalar(scalar: YamlScalar, bag: DiagnosticBag) -> JsonContent | Unread:
    if scalar.style == "" and scalar.text in _JSON_WORDS:
        return _JSON_WORDS[scalar.text]
    if scalar.style != "":
        if scalar.style in "'\"" and scalar.text.startswith(_JSON_STARTS) and _is_json(scalar.text):
            bag.warning(Code.QUOTED_JSON, scalar.span, text=scalar.text)
        return scalar.text
    if not _UNLIKE_TEXT.fullmatch(scalar.text):
        return scalar.text
    try:
        return parse_json(scalar.text).content
    except ValueProblem:
        bag.error(Code.UNCLEAR_JSON, scalar.span, text=scalar.text)
        return UNREAD


def _is_json(text: str) -> bool:
    try:
        parse_json(text)
    except ValueProblem:
        return False
    return True


def _read_items(element: Type, tree: Tree, key: str, bag: DiagnosticBag) -> list[Value] | Unread:
    sequence = expect_sequence(tree, key, bag)
    if sequence is None:
        return UNREAD
    items = [read_literal(element, item, key, bag) for item in sequence.items]
    known = [item for item in items if not isinstance(item, Unread)]
    return known if len(known) == len(items) else UNREAD


def _as_set(members: list[Value], tree: Tree, bag: DiagnosticBag) -> Value | Unread:
    assert isinstance(tree, Sequence)
    found: set[Key] = set()
    for member, item in zip(members, tree.items, strict=True):
        assert isinstance(member, Key)
        if member in found:
            written = bag.source.slice(item.span)
            bag.error(Code.BAD_LITERAL, item.span, text=written, expected="a new member: the set has it already")
            return UNREAD
        found.add(member)
    return frozenset(found)


def _read_map(type_: MapOf, tree: Tree, key: str, bag: DiagnosticBag) -> Value | Unread:
    mapping = expect_mapping(tree, key, bag)
    if mapping is None:
        return UNREAD
    found: dict[Key, Value] = {}
    is_sound = True
    for word, value in mapping.entries:
        read_key = _read_scalar(type_.key, word, key, bag)
        read_value = read_literal(type_.value, value, word.text, bag)
        if isinstance(read_key, Unread) or isinstance(read_value, Unread):
            is_sound = False
            continue
        assert isinstance(read_key, Key)
        if read_key in found:
            bag.error(Code.DUPLICATE_KEY, word.span, key=word.text)
            is_sound = False
        found[read_key] = read_value
    return sorted_map(type_, found) if is_sound else UNREAD


def _read_record(type_: Record, tree: Tree, key: str, bag: DiagnosticBag) -> Value | Unread:
    mapping = expect_mapping(tree, key, bag)
    if mapping is None:
        return UNREAD
    given = {word.text: value for word, value in mapping.entries}
    names = [name for name, _ in type_.fields]
    for word, _ in mapping.entries:
        if word.text not in names:
            help_ = did_you_mean(word.text, names)
            bag.error(Code.UNKNOWN_KEY, word.span, where=f"the record {type_}", key=word.text, help=help_)
            return UNREAD
    found: dict[str, Value] = {}
    hidden = hidden_defaults(type_.outside, given)
    for name, field_type in type_.fields:
        if name not in given and name in hidden:
            found[name] = hidden[name]
            continue
        if name not in given and not isinstance(field_type, OptionalOf):
            bag.error(Code.MISSING_KEY, mapping.span, where=f"the record {type_}", key=name)
            return UNREAD
        value = read_literal(field_type, given[name], name, bag) if name in given else None
        if isinstance(value, Unread):
            return UNREAD
        found[name] = value
    return found
