"""Tokens to an expression or a type. Precedence comes from schemas/operators.toml, not from this code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NoReturn, TypeVar

from vesper.diagnostics.codes import Code
from vesper.diagnostics.diagnostic import DiagnosticBag
from vesper.diagnostics.source import Span
from vesper.spec.operators import OPERATOR_LEVELS
from vesper.syntax import ast
from vesper.syntax.scalar_text import place_text
from vesper.syntax.tokens import Token, TokenKind, tokenize
from vesper.syntax.yaml_tree import Scalar

MAX_DEPTH = 100
_Parsed = TypeVar("_Parsed")

_PREFIX = {
    operator.removeprefix("unary "): number
    for number, level in enumerate(OPERATOR_LEVELS)
    for operator in level.operators
    if level.associates == "prefix"
}
_INFIX = {
    operator: number
    for number, level in enumerate(OPERATOR_LEVELS)
    for operator in level.operators
    if level.associates != "prefix"
}


class _SyntaxProblem(Exception):
    """This text cannot be read further; the reason is in the bag."""


def parse_expression(scalar: Scalar, bag: DiagnosticBag) -> ast.Expression | None:
    """The expression in a scalar, or None after reporting why there is none."""
    parser = _Parser.of(scalar, bag)
    parsed = None if parser is None else parser.whole(parser.expression)
    if parsed is not None and _depth(parsed) > MAX_DEPTH:
        bag.error(Code.TOO_DEEP, parsed.span, limit=MAX_DEPTH, what="operators in one expression")
        return None
    return parsed


def parse_type(scalar: Scalar, bag: DiagnosticBag) -> ast.TypeText | None:
    """The type in a scalar, or None after reporting why there is none."""
    parser = _Parser.of(scalar, bag)
    return None if parser is None else parser.whole(parser.type)


class _Parser:
    def __init__(self, tokens: list[Token], bag: DiagnosticBag) -> None:
        self._tokens = tokens
        self._position = 0
        self._next = tokens[0]
        self._depth = 0
        self._bag = bag

    @classmethod
    def of(cls, scalar: Scalar, bag: DiagnosticBag) -> _Parser | None:
        tokens = tokenize(place_text(bag.source, scalar), bag)
        return None if tokens is None else cls(tokens, bag)

    def whole(self, rule: Callable[[], _Parsed]) -> _Parsed | None:
        """Apply a rule to all of the tokens."""
        try:
            parsed = rule()
            if self._next.kind is not TokenKind.END:
                self._fail("the end of the expression or an operator")
        except _SyntaxProblem:
            return None
        return parsed

    # -- tokens -----------------------------------------------------------------------------------

    def _take(self) -> Token:
        token = self._next
        if token.kind is not TokenKind.END:
            self._position += 1
            self._next = self._tokens[self._position]
        return token

    def _at(self, *texts: str) -> bool:
        token = self._next
        return token.text in texts and (token.kind is TokenKind.SIGN or token.kind is TokenKind.WORD)

    def _level(self, of: dict[str, int]) -> int | None:
        """The level of the operator that comes next, if one of this table does."""
        level = of.get(self._next.text)
        return level if level is not None and self._at(self._next.text) else None

    def _expect(self, text: str) -> Token:
        if not self._at(text):
            self._fail(f"`{text}`")
        return self._take()

    def _fail(self, expected: str) -> NoReturn:
        self._bag.error(Code.EXPRESSION_SYNTAX, self._next.span, expected=expected, found=self._next.describe())
        raise _SyntaxProblem

    # -- expressions ------------------------------------------------------------------------------

    def expression(self) -> ast.Expression:
        self._enter()
        try:
            return self._conditional() if self._at("IF") else self._operators(0)
        finally:
            self._depth -= 1

    def _enter(self) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self._bag.error(Code.TOO_DEEP, self._next.span, limit=MAX_DEPTH, what="nesting in this expression")
            raise _SyntaxProblem

    def _conditional(self) -> ast.Expression:
        start = self._expect("IF")
        condition = self.expression()
        self._expect("THEN")
        then = self.expression()
        self._expect("ELSE")
        otherwise = self.expression()
        return ast.If(condition, then, otherwise, start.span.to(otherwise.span))

    def _operators(self, loosest: int) -> ast.Expression:
        """Operands joined by operators that bind at least as tight as this level.

        One call handles all the levels, so that a parenthesis costs a few frames of the stack and not one for each
        level.
        """
        left = self._prefix(loosest)
        last_level: int | None = None
        while (level := self._level(_INFIX)) is not None and level >= loosest:
            sign = self._take()
            if level == last_level and OPERATOR_LEVELS[level].associates == "none":
                self._bag.error(
                    Code.EXPRESSION_SYNTAX,
                    sign.span,
                    expected="one comparison",
                    found=f"a second one, `{sign.text}`",
                    help="join two comparisons with AND, or put one in parentheses",
                )
                raise _SyntaxProblem
            right = self._operators(level + 1)
            left = ast.Infix(left, ast.Word(sign.text, sign.span), right, left.span.to(right.span))
            last_level = level
        return left

    def _prefix(self, loosest: int) -> ast.Expression:
        """A prefix operator with its operand, where one may stand, or a value."""
        level = self._level(_PREFIX)
        if level is None or level < loosest:
            return self._primary()
        sign = self._take()
        self._enter()
        operand = self._operators(level)
        self._depth -= 1
        operator = next(o for o in OPERATOR_LEVELS[level].operators if o.removeprefix("unary ") == sign.text)
        return ast.Prefix(ast.Word(operator, sign.span), operand, sign.span.to(operand.span))

    def _primary(self) -> ast.Expression:
        token = self._next
        if token.kind is TokenKind.NUMBER:
            self._take()
            return ast.Number(token.text, token.span)
        if token.kind is TokenKind.STRING:
            self._take()
            return ast.String(token.text, token.span)
        if self._at("true", "false"):
            self._take()
            return ast.Boolean(token.text == "true", token.span)
        if token.kind is TokenKind.NAME:
            return self._name()
        if self._at("("):
            start = self._take()
            inner = self.expression()
            end = self._expect(")")
            return _respan(inner, start.span.to(end.span))
        if self._at("IF"):
            return self.expression()
        self._fail("a value")

    def _name(self) -> ast.Expression:
        first = self._take()
        word = ast.Word(first.text, first.span)
        if self._at("(", "["):
            what = "a function call" if self._next.text == "(" else "indexing"
            self._bag.error(Code.NOT_IN_THIS_VERSION, first.span.to(self._next.span), what=what)
            raise _SyntaxProblem
        if not self._at("."):
            return ast.Name(word.text, word.span)
        self._take()
        if self._next.kind is not TokenKind.NAME:
            self._fail("a name after the point")
        second = self._take()
        if self._at("."):
            self._bag.error(Code.NOT_IN_THIS_VERSION, self._next.span, what="a field of a field")
            raise _SyntaxProblem
        return ast.Member(word, ast.Word(second.text, second.span), word.span.to(second.span))

    # -- types ------------------------------------------------------------------------------------

    def type(self) -> ast.TypeText:
        self._enter()
        try:
            return self._type()
        finally:
            self._depth -= 1

    def _type(self) -> ast.TypeText:
        if self._next.kind is not TokenKind.NAME:
            self._fail("a type")
        name = self._take()
        if name.text == "enum":
            self._expect("[")
            members = [self._member()]
            while self._at(","):
                self._take()
                members.append(self._member())
            return ast.TypeEnum(tuple(members), name.span.to(self._expect("]").span))
        if name.text == "set":
            self._expect("<")
            element = self.type()
            return ast.TypeSet(element, name.span.to(self._expect(">").span))
        return ast.TypeName(ast.Word(name.text, name.span), name.span)

    def _member(self) -> ast.Word:
        if self._next.kind not in (TokenKind.NAME, TokenKind.STRING):
            self._fail("a member of the enum")
        token = self._take()
        return ast.Word(token.text, token.span)


def _respan(expression: ast.Expression, span: Span) -> ast.Expression:
    """Give a parenthesised expression the span of its parentheses."""
    return replace(expression, span=span)


def _depth(root: ast.Expression) -> int:
    """How deep the tree is; without recursion, because a row of operators nests to the left without bound."""
    deepest = 0
    waiting: list[tuple[ast.Expression, int]] = [(root, 1)]
    while waiting:
        expression, depth = waiting.pop()
        deepest = max(deepest, depth)
        match expression:
            case ast.Infix(left=left, right=right):
                waiting += [(left, depth + 1), (right, depth + 1)]
            case ast.Prefix(operand=operand):
                waiting.append((operand, depth + 1))
            case ast.If(condition=condition, then=then, otherwise=otherwise):
                waiting += [(condition, depth + 1), (then, depth + 1), (otherwise, depth + 1)]
    return deepest
