"""Parentheses by the specification's table of operators, derived from tokens alone.

The parser takes its levels from elsewhere, so a parser that binds an operator differently is found.
"""

from __future__ import annotations

import random
import re

from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.diagnostics.source import SourceFile
from vesper.language.syntax import ast
from vesper.language.syntax.scalar_text import PlacedText
from vesper.language.syntax.tokens import END, NAME, SIGN, STRING, WORD, Token, tokenize
from vesper.verify.programs.types import quoted
from vesper.verify.relations.rewritings import Relation, Rewriting, edited
from vesper.verify.relations.subject import Edits, Subject

_LEVELS: dict[str, int] = {
    "=>": 0, "OR": 1, "AND": 2, "==": 4, "!=": 4, "<": 4, "<=": 4, ">": 4, ">=": 4, "IN": 4, "CONTAINS": 4,
    "IS": 4, "NOT": 4, "??": 5, "+": 6, "-": 6, "*": 7, "/": 7,
}  # fmt: skip
"""Infix operators by the table of docs/spec/language.md, loosest first; `NOT` is that of `NOT IN`."""
_NOT, _COMPARISON, _MINUS = 3, 4, 8
_TO_THE_RIGHT = (0, 5)
_OPENING = {"(": ")", "[": "]", "{": "}"}
_ENDS = frozenset(("THEN", "ELSE", "SATISFIES", "FOR", "WHERE", "AS", ",", ":", "=", ")", "]", "}"))


_OPEN_ENDED = re.compile(r"\b(?:IF|LET|FORALL|EXISTS|IN|NOT)\b")
"""Forms that would reach further without parentheses, and the word that ends the value of a LET."""


class _NotReadable(Exception):
    """The tokens are no expression of the grammar."""


class _Writer:
    """Reads tokens by the grammar and writes them with parentheses around every operation."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._position = 0
        self._ends_at_in = False
        """True in the value of a LET."""
        self._ends_at_as = False
        """True in the value of a CAST."""

    def whole(self) -> str:
        text = self._expression()
        if self._next.kind is not END:
            raise _NotReadable
        return text

    @property
    def _next(self) -> Token:
        return self._tokens[self._position]

    def _at(self, *texts: str) -> bool:
        return self._next.kind in (WORD, SIGN) and self._next.text in texts

    def _take(self) -> str:
        token = self._next
        self._position += 1
        return quoted(token.text) if token.kind is STRING else token.text

    def _expect(self, text: str) -> str:
        if not self._at(text):
            raise _NotReadable
        return self._take()

    def _expression(self, ends_at_in: bool = False, ends_at_as: bool = False) -> str:
        outer = self._ends_at_in, self._ends_at_as
        self._ends_at_in, self._ends_at_as = ends_at_in, ends_at_as
        text = self._form()
        self._ends_at_in, self._ends_at_as = outer
        return text

    def _form(self) -> str:
        ends_at_in, ends_at_as = self._ends_at_in, self._ends_at_as
        if self._at("IF"):
            self._take()
            condition = self._expression()
            self._expect("THEN")
            then = self._expression()
            self._expect("ELSE")
            return f"(IF {condition} THEN {then} ELSE {self._expression(ends_at_in, ends_at_as)})"
        if self._at("LET"):
            bindings = [self._binding_of_let()]
            while self._at(","):
                bindings.append(self._binding_of_let())
            self._expect("IN")
            return f"(LET {', '.join(bindings)} IN {self._expression(ends_at_in, ends_at_as)})"
        if self._at("FORALL", "EXISTS"):
            head = f"{self._take()} {self._binding()} SATISFIES"
            if not self._at("SATISFIES", ":"):
                raise _NotReadable
            self._take()
            return f"({head} {self._expression(ends_at_in, ends_at_as)})"
        return self._operators(0)

    def _binding_of_let(self) -> str:
        self._take()
        name = self._take()
        self._expect("=")
        value = self._expression(ends_at_in=True, ends_at_as=self._ends_at_as)
        return f"{name} = ({value})"

    def _binding(self) -> str:
        names = self._take()
        if self._at(","):
            names += f"{self._take()} {self._take()}"
        self._expect("IN")
        over = self._operators(_COMPARISON + 1)
        where = ""
        if self._at("WHERE"):
            self._take()
            where = f" WHERE {self._expression()}"
        return f"{names} IN {over}{where}"

    def _operators(self, loosest: int) -> str:
        left = self._prefix()
        while self._next.kind in (WORD, SIGN) and _LEVELS.get(self._next.text, -1) >= loosest:
            if self._ends_at_in and self._at("IN", "NOT"):
                break
            sign = self._take()
            level = _LEVELS[sign]
            if sign == "IS":
                negation = f"{self._take()} " if self._at("NOT") else ""
                left = f"({left} IS {negation}{self._expect('NULL')})"
                continue
            sign = f"NOT {self._expect('IN')}" if sign == "NOT" else sign
            right = self._operators(level if level in _TO_THE_RIGHT else level + 1)
            left = f"({left} {sign} {right})"
        return left

    def _prefix(self) -> str:
        if self._at("NOT"):
            self._take()
            return f"(NOT {self._operators(_NOT)})"
        if self._at("-"):
            self._take()
            return f"-{self._operators(_MINUS)}"
        return self._form() if self._at("IF", "LET", "FORALL", "EXISTS") else self._primary()

    def _primary(self) -> str:
        if self._next.kind is END or (self._next.kind in (WORD, SIGN) and self._next.text in _ENDS):
            raise _NotReadable
        text = self._cast() if self._at("CAST") else self._group() if self._at(*_OPENING) else self._take()
        if self._next.kind is NAME and self._next.text == "AT":
            self._take()
            return f"({text} AT {self._primary()})"
        while self._at(".", "(", "[", "WITH", "AS"):
            if self._at("AS"):
                if self._ends_at_as:
                    break
                self._take()
                text = f"({text} AS {self._type()})"
            elif self._at("."):
                text += self._take() + self._take()
            elif self._at("WITH"):
                self._take()
                text += f" WITH {self._group()}"
            else:
                text += self._group()
        return text

    def _cast(self) -> str:
        head = f"{self._take()}{self._expect('(')}{self._expression(ends_at_as=True)} {self._expect('AS')} "
        return f"{head}{self._type()}{self._expect(')')}"

    def _type(self) -> str:
        """Write a type: a word, and the content of angle or square brackets after it."""
        if self._next.kind in (END, SIGN):
            raise _NotReadable
        word = self._take()
        closing = {"array": ">", "set": ">", "optional": ">", "map": ">", "enum": "]"}.get(word)
        if closing is None:
            return word
        parts = [word, self._take()]
        while not self._at(closing):
            if self._next.kind is END:
                raise _NotReadable
            parts.append(self._type() if word != "enum" else self._take())
            if self._at(","):
                parts.append(self._take())
        return " ".join((*parts, self._take()))

    def _group(self) -> str:
        """Write brackets with expressions, bindings and names of accumulators between commas and colons."""
        opening = self._take()
        closing = _OPENING[opening]
        parts: list[str] = []
        while not self._at(closing):
            parts.append(self._expression())
            if self._at("FOR"):
                parts.append(f" {self._take()} {self._binding()}")
            if self._at(",", ":", "="):
                parts.append(f" {self._take()} ")
            elif not self._at(closing):
                raise _NotReadable
        return opening + "".join(parts) + self._take()


def parenthesise(text: str) -> str | None:
    """Return an expression with parentheses around every operation; None if it cannot be read."""
    source = SourceFile("expression", text)
    tokens = tokenize(PlacedText(text, range(len(text)), len(text)), DiagnosticBag(source))
    try:
        return None if tokens is None else _Writer(tokens).whole()
    except _NotReadable:
        return None


def _add_parentheses(subject: Subject, chance: random.Random) -> Rewriting | None:
    edits = Edits(subject)
    # An inner expression may end earlier than it would alone, so only outermost ones are read again.
    for site in (each for each in subject.sites if each.is_root):
        text = subject.text_of(site.span)
        full = parenthesise(text) if chance.random() < 0.9 else None
        if full is not None and full != text:
            edits.replace(site.span, full)
    return edited(edits) if edits.spans() else None


def _drop_parentheses(subject: Subject, chance: random.Random) -> Rewriting | None:
    """Drop the parentheses that the table of operators makes superfluous."""
    edits = Edits(subject)
    for site in subject.sites:
        for part, is_left in _operands(site.expression):
            text = _inside(subject, part)
            if text is not None and _level(part) > _own_level(site.expression, is_left) and chance.random() < 0.9:
                edits.replace(part.span, f" {text} ")
    return edited(edits) if edits.spans() else None


def _operands(expression: ast.Expression) -> list[tuple[ast.Expression, bool]]:
    match expression:
        case ast.Infix(left=left, right=right):
            return [(left, True), (right, False)]
        case ast.Prefix(operand=operand, operator=operator) if operator.text == "NOT":
            return [(operand, False)]
        case ast.If(condition=condition, then=then):
            return [(condition, False), (then, False)]
        case _:
            return []


def _own_level(expression: ast.Expression, is_left: bool) -> int:
    """Return the level that an operand must exceed to need no parentheses."""
    match expression:
        case ast.Infix(operator=operator):
            level = _LEVELS[operator.text]
            is_associative = level in (1, 2, 6, 7) if is_left else level in _TO_THE_RIGHT
            return level - 1 if is_associative else level
        case ast.Prefix():
            return _NOT - 1
        case _:
            return -1


def _level(expression: ast.Expression) -> int:
    match expression:
        case ast.Infix(operator=operator):
            return _LEVELS[operator.text]
        case ast.Prefix(operator=operator):
            return -2 if operator.text == "NOT" else _MINUS
        case ast.IsNull() | ast.InRange():
            return _COMPARISON
        case ast.If() | ast.Let() | ast.Quantifier():
            return -2
        case _:
            return 9


def _inside(subject: Subject, part: ast.Expression) -> str | None:
    """Return the text between the parentheses around an operand."""
    if subject.scalar_at(part.span) is None or subject.source.text[part.span.start] != "(":
        return None
    text = subject.text_of(part.span)
    depth, quote = 0, ""
    for index, character in enumerate(text):
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character in "()":
            depth += 1 if character == "(" else -1
            if depth == 0:
                inner = text[1:-1].strip()
                is_plain = not inner.startswith("(") and _OPEN_ENDED.search(inner) is None
                return inner if index == len(text) - 1 and is_plain else None
    return None


RELATIONS = (
    Relation("parenthesised", "parentheses by the table of operators keep the outcomes", _add_parentheses, True),
    Relation("bare_operands", "an operand without superfluous parentheses is the same", _drop_parentheses, True),
)
