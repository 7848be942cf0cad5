"""Tab Source of a node: its text beside the generated Python, with the lines that belong together."""

from __future__ import annotations

import io
import keyword
import re
import tokenize
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from vesper.dashboard.page import Context
from vesper.dashboard.pages.flow.download import compiled_node
from vesper.language.syntax.tokens import WORDS

_HEADING = re.compile(r"( *)# [^:]*, line ([0-9]+)(?::|$)")
_ENTRY = re.compile(r"([0-9]+): ([0-9]+),")
_VSP = re.compile(
    rf"""(?P<comment>(?:^|(?<=\s))\#.*)
      | (?P<key>(?:(?<=^)|(?<=[\s{{]))[A-Za-z_][\w.-]*(?=:(?:\s|$)))
      | (?P<string>'[^']*'|"(?:[^"\\]|\\.)*")
      | (?P<number>\b[0-9][0-9_]*(?:\.[0-9]+)?\b)
      | (?P<keyword>\b(?:{"|".join(sorted(WORDS))})\b)
      | [^\s]""",
    re.VERBOSE,
)
_NAMES = {tokenize.COMMENT: "comment", tokenize.STRING: "string", tokenize.NUMBER: "number"}

_MAX_IR_BYTES = 60_000

Colored = tuple[int, int, str]
"""Start, end and class of a token in a line."""


@dataclass(frozen=True, slots=True)
class CodeLine:
    number: int
    parts: tuple[tuple[str, str], ...]
    """Class and text of each token; the class is empty for text without one."""
    other: tuple[int, ...]
    """Lines on the other side that belong to it."""


@dataclass(frozen=True, slots=True)
class SourcePage:
    node: str
    file: str
    semantic_hash: str
    source: tuple[CodeLine, ...]
    python: tuple[CodeLine, ...]
    ir: str | None
    """Canonical JSON; None where it is too large for a page."""
    ir_bytes: int


def read_source(context: Context) -> SourcePage:
    """Return both texts with their links."""
    compiled = compiled_node(context)
    from vesper.compiler.generated import module_text  # takes half a second

    text, python = compiled.source.text, module_text(compiled)
    to_source = python_lines(python)
    to_python: dict[int, list[int]] = {}
    for line, of_node in sorted(to_source.items()):
        to_python.setdefault(of_node, []).append(line)
    return SourcePage(
        compiled.node.node_id,
        compiled.path,
        compiled.semantic_hash,
        _lines(text, _source_colors(text), _extend_links(text, to_python)),
        _lines(python, _python_colors(python), {line: [of_node] for line, of_node in to_source.items()}),
        compiled.ir.decode() if len(compiled.ir) <= _MAX_IR_BYTES else None,
        len(compiled.ir),
    )


def python_lines(text: str) -> dict[int, int]:
    """Return the node's line of each line of a generated module.

    The table at the module's end names lines that can end an execution. Other lines belong to the comment above them.
    """
    body, _, table = text.rpartition("\nSOURCE: Final = Source(")
    found: dict[int, int] = {}
    headings: list[tuple[int, int]] = []
    for number, line in enumerate(body.splitlines(), 1):
        if not line.strip():
            continue
        indent = len(line) - len(line.lstrip())
        heading = _HEADING.match(line)
        while headings and (headings[-1][0] > indent or (heading and headings[-1][0] == indent)):
            headings.pop()
        if heading:
            headings.append((indent, int(heading[2])))
        if headings and indent:
            found[number] = headings[-1][1]
    lines = table.partition("lines={")[2].partition("}")[0]
    return found | {int(line): int(of_node) for line, of_node in _ENTRY.findall(lines)}


def _extend_links(text: str, known: dict[int, list[int]]) -> dict[int, list[int]]:
    """Return the links of the node's lines.

    A line without its own links has those of the line above, within a section.
    """
    found: dict[int, list[int]] = {}
    last: list[int] = []
    for number, line in enumerate(text.splitlines(), 1):
        if line[:1].isalpha():  # a section begins
            last = []
        last = known.get(number, last)
        if last and line.strip():
            found[number] = last
    return found


def _lines(text: str, colors: Sequence[Sequence[Colored]], links: dict[int, list[int]]) -> tuple[CodeLine, ...]:
    found: list[CodeLine] = []
    for number, (line, colored) in enumerate(zip(text.splitlines(), colors, strict=True), 1):
        parts: list[tuple[str, str]] = []
        at = 0
        for start, end, kind in colored:
            parts += [("", line[at:start])] * (start > at) + [(kind, line[start:end])]
            at = end
        parts += [("", line[at:])] * (at < len(line))
        found.append(CodeLine(number, tuple(parts), tuple(links.get(number, ()))))
    return tuple(found)


def _source_colors(text: str) -> list[list[Colored]]:
    return [
        [(each.start(), each.end(), each.lastgroup) for each in _VSP.finditer(line) if each.lastgroup is not None]
        for line in text.splitlines()
    ]


def _python_colors(text: str) -> list[list[Colored]]:
    lines = text.splitlines()
    found: list[list[Colored]] = [[] for _ in lines]
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        kind = _NAMES.get(token.type, "")
        if token.type == tokenize.NAME and keyword.iskeyword(token.string):
            kind = "keyword"
        if kind:
            for line, start, end in _rows(token, lines):
                found[line].append((start, end, kind))
    return found


def _rows(token: tokenize.TokenInfo, lines: Sequence[str]) -> Iterable[tuple[int, int, int]]:
    """Yield the part of a token in each of its lines."""
    (first, start), (last, end) = token.start, token.end
    for line in range(first, last + 1):
        yield line - 1, start if line == first else 0, end if line == last else len(lines[line - 1])
