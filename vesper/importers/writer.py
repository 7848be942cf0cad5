"""Text of a node from plain Python values: quoting, wrapping and comments.

A document is a dict in written order. Values are dicts, lists and strings; a string is the text of a scalar, whatever
slot it fills. `QuotedText` keeps quotes (`"null"` as a text), `InlineValue` writes a collection on one line where it
fits, and `CommentedValue` adds comments. The text is parsed back and compared with the document before it is returned.
"""

from __future__ import annotations

import re
from collections.abc import Mapping as AbstractMapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.diagnostics.source import SourceFile
from vesper.language.syntax.yaml.reader import read_yaml
from vesper.language.syntax.yaml_tree import Mapping, Scalar, Sequence, Tree

LINE_LENGTH = 110
Value: TypeAlias = Any
"""A str, QuotedText, dict, list, InlineValue or CommentedValue."""

_PLAIN_START = re.compile(r"[A-Za-z0-9_(/.$^~|+<>=é]|-(?=[A-Za-z0-9(.])")
_NOT_PLAIN = re.compile(r"[^\x20-\x7e]|: |:$| #|[\"\\]|\s$")
_NOT_PLAIN_INLINE = re.compile(r"[,\[\]{}]|:(?=[,\[\]{}])")
_INDICATORS = re.compile(r"[|>]|\.\.\.|---|=$|<<$")
_UNPRINTABLE = re.compile(
    r"[^\x20-\x7e\xa0-\u2027\u202f-\u2065\u206a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010fffd]"
)
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


class WriterFault(Exception):
    """The written text reads back as another document: a defect of Vesper."""


@dataclass(frozen=True, slots=True)
class QuotedText:
    """A scalar that is always written in quotes."""

    text: str


@dataclass(frozen=True, slots=True)
class InlineValue:
    """A dict or list on one line, unless the line becomes too long."""

    value: Any


@dataclass(frozen=True, slots=True)
class CommentedValue:
    """A value with comment lines above its entry, and a comment beside it."""

    value: Any
    above: tuple[str, ...] = ()
    beside: str = ""


def write_node(document: AbstractMapping[str, Value], header: tuple[str, ...] = ()) -> str:
    """Return the text of a node; `header` are comment lines at its start.

    Top-level entries that are collections are separated by blank lines. Raises `WriterFault` where the text does not
    read back as the document.
    """
    lines = [_comment(line) for line in header]
    is_after_block = False
    for key, value in document.items():
        entry = _entry(_scalar(key, is_inline=False), value, 0)
        is_block = isinstance(_bare(value), dict | list)
        if lines and (is_block or is_after_block):
            lines.append("")
        lines += entry
        is_after_block = is_block
    text = "\n".join(line.rstrip() for line in lines) + "\n"
    _check(text, dict(document))
    return text


def node_name(text: str, taken: AbstractMapping[str, object] | set[str] | frozenset[str] = frozenset()) -> str:
    """Return a name in snake case for the outside name `text`, different from those in `taken`."""
    words = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", text)
    words = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", words).lower()
    name = re.sub(r"[^a-z0-9]+", "_", words).strip("_")[:48].rstrip("_")
    if not name or not name[0].isalpha():
        name = f"n_{name}" if name else "unnamed"
    if name in RESERVED_NAMES:
        name = f"{name}_value"
    unique, number = name, 2
    while unique in taken:
        unique, number = f"{name}_{number}", number + 1
    return unique


RESERVED_NAMES = frozenset(
    {"input", "output", "error", "true", "false", "null", "enum", "set", "array", "map", "optional"}
    | {"old", "breaks", "fails", "value", "rest"}
)
"""Words that are no names in a node, and names that have a meaning of their own in some places."""


def string_literal(text: str) -> str:
    """Return an expression whose value is the text; a literal has neither line breaks nor both kinds of quotes."""
    if not re.search(r"['\r\n]", text):
        return f"'{text}'"
    if not re.search(r'["\r\n]', text):
        return f'"{text}"'
    parts = [part for part in re.split(r"(['\r\n])", text) if part]
    return " + ".join(_literal_part(part) for part in parts)


def _literal_part(part: str) -> str:
    if part in "\r\n":
        return f"from_code_point({ord(part)})"
    return f'"{part}"' if part == "'" else f"'{part}'"


def _comment(line: str) -> str:
    return f"# {_UNPRINTABLE.sub(' ', line)}".rstrip()


def _bare(value: Value) -> Value:
    while isinstance(value, CommentedValue | InlineValue):
        value = value.value
    return value


def _entry(label: str, value: Value, depth: int) -> list[str]:
    """Return the lines of `label: value`, or of `- value` where the label is a dash."""
    above: list[str] = []
    beside = ""
    is_inline = False
    while isinstance(value, CommentedValue | InlineValue):
        if isinstance(value, CommentedValue):
            above, beside = [*above, *value.above], value.beside or beside
        is_inline = is_inline or isinstance(value, InlineValue)
        value = value.value
    pad = "  " * depth
    lines = [pad + _comment(line) for line in above]
    head = pad + (label if label == "-" else f"{label}:")
    tail = f"    {_comment(beside)}" if beside else ""
    if isinstance(value, str | QuotedText):
        line = f"{head} {_scalar(value, is_inline=False)}"
        if isinstance(value, str) and len(line) > LINE_LENGTH and _can_fold(value):
            return [*lines, f"{head} >-{tail}", *_folded(value, pad + "  ")]
        return [*lines, line + tail]
    line = f"{head} {_inline(value)}"
    if not value or (is_inline and len(line) <= LINE_LENGTH):
        return [*lines, line + tail]
    inner = _block(value, depth + 1)
    if label != "-" or tail:
        return [*lines, head + tail, *inner]
    comments = next(at for at, each in enumerate(inner) if not each.lstrip().startswith("#"))
    return [*lines, *inner[:comments], f"{head} {inner[comments].lstrip()}", *inner[comments + 1 :]]


def _block(value: dict[str, Value] | list[Value], depth: int) -> list[str]:
    if isinstance(value, dict):
        return [line for key, each in value.items() for line in _entry(_scalar(key, is_inline=False), each, depth)]
    return [line for each in value for line in _entry("-", each, depth)]


def _inline(value: Value) -> str:
    value = _bare(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_scalar(key, is_inline=True)}: {_inline(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, value)) + "]"
    return _scalar(value, is_inline=True)


def _scalar(value: str | QuotedText, *, is_inline: bool) -> str:
    """Return a scalar as plain text where YAML allows it, else in the quotes that need the fewest escapes."""
    text = value.text if isinstance(value, QuotedText) else value
    is_plain = (
        not isinstance(value, QuotedText)
        and _PLAIN_START.match(text)
        and not _INDICATORS.match(text)
        and not _NOT_PLAIN.search(text)
        and not (is_inline and _NOT_PLAIN_INLINE.search(text))
    )
    if is_plain:
        return text
    if '"' in text and "'" not in text and not _UNPRINTABLE.search(text):
        return f"'{text}'"
    return '"' + re.sub(rf'[\\"]|{_UNPRINTABLE.pattern}', _escape, text) + '"'


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    if character in _ESCAPES:
        return _ESCAPES[character]
    return f"\\U{ord(character):08x}" if ord(character) > 0xFFFF else f"\\u{ord(character):04x}"


def _can_fold(value: str) -> bool:
    """Return whether folded lines read back as this text. It must be printable, without spaces at ends of lines."""
    return " " in value and not _UNPRINTABLE.search(value) and not value.startswith(" ") and not value.endswith(" ")


def _folded(text: str, pad: str) -> list[str]:
    lines: list[str] = []
    line = ""
    for piece in _pieces(text):
        if line and len(pad) + len(line) + 1 + len(piece) > LINE_LENGTH:
            lines.append(line)
            line = piece
        else:
            line = f"{line} {piece}" if line else piece
    return [pad + each for each in (*lines, line)]


def _pieces(text: str) -> list[str]:
    """Split at single spaces outside quotes: a string of an expression is on one line."""
    pieces = [""]
    quote = ""
    for at, character in enumerate(text):
        if character in "'\"":
            quote = "" if quote == character else quote or character
        is_single = character == " " and text[at - 1] != " " and text[at + 1] != " "
        if is_single and not quote:
            pieces.append("")
        else:
            pieces[-1] += character
    return pieces


def _check(text: str, document: dict[str, Value]) -> None:
    bag = DiagnosticBag(SourceFile("imported.vsp", text))
    tree = read_yaml(bag)
    if tree is None or not _is_same(tree, document):
        reasons = "; ".join(each.headline for each in bag.sorted())
        raise WriterFault(f"the text of a node reads back as another document: {reasons}")


def _is_same(tree: Tree, value: Value) -> bool:
    value = _bare(value)
    match tree:
        case Scalar():
            return tree.text == (value.text if isinstance(value, QuotedText) else value)
        case Sequence():
            return isinstance(value, list) and len(value) == len(tree.items) and all(map(_is_same, tree.items, value))
        case Mapping():
            return (
                isinstance(value, dict)
                and [key.text for key, _ in tree.entries] == list(value)
                and all(map(_is_same, (each for _, each in tree.entries), value.values()))
            )
