"""Diagnostics for types in a foreign spelling, and for types with parts that stand elsewhere in Vesper.

These parts are a length in brackets, a default, and a record in braces.
"""

from __future__ import annotations

import re

from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.diagnostics.source import SourceFile, Span
from vesper.language.syntax.habits.type_forms import respell_type
from vesper.language.syntax.scalar_text import PlacedText
from vesper.language.syntax.yaml.reader import recover_yaml
from vesper.language.syntax.yaml_tree import Mapping, Scalar, Tree

_SIZED = re.compile(r"[A-Za-z]+ ?\( *(?P<size>[0-9]+) *(?:, *(?P<places>[0-9]+) *)?\)")
_DEFAULT = re.compile(r"(?P<type>[^=]*[^=\s]) *:?= *(?P<value>[^=].*|)")
_RECORD = re.compile(r"\{(?P<fields>[^{}]*)\}")
_LITERAL = re.compile(r"-?[0-9]+(?:\.[0-9]+)?|true|false|[A-Za-z_][A-Za-z0-9_ .-]*")
_MAX_DIGITS = 18
_MAX_TEXT = 1_000
"""Maximum length of a type that is translated, in characters."""


def rescue_type(scalar: Scalar, bag: DiagnosticBag, before: int) -> PlacedText | None:
    """Report a type in a foreign spelling, and return the intended type.

    The report replaces the errors since `before`.
    """
    if len(scalar.text) > _MAX_TEXT:
        return None
    if _RECORD.search(scalar.text):
        return _report_record(scalar, bag, before)
    default = _DEFAULT.fullmatch(scalar.text)
    if default is not None:
        return _report_default(scalar, default, bag, before)
    sized = _SIZED.fullmatch(scalar.text.strip())
    if "(" in scalar.text and ")" not in scalar.text:  # inside `{…}` YAML cuts it at the comma
        sized = _SIZED.match(bag.source.text, scalar.span.start)
        scalar = scalar if sized is None else Scalar(sized[0], "", Span(*sized.span()))
    meant = respell_type(scalar.text)
    if meant is None:
        return None
    help_ = f"write `{meant}`" + ("" if sized is None else f": {_size_note(meant, sized['size'], sized['places'])}")
    return _report(scalar, bag, before, meant, meant, help_)


def _report(scalar: Scalar, bag: DiagnosticBag, before: int, shown: str, meant: str, help_: str) -> PlacedText:
    bag.retract(before)
    bag.error(Code.OTHER_SPELLING, scalar.span, help=help_, written=scalar.text, meant=shown)
    return PlacedText(meant, [scalar.span.start] * len(meant), scalar.span.end)


def _size_note(type_: str, size: str, places: str | None) -> str:
    if type_ == "string":
        constraint = f"{{max_length: {size}}}"
    elif type_ in ("decimal", "integer") and int(places or 0) < int(size) <= _MAX_DIGITS:
        digits = "9" * int(size)
        whole, fraction = (
            (digits, "") if not int(places or 0) else (digits[int(places or 0) :], digits[: int(places or 0)])
        )
        constraint = f"{{max: {whole}{'.' * bool(fraction)}{fraction}}}"
    else:
        return f"`{type_}` has no size in brackets"
    what = "length" if type_ == "string" else "precision"
    return (
        f"`{type_}` has no {what} in brackets; an input has a limit as `{{type: {type_}, constraints: [{constraint}]}}`"
    )


# -- defaults -------------------------------------------------------------------------------------


def _report_default(scalar: Scalar, found: re.Match[str], bag: DiagnosticBag, before: int) -> PlacedText | None:
    type_ = respell_type(found["type"]) or found["type"]
    value = found["value"].strip()
    if re.fullmatch(r"null|None|NULL", value):
        declared = f"{{type: {type_}, required: false}}"
    else:
        declared = f"{{type: {_in_braces(type_)}, default: {_as_literal(value)}}}"
    if _section(bag.source, scalar.span) != "inputs":
        help_ = f"write `{type_}`: a type has no default; only an input has one: `{declared}`"
        return _report(scalar, bag, before, type_, type_, help_)
    help_ = f"write `{declared}`: a default is not part of a type"
    return _report(scalar, bag, before, declared, type_, help_)


def _in_braces(type_: str) -> str:
    return f'"{type_}"' if set(type_) & set(",[]{}") else type_


def _as_literal(value: str) -> str:
    """Return a default as YAML inside braces: a text without its quotes where it needs none."""
    if re.fullmatch(r"'[^']*'|\"[^\"]*\"", value):
        inner = value[1:-1]
        is_word = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_ -]*[A-Za-z0-9_]|[A-Za-z]", inner) is not None
        return inner if is_word else value
    return value if _LITERAL.fullmatch(value) or value in ("[]", "{}") else f"'{value}'" if "'" not in value else value


def _section(source: SourceFile, span: Span) -> str:
    keys = re.findall(r"^([a-z_]+):", source.text[: span.start], re.MULTILINE)
    return keys[-1] if keys else ""


# -- records --------------------------------------------------------------------------------------


def _report_record(scalar: Scalar, bag: DiagnosticBag, before: int) -> PlacedText | None:
    meant, is_declared, help_ = named_record(scalar.text, bag.source, scalar.span.start)
    if not is_declared:
        bag.retract(before)
        at = bag.source.text.find("{", scalar.span.start, scalar.span.end)
        span = Span(at, at + 1) if at >= 0 else scalar.span
        bag.error(Code.EXPRESSION_SYNTAX, span, expected="the name of a type", found="a record in braces", help=help_)
        return None
    return _report(scalar, bag, before, meant, meant, help_)


def named_record(text: str, source: SourceFile, offset: int) -> tuple[str, bool, str]:
    """Return a type with the name of a record instead of its fields, whether the name is declared, and the help."""
    found = _RECORD.search(text)
    assert found is not None
    fields = _fields_of(found["fields"])
    types = _declared_records(source, offset)
    name = next((each for each, declared in types.items() if declared == fields), None)
    meant = _RECORD.sub(name or _new_name(source, offset, types), text, count=1).strip()
    if name is not None:
        return meant, True, f"write `{meant}`: the record is declared under `types:` as `{name}`"
    new = _new_name(source, offset, types)
    shown = ", ".join(f"{key}: {_in_braces(type_)}" for key, type_ in fields)
    return (
        meant,
        False,
        f"a record has a name: write `{new}: {{fields: {{{shown}}}}}` under `types:`, and here `{meant}`",
    )


def _fields_of(text: str) -> tuple[tuple[str, str], ...]:
    pairs = re.findall(r"([A-Za-z_][A-Za-z0-9_]*) *: *((?:[^,<\[]|<[^<>]*>|\[[^\]]*\])+)", text)
    return tuple((key, respell_type(type_.strip()) or type_.strip()) for key, type_ in pairs)


def _declared_records(source: SourceFile, offset: int) -> dict[str, tuple[tuple[str, str], ...]]:
    """Return the fields of the records under `types:`. None of them if that section is the place of the fault."""
    section = re.search(r"^types:.*\n(?:[ #].*\n|\n)*", source.text, re.MULTILINE)
    if section is None or section.start() <= offset < section.end():
        return {}
    types = _child(recover_yaml(SourceFile(source.path, section[0]))[0], "types")
    found = {}
    for name, declared in types.entries if isinstance(types, Mapping) else ():
        fields = _child(declared, "fields")
        pairs = fields.entries if isinstance(fields, Mapping) else ()
        found[name.text] = tuple((key.text, value.text if isinstance(value, Scalar) else "") for key, value in pairs)
    return found


def _child(tree: Tree | None, key: str) -> Tree | None:
    entries = tree.entries if isinstance(tree, Mapping) else ()
    return next((value for name, value in entries if name.text == key), None)


def _new_name(source: SourceFile, offset: int, taken: dict[str, tuple[tuple[str, str], ...]]) -> str:
    """Return a name for the record, from the name of the declaration: `order_lines` gives `OrderLine`."""
    line = source.line_text(source.position(offset)[0])
    key = re.match(r"[ -]*([a-z][a-z0-9_]*) *:", line)
    words = ["item"] if key is None else key[1].split("_")
    name = "".join(each.capitalize() for each in words)
    name = name[:-1] if name.endswith("s") and not name.endswith("ss") else name
    return name if name not in taken else f"{name}Item"
