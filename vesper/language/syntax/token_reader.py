"""Token cursor shared by the parsers of expressions and types."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import NoReturn, TypeVar

from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import DiagnosticBag, Label
from vesper.language.diagnostics.source import Span
from vesper.language.syntax import ast
from vesper.language.syntax.expression_slot import quote_scalar
from vesper.language.syntax.tokens import END, NAME, SIGN, WORD, Token

MAX_DEPTH = 100
_Parsed = TypeVar("_Parsed")


_EXPECTED = {
    "`ELSE`": "an IF always has an ELSE: `IF c THEN a ELSE b`",
    "`THEN`": "write `IF c THEN a ELSE b`",
    "`SATISFIES`": "write `FORALL x IN items SATISFIES x > 0`",
    "a name after the point": "a number has digits on both sides of its point",
    "a value": "a value is missing here: a name, a number, a text in quotes, or a call",
}
_TWO_VALUES = "write an operator between the two values; a text is put in quotes: `'…'`"
_AFTER_VALUE = {
    ")": "this `)` closes nothing: remove it",
    "]": "this `]` closes nothing: remove it",
    "}": "this `}` closes nothing: remove it",
    ",": "a comma separates arguments and items; a decimal has a point: `1.5`",
    ":": "a text is put in quotes: `'…'`; a `:` stands between a key and its value in `{…}`",
    "(": "only a function can be called: `name(…)`",
}


class SyntaxProblem(Exception):
    """The text cannot be parsed further; the bag holds the reason."""


class TokenReader:
    """A cursor over tokens that reports the first mismatch and stops."""

    def __init__(self, tokens: list[Token], bag: DiagnosticBag) -> None:
        self._tokens = tokens
        self._position = 0
        self.next = tokens[0]
        self._depth = 0
        self.bag = bag

    def parse_all(self, rule: Callable[[], _Parsed]) -> _Parsed | None:
        """Apply a rule to all of the tokens. None after reporting a mismatch."""
        try:
            parsed = rule()
            if self.next.kind is not END:
                self.fail("the end of the expression or an operator")
        except SyntaxProblem:
            return None
        return parsed

    def next_but_one_is(self, text: str) -> bool:
        following = self._tokens[min(self._position + 1, len(self._tokens) - 1)]
        return following.text == text and (following.kind is WORD or following.kind is SIGN)

    def upcoming(self) -> Iterator[Token]:
        """Yield the next token and all tokens after it, without advancing."""
        return islice(self._tokens, self._position, None)

    def take(self) -> Token:
        """Return the next token and advance."""
        token = self.next
        if token.kind is not END:
            self._position += 1
            self.next = self._tokens[self._position]
        return token

    def at(self, *texts: str) -> bool:
        """Return whether the next token is one of these signs or words."""
        token = self.next
        return token.text in texts and (token.kind is SIGN or token.kind is WORD)

    def expect(self, text: str) -> Token:
        """Take the sign or word, or report its absence and stop."""
        if not self.at(text):
            self.fail(f"`{text}`")
        return self.take()

    def name(self, expected: str) -> ast.Word:
        """Take a name, or report its absence and stop."""
        if self.next.kind is not NAME:
            self.fail(expected)
        token = self.take()
        return ast.Word(token.text, token.span)

    def fail(self, expected: str) -> NoReturn:
        """Report the next token as unexpected and stop."""
        if self.at("="):  # `=` is valid only in LET and fold; elsewhere a comparison was meant
            self.bag.error(Code.BAD_CHARACTER, self.next.span, help="compare with `==`", what="`=`")
            raise SyntaxProblem
        cut = self._cut_value_help()
        if cut is not None:
            at = self.bag.source.text.index(",", self.next.span.end)
            found = "a `,` that ends the value inside `{…}` or `[…]`"
            self.fail_at(Span(at, at + 1), "the rest of the expression", found, cut)
        opened = self._open_bracket()
        if opened is not None:
            close = {"(": ")", "[": "]", "{": "}"}[opened.text]
            help_ = f"write `{close}` where the part in brackets ends"
            also = (Label(opened.span, f"this `{opened.text}` is not closed"),)
            self.fail_at(self.next.span, expected, self.next.describe(), help_, also)
        self.fail_at(self.next.span, expected, self.next.describe(), self._expectation_help(expected))

    def _cut_value_help(self) -> str | None:
        """Return help for `{total: round(x, 2)}`, where YAML ends the value at the comma."""
        text = self.bag.source.text
        is_cut = self.next.kind is END and text[self.next.span.start : self.next.span.end + 1].lstrip()[:1] == ","
        if not is_cut:
            return None
        start = self._tokens[0].span.start
        rest = re.match(r"(?:[^()\n]|\((?:[^()\n]|\([^()\n]*\))*\))*", text[start:])
        whole = "" if rest is None else re.split(r"[}\]]\s*$|, *\w+: ", rest[0])[0]
        quoted = f": `{quote_scalar(whole)}`" if whole.count("(") == whole.count(")") > 0 else ""
        return f"inside `{{…}}` or `[…]` a comma ends the value: put the expression in quotes{quoted}"

    def _expectation_help(self, expected: str) -> str | None:
        """Return the help for an expectation that was not met."""
        if expected == "the end of the expression or an operator":
            return _AFTER_VALUE.get(self.next.text, _TWO_VALUES if self.next.kind is not SIGN else None)
        if expected == "a name after the point" and self.next.text[:1].isdigit():
            return "an item of a list is written `items[0]`"
        return _EXPECTED.get(expected)

    def _open_bracket(self) -> Token | None:
        """Return the last bracket that is still open at the end."""
        open_: list[Token] = []
        for token in self._tokens if self.next.kind is END else ():
            if token.kind is SIGN and token.text in "([{":
                open_.append(token)
            elif token.kind is SIGN and token.text in ")]}" and open_:
                open_.pop()
        return open_[-1] if open_ else None

    def fail_at(
        self, span: Span, expected: str, found: str, help_: str | None = None, also: tuple[Label, ...] = ()
    ) -> NoReturn:
        """Report a span as unexpected and stop."""
        self.bag.error(Code.EXPRESSION_SYNTAX, span, also=also, expected=expected, found=found, help=help_)
        raise SyntaxProblem

    def parse_nested(self, rule: Callable[[], _Parsed]) -> _Parsed:
        """Apply a rule one level deeper; report too deep nesting at its location."""
        # A call and not a context manager, which takes three times as long on the hottest path of the parser.
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self.bag.error(Code.TOO_DEEP, self.next.span, limit=MAX_DEPTH, what="nesting in this expression")
            raise SyntaxProblem
        try:
            return rule()
        finally:
            self._depth -= 1
