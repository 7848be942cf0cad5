"""Functions of FEEL on strings."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from vesper.importers.dmn.code import ADD, LOOSE, Code
from vesper.importers.dmn.functions.registry import feel_function
from vesper.importers.dmn.temporal import temporal_text
from vesper.importers.dmn.types import BOOLEAN, NUMBER, STRING, list_of, type_error, unsupported

if TYPE_CHECKING:
    from vesper.importers.dmn.translate import Translator

TEXTS = list_of(STRING.optional())


@feel_function("string", "from", [None], STRING)
def _string(build: Translator, value: Code) -> Code:
    match value.ty.kind:
        case "string":
            return value
        case "number":
            inner = build.decimal(build.strict(value, "number"))
            return build.combine([inner], f"text(normalize({inner.text}))", STRING)
        case "boolean":
            return build.function("text", [value], STRING)
    if value.ty.kind in ("list", "context") and value.closure is None and value.fields is None:
        return _collection_text(build, value)
    found = temporal_text(build, value) if value.closure is None and value.range is None else None
    if found is None:
        raise unsupported(f"the text of a {value.ty.describe()}")
    return found


def _collection_text(build: Translator, value: Code) -> Code:
    """Return the text of a list or context as FEEL writes it: `[1, "a"]`, `{a: 1}`."""
    if value.ty.kind == "list" and value.ty.item.kind == "never":
        return Code("'[]'", STRING)
    if value.ty.kind == "list" and value.items and not value.steps:
        joined = " + ', ' + ".join(_part_text(build, item) for item in value.items)
        return Code(f"'[' + {joined} + ']'", STRING, ADD)
    source = build.strict(value, "items")
    if source.ty.kind == "list":
        item = build.fresh("item")
        text = _part_text(build, Code(item, source.ty.item, is_path=True))
        return build.combine([source], f"'[' + join([{text} FOR {item} IN {source.at(ADD)}], ', ') + ']'", STRING, ADD)
    source = build.core(source, "context")
    parts = []
    for name in source.ty.names:
        key = build.string(name if re.fullmatch(r"[A-Za-z_][\w ]*", name) else f'"{name}"')
        parts.append(f"{key.text} + ': ' + {_part_text(build, build.property(replace(source, steps=()), name))}")
    joined = " + ', ' + ".join(parts)
    return build.combine([source], f"'{{' + {joined} + '}}'", STRING, ADD)


def _part_text(build: Translator, code: Code) -> str:
    """Return the text of an item: a string in quotes, and null as a word."""
    if code.ty.kind == "null":
        return "'null'"
    if code.ty.kind not in ("number", "string", "boolean", "list", "context"):
        raise unsupported(f"the text of a {code.ty.describe()} in a list or context")
    found = build.close(_string(build, code))
    if code.ty.kind == "string":
        quoted = build.strict(code)
        escaped = f"""replace(replace({quoted.text}, '\\', '\\\\'), '"', '\\"')"""
        found = build.close(build.combine([quoted], f"""('"' + {escaped} + '"')""", STRING))
    return f"({found.text})" if not found.ty.is_nullable else f"(({found.text}) ?? 'null')"


@feel_function("string length", "string", [STRING], NUMBER)
def _length(build: Translator, value: Code) -> Code:
    value = build.strict(value, "text")
    return build.combine([value], f"(length({value.text}) AS decimal)", NUMBER)


@feel_function("upper case", "string", [STRING], STRING)
def _upper(build: Translator, value: Code) -> Code:
    return build.function("upper", [value], STRING)


@feel_function("lower case", "string", [STRING], STRING)
def _lower(build: Translator, value: Code) -> Code:
    return build.function("lower", [value], STRING)


@feel_function("contains", "string, match", [STRING, STRING], BOOLEAN)
def _contains(build: Translator, value: Code, part: Code) -> Code:
    return build.function("contains", [value, part], BOOLEAN)


@feel_function("starts with", "string, match", [STRING, STRING], BOOLEAN)
def _starts(build: Translator, value: Code, part: Code) -> Code:
    return build.function("starts_with", [value, part], BOOLEAN)


@feel_function("ends with", "string, match", [STRING, STRING], BOOLEAN)
def _ends(build: Translator, value: Code, part: Code) -> Code:
    return build.function("ends_with", [value, part], BOOLEAN)


@feel_function("substring", "string, start position, length?", [STRING, NUMBER, NUMBER], STRING)
def _substring(build: Translator, value: Code, start: Code, length: Code | None = None) -> Code:
    text = build.core(build.strict(value, "text"), "text")
    size = f"length({text.text})"
    start = build.strict(start, "start")
    parts = [text, start]
    if start.is_literal and start.text.lstrip("-").isdigit() and start.text.strip("-0"):
        first = str(int(start.text) - 1) if not start.text.startswith("-") else f"{size} - {start.text[1:]}"
        limit = f"{size} < {start.text.lstrip('-')}"
        parts[1] = build.guarded(start, limit)
    else:
        at = build.core(start, "start")
        at = build.guarded(at, f"{at.text} == 0", f"abs({at.text}) > {size}")
        first = f"(IF {at.text} > 0 THEN to_integer(trunc({at.text})) - 1 ELSE {size} + to_integer(trunc({at.text})))"
        parts[1] = at
    if length is None:
        return build.combine(parts, f"slice({text.text}, {first})", STRING)
    length = build.strict(length, "length")
    if length.is_literal and float(length.text) >= 1:
        count = str(int(float(length.text)))
    else:
        length = build.core(length, "length")
        length = build.guarded(length, f"{length.at(ADD)} < 1", f"{length.at(ADD)} > 1000000000")
        count = f"to_integer(trunc({length.text}))"
    end = str(int(first) + int(count)) if first.isdigit() and count.isdigit() else f"{first} + {count}"
    return build.combine([*parts, length], f"slice({text.text}, {first}, {end})", STRING)


@feel_function("substring before", "string, match", [STRING, STRING], STRING)
def _before(build: Translator, value: Code, part: Code) -> Code:
    text, match = build.core(build.strict(value), "text"), build.strict(part, "match")
    return build.combine([text, match], f"slice({text.text}, 0, index_of({text.text}, {match.text}) ?? 0)", STRING)


@feel_function("substring after", "string, match", [STRING, STRING], STRING)
def _after(build: Translator, value: Code, part: Code) -> Code:
    text, match = build.core(build.strict(value), "text"), build.core(build.strict(part), "match")
    found = f"index_of({text.text}, {match.text})"
    start = f"({found} ?? length({text.text})) + length({match.text})"
    return build.combine([text, match], f"slice({text.text}, {start})", STRING)


@feel_function("split", "string, delimiter", [STRING, STRING], list_of(STRING))
def _split(build: Translator, value: Code, delimiter: Code) -> Code:
    text = build.strict(value, "text")
    pattern = _pattern(delimiter, None)
    return build.combine([text], f"split_pattern({text.text}, {pattern})", list_of(STRING))


@feel_function("string join", "list, delimiter~", [TEXTS, STRING], STRING)
def _join(build: Translator, items: Code, delimiter: Code | None = None) -> Code:
    if items.ty.item.kind == "never":
        return Code("''", STRING)
    if items.ty.item.kind not in ("string", "null"):
        raise type_error("`string join` takes a list of strings")
    source = build.strict(items, "items")
    item = build.fresh("item")
    where = f" WHERE {item} IS NOT NULL" if source.ty.item.is_nullable else ""
    parts = f"[{item} FOR {item} IN {source.at(ADD)}{where}]" if where else source.text
    if delimiter is None:
        return build.combine([source], f"join({parts})", STRING)
    separator = build.close(delimiter)
    text = separator.text if not separator.ty.is_nullable else f"{separator.at(ADD)} ?? ''"
    return build.combine([source], f"join({parts}, {text})", STRING)


@feel_function("matches", "input, pattern, flags~", [STRING, STRING, STRING], BOOLEAN)
def _matches(build: Translator, value: Code, pattern: Code, flags: Code | None = None) -> Code:
    text = build.strict(value, "text")
    return build.combine([text], f"matches({text.text}, {_pattern(pattern, flags)})", BOOLEAN)


@feel_function("replace", "input, pattern, replacement, flags~", [STRING, STRING, STRING, STRING], STRING)
def _replace(build: Translator, value: Code, pattern: Code, new: Code, flags: Code | None = None) -> Code:
    text = build.strict(value, "text")
    read = _pattern(pattern, flags)
    if not new.is_literal:
        raise unsupported("`replace` with a replacement that is known at run time only")
    literal = new.text[1:-1]
    if "$" not in literal and "\\" not in literal:
        return build.combine([text], f"replace_pattern({text.text}, {read}, {new.text})", STRING)
    return _replace_groups(build, text, read, literal)


def _replace_groups(build: Translator, text: Code, pattern: str, replacement: str) -> Code:
    """Return a replacement with references to groups: the parts between the matches, and each match rewritten."""
    body = pattern[1:-1]
    outside = re.sub(r"\[(?:\\.|[^\]\\])*\]", "", body)
    is_whole = body.startswith("^") and body.endswith("$") and "|" not in body
    if re.search(r"\$|\\b|\^", outside) and not is_whole:
        raise unsupported("references to groups of a pattern with anchors")
    source = build.core(text, "text")
    match, groups = build.fresh("match"), build.fresh("groups")
    pieces = []
    count = len(re.findall(r"(?<!\\)\((?!\?)", body))
    for part in re.split(r"(\$\d|\\[$\\])", replacement):
        if re.fullmatch(r"\$\d", part):
            if int(part[1]) > count:
                raise unsupported("a reference to a group that the pattern does not have")
            pieces.append(f"(get({groups}, {part[1]}) ?? '')")
        elif part:
            pieces.append(f"'{part[1:] if part[0] == chr(92) else part}'")
    rewritten = " + ".join(pieces) or "''"
    changed = f"LET {groups} = groups({match}, {pattern}) ?? [] IN {rewritten}"
    parts, texts, at = build.fresh("parts"), build.fresh("changed"), build.fresh("place")
    text_ = (
        f"LET {parts} = split_pattern({source.text}, {pattern}), "
        f"{texts} = [({changed}) FOR {match} IN find_all({source.text}, {pattern})] IN "
        f"join([{at}.value + (get({texts}, {at}.index) ?? '') FOR {at} IN enumerate({parts})])"
    )
    return build.combine([source], text_, STRING, LOOSE)


def _pattern(pattern: Code, flags: Code | None) -> str:
    """Return a pattern as a literal of Vesper's dialect. Refuses a pattern with another meaning there."""
    if not pattern.is_literal or (flags is not None and not flags.is_literal):
        raise unsupported("a pattern that is known at run time only")
    text, quote = pattern.text[1:-1], pattern.text[0]
    letters = "" if flags is None else flags.text[1:-1]
    if any(each not in "smixq" for each in letters):
        raise type_error("the flags of a pattern are `s`, `m`, `i`, `x` and `q`")
    if "q" in letters:
        text = re.sub(r"([\\^$.|?*+()\[\]{}])", r"\\\1", text)
    else:
        text = _to_dialect(text, letters)
    if "m" in letters and re.search(r"[\^$]", text):
        if not re.search(r"\[\^", text) or re.search(r"(?<!\[)\^|\$", text):
            raise unsupported("a pattern with the flag `m`")
    if re.search(r"\\[icIC]|\\\d", text):
        raise unsupported("a pattern with back-references or name classes")
    kept = "".join(each for each in "is" if each in letters)
    found = f"(?{kept}){text}" if kept else text
    _check_pattern(found)
    return f"{quote}{found}{quote}"


_PIECE = re.compile(
    r"\\p\{\s*Is\w+\}|\\[pP]\{[^}]*\}|\\.|\[(?:\^)?(?:\\.|[^\[\]\\]|-\[(?:\\.|[^\[\]\\])*\])*\]|.", re.DOTALL
)


def _to_dialect(text: str, flags: str) -> str:
    """Return a pattern of XPath in Vesper's dialect: `.`, white space of the flag `x`, blocks, class subtraction."""
    if "x" in flags:
        text = re.sub(r"\\p\{[^}]*\}", lambda found: re.sub(r"\s", "", found[0]), text)
    found = []
    for piece in _PIECE.findall(text):
        if piece == "." and "s" not in flags:
            found.append(r"[^\n\r]")
        elif piece.isspace() and "x" in flags:
            continue
        elif piece == r"\p{IsBasicLatin}":
            found.append(r"[\u{0}-\u{7f}]")
        elif piece.startswith("[") and "-[" in piece:
            found.append(_difference(piece))
        else:
            found.append(piece)
    return "".join(found)


def _difference(text: str) -> str:
    """Return a class without the members of the class that it subtracts."""
    kept, _, removed = text[1:-1].partition("-[")
    if "\\" in text or "^" in text:
        raise unsupported("a class subtraction with escapes or negation")
    members = sorted(_members(kept) - _members(removed.rstrip("]")))
    if not members:
        raise unsupported("an empty class")
    return "[" + "".join(f"\\u{{{ord(each):x}}}" for each in members) + "]"


def _members(text: str) -> set[str]:
    found: set[str] = set()
    for low, high in re.findall(r"(.)(?:-(.))?", text):
        last = ord(high or low)
        if last - ord(low) > 1000:
            raise unsupported("a class subtraction of more than 1,000 characters")
        found |= set(map(chr, range(ord(low), last + 1)))
    return found


def _check_pattern(text: str) -> None:
    from vesper.values.pattern import PatternProblem
    from vesper.values.pattern_parser import parse_pattern

    try:
        parse_pattern(text)
    except PatternProblem as problem:
        raise unsupported(f"the pattern: {problem}") from None
