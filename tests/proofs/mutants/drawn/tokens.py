"""Tokens of Rust sources, and the functions that mutants are drawn from."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_TOKEN = re.compile(
    r"""(?P<space>\s+)
      | (?P<line_comment>//[^\n]*)
      | (?P<block_comment>/\*)
      | (?P<raw>b?r(?P<hashes>\#*)")
      | (?P<string>[bc]?"(?:[^"\\]|\\.)*")
      | (?P<char>b?'(?:[^'\\\n]|\\u\{[^}]*\}|\\x[0-9a-fA-F]{2}|\\.)')
      | (?P<lifetime>'[A-Za-z_]\w*)
      | (?P<number>\d[\d_]*(?:\.\d[\d_]*)?(?:[eE][+-]?\d+)?\w*)
      | (?P<word>(?:r\#)?[^\W\d]\w*)
      | (?P<mark><<=|>>=|\.\.\.|\.\.=|::|->|=>|==|!=|<=|>=|&&|\|\||[-+*/%^&|]=|\.\.|<<|>>|[^\w\s])
    """,
    re.VERBOSE | re.DOTALL,
)
_CLOSING = {"(": ")", "[": "]", "{": "}"}
KEYWORDS = frozenset(
    re.findall(
        r"\w+",
        "as break const continue else enum fn for if impl in let loop match mod move mut pub ref return static struct "
        "trait type unsafe use where while",
    )
)


@dataclass(frozen=True, slots=True)
class Token:
    kind: str
    """`word`, `number`, `string`, `char`, `lifetime` or `mark`."""
    text: str
    start: int
    end: int


@dataclass(slots=True)
class Source:
    """A file as tokens, with the partner of every bracket."""

    text: str
    tokens: list[Token] = field(default_factory=list)
    partners: dict[int, int] = field(default_factory=dict)
    """Index of the closing bracket by that of the opening one, and the reverse."""

    def __post_init__(self) -> None:
        self.tokens = list(tokenize(self.text))
        opened: list[int] = []
        for index, token in enumerate(self.tokens):
            if token.kind == "mark" and token.text in _CLOSING:
                opened.append(index)
            elif token.kind == "mark" and token.text in _CLOSING.values():
                other = opened.pop()
                if _CLOSING[self.tokens[other].text] != token.text:
                    raise ValueError(f"`{token.text}` at {token.start} closes `{self.tokens[other].text}`")
                self.partners[index], self.partners[other] = other, index

    def at(self, index: int) -> str:
        """Return the text of a token; empty outside the file."""
        return self.tokens[index].text if 0 <= index < len(self.tokens) else ""

    def ends_operand(self, index: int) -> bool:
        """Return whether an expression can end with this token, so that a binary operator may follow."""
        token = self.tokens[index]
        if token.kind == "mark":
            return token.text in {")", "]", "}", "?"}
        return token.kind != "lifetime" and token.text not in KEYWORDS

    def skip(self, index: int, ends: frozenset[str], last: int) -> int:
        """Return the index of the first of these marks outside brackets, or where the brackets around it close."""
        while index < last:
            token = self.tokens[index]
            if token.kind == "mark" and (token.text in ends or token.text in _CLOSING.values()):
                return index
            index = self.partners[index] + 1 if token.text in _CLOSING and token.kind == "mark" else index + 1
        return last

    def line_of(self, place: int) -> str:
        """Return the line that a place is on."""
        start = self.text.rfind("\n", 0, place) + 1
        return self.text[start : self.text.find("\n", place)]


def tokenize(text: str) -> Iterator[Token]:
    """Yield the tokens of a text without spaces and comments."""
    place = 0
    while place < len(text):
        found = _TOKEN.match(text, place)
        assert found is not None, text[place : place + 20]
        kind, end = str(found.lastgroup), found.end()
        if kind == "block_comment":
            end = _end_of_comment(text, place)
        elif found.group("raw") is not None:
            kind, closing = "string", '"' + found.group("hashes")
            end = text.index(closing, end) + len(closing)
        if kind not in {"space", "line_comment", "block_comment"}:
            yield Token(kind, text[place:end], place, end)
        place = end


def _end_of_comment(text: str, place: int) -> int:
    depth = 0
    for found in re.compile(r"/\*|\*/").finditer(text, place):
        depth += 1 if found.group() == "/*" else -1
        if depth == 0:
            return found.end()
    raise ValueError(f"the comment at {place} does not end")


@dataclass(frozen=True, slots=True)
class Function:
    """An outermost function; `opening` and `closing` are the tokens of its braces."""

    name: str
    opening: int
    closing: int


def functions(source: Source) -> list[Function]:
    """Return the functions of a file that are neither tests nor evaluated by the compiler."""
    found = []
    index, last = 0, len(source.tokens)
    while index < last:
        if source.at(index) == "#" and source.at(index + 1) == "[":
            closing = source.partners[index + 1]
            inside = [source.at(each) for each in range(index + 2, closing)]
            index = closing + 1
            if inside in (["cfg", "(", "test", ")"], ["test"]):
                index = _end_of_item(source, index)
        elif source.at(index) == "fn" and source.tokens[index + 1].kind == "word":
            opening = source.skip(index, frozenset("{;"), last)
            if source.at(opening) == "{" and source.at(index - 1) != "const":
                found.append(Function(source.at(index + 1), opening, source.partners[opening]))
            index = source.partners.get(opening, opening) + 1
        else:
            index += 1
    return found


def _end_of_item(source: Source, index: int) -> int:
    while source.at(index) == "#":
        index = source.partners[index + 1] + 1
    end = source.skip(index, frozenset("{;"), len(source.tokens))
    return source.partners.get(end, end) + 1


def code_blocks(source: Source, function: Function) -> list[tuple[int, int]]:
    """Return the braces of the blocks of statements in a function, outermost first.

    A brace behind `if`, `while` or `for` begins a block: a record needs parentheses there. Bodies of macros are none.
    """
    blocks = [(function.opening, function.closing)]
    index, awaited = function.opening + 1, set[int]()
    while index < function.closing:
        text, before = source.at(index), source.at(index - 1)
        if text == "macro_rules":
            index = source.partners[source.skip(index, frozenset("{"), function.closing)]
        elif text in {"if", "while", "for"} and source.at(index + 1) != "<":
            opening = source.skip(index, frozenset(["{", "=>"]), function.closing)
            if source.at(opening) == "{":
                awaited.add(opening)
        elif text == "{" and (index in awaited or before in {"else", "=>", "loop"}):
            blocks.append((index, source.partners[index]))
        index += 1
    return blocks


def enclosing_block(source: Source, blocks: list[tuple[int, int]], start: int, end: int) -> int:
    """Return the place behind the opening brace of the innermost block around a span."""
    around = [
        opening
        for opening, closing in blocks
        if source.tokens[opening].end <= start and end <= source.tokens[closing].start
    ]
    return source.tokens[max(around)].end
