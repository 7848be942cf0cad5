"""Parser from tokens to expressions. Precedence comes from `schemas/operators.toml`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.syntax import ast
from vesper.language.syntax.scalar_text import PlacedText, place_text
from vesper.language.syntax.token_reader import MAX_DEPTH, SyntaxProblem
from vesper.language.syntax.tokens import NAME, NUMBER, SIGN, STRING, WORD, Token, tokenize
from vesper.language.syntax.type_parser import TypeParser
from vesper.language.syntax.yaml_tree import Scalar
from vesper.values.generated.operators import OPERATOR_LEVELS

AGGREGATES = ("SUM", "COUNT", "MIN", "MAX", "AVG")

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
_COMPARISON = _INFIX["=="]
_POSTFIX = (".", "[", "WITH", "AS")
_Parsed = TypeVar("_Parsed")


def parse_expression(scalar: Scalar, bag: DiagnosticBag) -> ast.Expression | None:
    """Return the expression in a scalar, or None after reporting an error."""
    return parse_placed(place_text(bag.source, scalar), bag)


def parse_placed(placed: PlacedText, bag: DiagnosticBag) -> ast.Expression | None:
    """Return the expression in a text. After reporting an error it is the evidently intended expression, or None."""
    before = bag.error_count
    tokens = tokenize(placed, bag)
    parsed = None if tokens is None else parse_tokens(tokens, bag)
    if parsed is not None:
        return parsed
    # mypy joins the union of expressions to `object`.
    return cast("ast.Expression | None", _rescue(placed, bag, before, parse_tokens))


def _rescue(
    placed: PlacedText, bag: DiagnosticBag, before: int, parse: Callable[[list[Token], DiagnosticBag], _Parsed | None]
) -> _Parsed | None:
    """Report foreign spellings in a faulty text, and return their translation.

    The module with the table is imported only here.
    """
    from vesper.language.syntax.habits.rescue import rescue

    return rescue(placed, bag, before, parse)


def parse_tokens(tokens: list[Token], bag: DiagnosticBag) -> ast.Expression | None:
    """Return the expression formed by all of the tokens, or None after reporting an error."""
    if len(tokens) == 2:  # the second is END; every third expression is one word or number
        only = tokens[0]
        if only.kind is NAME:
            return ast.Name(only.text, only.span)
        if only.kind is NUMBER:
            return ast.Number(only.text, only.span)
    parser = ExpressionParser(tokens, bag)
    parsed = parser.parse_all(parser.expression)
    if parsed is None or len(tokens) <= MAX_DEPTH:  # an expression has at most as many levels as tokens
        return parsed
    return None if _report_depth(parsed, bag) else parsed


def parse_binding(scalar: Scalar, bag: DiagnosticBag) -> ast.Binding | None:
    """Return a binding such as `line IN items WHERE line.qty > 0`. None after reporting an error."""
    before, placed = bag.error_count, place_text(bag.source, scalar)
    tokens = tokenize(placed, bag)
    parsed = None if tokens is None else _parse_binding_tokens(tokens, bag)
    if parsed is not None:
        return parsed
    from vesper.language.syntax.habits.rescue import rescue_binding  # for a faulty file only

    meant = rescue_binding(placed, bag, before, parse_tokens)
    if meant is None:
        return _rescue(placed, bag, before, _parse_binding_tokens)
    tokens = tokenize(meant, bag)
    return None if tokens is None else _parse_binding_tokens(tokens, bag)


def _parse_binding_tokens(tokens: list[Token], bag: DiagnosticBag) -> ast.Binding | None:
    parser = ExpressionParser(tokens, bag)
    parsed = parser.parse_all(parser.binding)
    parts = () if parsed is None else (parsed.over, *(() if parsed.where is None else (parsed.where,)))
    return None if any(_report_depth(part, bag) for part in parts) else parsed


def _report_depth(parsed: ast.Expression, bag: DiagnosticBag) -> bool:
    if _depth(parsed) <= MAX_DEPTH:
        return False
    bag.error(Code.TOO_DEEP, parsed.span, limit=MAX_DEPTH, what="nesting in one expression")
    return True


class ExpressionParser(TypeParser):
    """Recursive-descent parser with one method per form. `expression` counts the depth of nesting."""

    _ends_at_in = False
    """True in the value of a LET, which ends at the word IN. Inside parentheses IN is an operator again."""

    _ends_at_as = False
    """True in the value of a CAST, which ends at the word AS. Inside parentheses AS is a suffix again."""

    def closed_expression(self) -> ast.Expression:
        """Parse an expression in which IN is an operator and AS a suffix."""
        outer, self._ends_at_in, self._ends_at_as = (self._ends_at_in, self._ends_at_as), False, False
        try:
            return self.expression()
        finally:
            self._ends_at_in, self._ends_at_as = outer

    def _let_value(self) -> ast.Expression:
        outer, self._ends_at_in = self._ends_at_in, True
        try:
            return self.expression()
        finally:
            self._ends_at_in = outer

    def expression(self) -> ast.Expression:
        return self.parse_nested(self._any_form)

    def _any_form(self) -> ast.Expression:
        if self.next.kind is WORD:
            word = self.next.text
            if word == "IF":
                return self._conditional()
            if word == "LET":
                return self._let()
            if word in ("FORALL", "EXISTS"):
                return self._quantifier()
        return self._operators(0)

    # -- forms that begin with a word -------------------------------------------------------------

    def _conditional(self) -> ast.Expression:
        start = self.expect("IF")
        condition = self.closed_expression()
        self.expect("THEN")
        then = self.closed_expression()
        self.expect("ELSE")
        otherwise = self.expression()
        return ast.If(condition, then, otherwise, start.span.to(otherwise.span))

    def _let(self) -> ast.Expression:
        start = self.expect("LET")
        name = self.name("a name after LET")
        self.expect("=")
        value = self._let_value()
        if self.at(","):  # `LET a = 1, b = 2 IN …` is `LET a = 1 IN LET b = 2 IN …`
            body = self._nested_let(self.take())
        else:
            self.expect("IN")
            body = self.expression()
        return ast.Let(name, value, body, start.span.to(body.span))

    def _nested_let(self, start: Token) -> ast.Expression:
        return self.parse_nested(lambda: self._next_let(start))

    def _next_let(self, start: Token) -> ast.Expression:
        name = self.name("a name after the comma")
        self.expect("=")
        value = self._let_value()
        if self.at(","):
            body = self._nested_let(self.take())
        else:
            self.expect("IN")
            body = self.expression()
        return ast.Let(name, value, body, start.span.to(body.span))

    def _quantifier(self) -> ast.Expression:
        word = self.take()
        binding = self.binding()
        if not self.at("SATISFIES", ":"):
            self.fail("`SATISFIES`")
        self.take()
        holds = self.expression()
        return ast.Quantifier(ast.Word(word.text, word.span), binding, holds, word.span.to(holds.span))

    def binding(self) -> ast.Binding:
        """Parse `line IN items WHERE …` after the word that introduces it."""
        names = [self.name("a name for each item")]
        if self.at(","):
            self.take()
            names.append(self.name("a second name"))
        self.expect("IN")
        over = self._operators(_COMPARISON + 1)
        where = None
        if self.at("WHERE"):
            self.take()
            where = self.closed_expression()
        return ast.Binding(tuple(names), over, where)

    def _optional_binding(self) -> ast.Binding | None:
        if not self.at("FOR"):
            return None
        self.take()
        return self.binding()

    # -- operators --------------------------------------------------------------------------------

    def _operators(self, loosest: int) -> ast.Expression:
        """Parse operands joined by operators that bind at least as tightly as this level.

        One call handles all levels, so that a parenthesis costs a few stack frames instead of one per level.
        """
        left = self._prefix(loosest)
        last_level: int | None = None
        while (level := self._infix_level()) is not None and level >= loosest:
            sign = self.take()
            if level == last_level and OPERATOR_LEVELS[level].associates == "none":
                self._refuse_second_comparison(sign)
            left = self._is_null(left, sign) if sign.text == "IS" else self._infix(left, sign, level)
            last_level = level
        return left

    def _infix_level(self) -> int | None:
        kind, text = self.next.kind, self.next.text
        if kind is SIGN:
            return _INFIX.get(text)
        if kind is not WORD or (self._ends_at_in and text in ("IN", "NOT")):
            return None
        if text == "IS" or (text == "NOT" and self.next_but_one_is("IN")):
            return _COMPARISON
        return _INFIX.get(text)

    def _infix(self, left: ast.Expression, sign: Token, level: int) -> ast.Expression:
        inside = self.take() if sign.text == "NOT" else sign
        if inside.text == "IN" and self._is_at_range():
            joined: ast.Expression = self._range(left)
            return joined if inside is sign else ast.Prefix(ast.Word("NOT", sign.span), joined, joined.span)
        associates = OPERATOR_LEVELS[level].associates
        if associates == "right":
            right = self.parse_nested(lambda: self._operators(level))
        else:
            right = self._operators(level + 1)
        whole = left.span.to(right.span)
        joined = ast.Infix(left, ast.Word(inside.text, inside.span), right, whole)
        return joined if inside is sign else ast.Prefix(ast.Word("NOT", sign.span), joined, whole)

    def _is_at_range(self) -> bool:
        """Return whether the bracket ahead encloses two bounds with `..` between them."""
        depth = 0
        for token in self.upcoming() if self.at("[", "(") else ():
            if token.kind is SIGN and token.text in "([{":
                depth += 1
            elif token.kind is SIGN and token.text in ")]}":
                depth -= 1
            if depth == 0 or (depth == 1 and token.kind is SIGN and token.text == ".."):
                return depth == 1
        return False

    def _range(self, value: ast.Expression) -> ast.Expression:
        includes_low = self.take().text == "["
        low = self.closed_expression()
        self.expect("..")
        high = self.closed_expression()
        if not self.at("]", ")"):
            self.fail("`]` or `)`")
        end = self.take()
        return ast.InRange(value, low, high, includes_low, end.text == "]", value.span.to(end.span))

    def _is_null(self, operand: ast.Expression, start: Token) -> ast.Expression:
        del start
        is_negated = self.at("NOT")
        if is_negated:
            self.take()
        end = self.expect("NULL")
        return ast.IsNull(operand, is_negated, operand.span.to(end.span))

    def _refuse_second_comparison(self, sign: Token) -> None:
        self.bag.error(
            Code.EXPRESSION_SYNTAX,
            sign.span,
            expected="one comparison",
            found=f"a second one, `{sign.text}`",
            help="join two comparisons with AND, or put one in parentheses",
        )
        raise SyntaxProblem

    def _prefix(self, loosest: int) -> ast.Expression:
        """Parse a prefix operator with its operand, or a value."""
        kind = self.next.kind
        level = _PREFIX.get(self.next.text) if kind is SIGN or kind is WORD else None
        if level is None or level < loosest:
            return self._postfix(self._primary())
        sign = self.take()
        operand = self.parse_nested(lambda: self._operators(level))
        operator = next(each for each in OPERATOR_LEVELS[level].operators if each.removeprefix("unary ") == sign.text)
        return ast.Prefix(ast.Word(operator, sign.span), operand, sign.span.to(operand.span))

    def _postfix(self, base: ast.Expression) -> ast.Expression:
        # `AT` is no reserved word: a name directly after a value has no other meaning, and enums have members `AT`.
        if self.next.kind is NAME and self.next.text == "AT" and isinstance(base, ast.Name):
            self.take()
            date = self.parse_nested(lambda: self._postfix(self._primary()))
            return ast.AtDate(ast.Word(base.text, base.span), date, base.span.to(date.span))
        while self.next.text in _POSTFIX and self.at(*_POSTFIX):
            if self._ends_at_as and self.at("AS"):
                break
            sign = self.take()
            if sign.text == ".":
                name = self.name("a name after the point")
                base = ast.Field(base, name, base.span.to(name.span))
            elif sign.text == "[":
                index = self.closed_expression()
                base = ast.Index(base, index, base.span.to(self.expect("]").span))
            elif sign.text == "AS":
                type_ = self.type()
                base = ast.Ascription(base, type_, base.span.to(type_.span))
            else:
                changes = self._braces()
                if not isinstance(changes, ast.RecordLiteral):
                    self.fail_at(changes.span, "fields in braces after WITH", "something else")
                base = ast.With(base, changes, base.span.to(changes.span))
        return base

    # -- values -----------------------------------------------------------------------------------

    def _primary(self) -> ast.Expression:
        token, kind = self.next, self.next.kind
        if kind is NAME:
            return self._name_or_call()
        if kind is NUMBER:
            self.take()
            return ast.Number(token.text, token.span)
        if kind is STRING:
            self.take()
            return ast.String(token.text, token.span, token.offsets)
        match token.text:
            case "(":
                start = self.take()
                inner = self.closed_expression()
                # The expression is new and unshared, so its span is changed in place; a copy takes as long as the
                # parsing.
                object.__setattr__(inner, "span", start.span.to(self.expect(")").span))
                return inner
            case "true" | "false":
                self.take()
                return ast.Boolean(token.text == "true", token.span)
            case "null" | "NULL":
                self.take()
                return ast.Null(token.span)
            case "[":
                return self._brackets()
            case "{":
                return self._braces()
            case "IF" | "LET" | "FORALL" | "EXISTS":
                return self.expression()
            case "CAST":
                return self._cast()
            case word if word in AGGREGATES:
                return self._aggregate()
            case _:
                self.fail("a value")

    def _name_or_call(self) -> ast.Expression:
        name = self.take()
        if not self.at("("):
            return ast.Name(name.text, name.span)
        word = ast.Word(name.text, name.span)
        self.take()
        if self.next.kind is NAME and self.next_but_one_is(":"):
            return self._node_call(word)
        arguments: list[ast.Expression] = []
        named: list[tuple[ast.Word, ast.Expression]] = []
        binding: ast.Binding | None = None
        while not self.at(")"):
            if binding is not None and self.next.kind is NAME and self.next_but_one_is("="):
                name_of = self.name("a name before `=`")
                self.expect("=")
                named.append((name_of, self.closed_expression()))
            else:
                arguments.append(self.closed_expression())
            if len(arguments) == 1 and not named and binding is None:
                binding = self._optional_binding()
            if not self.at(")"):
                self.expect(",")
        span = word.span.to(self.expect(")").span)
        return ast.Call(word, tuple(arguments), binding, span, tuple(named))

    def _node_call(self, word: ast.Word) -> ast.Expression:
        """Parse the inputs of a called node, after the parenthesis."""
        inputs: list[tuple[ast.Word, ast.Expression]] = []
        while not self.at(")"):
            name = self.name("the name of an input")
            self.expect(":")
            inputs.append((name, self.closed_expression()))
            if not self.at(")"):
                self.expect(",")
        return ast.NodeCall(word, tuple(inputs), word.span.to(self.take().span))

    def _aggregate(self) -> ast.Expression:
        word = self.take()
        self.expect("(")
        value = self.closed_expression()
        binding = self._optional_binding()
        return ast.Aggregate(ast.Word(word.text, word.span), value, binding, word.span.to(self.expect(")").span))

    def _cast(self) -> ast.Expression:
        start = self.take()
        self.expect("(")
        value = self._cast_value()
        self.expect("AS")
        type_ = self.type()
        return ast.Cast(value, type_, start.span.to(self.expect(")").span))

    def _cast_value(self) -> ast.Expression:
        outer, self._ends_at_in, self._ends_at_as = (self._ends_at_in, self._ends_at_as), False, True
        try:
            return self.expression()
        finally:
            self._ends_at_in, self._ends_at_as = outer

    def _brackets(self) -> ast.Expression:
        start = self.take()
        items: list[ast.Expression] = []
        while not self.at("]"):
            items.append(self.closed_expression())
            if len(items) == 1 and (binding := self._optional_binding()) is not None:
                return ast.Comprehension("array", None, items[0], binding, start.span.to(self.expect("]").span))
            if not self.at("]"):
                self.expect(",")
        return ast.ArrayLiteral(tuple(items), start.span.to(self.take().span))

    def _braces(self) -> ast.Expression:
        """Parse a record, a map, or a comprehension of a set or a map."""
        start = self.expect("{")
        entries: list[tuple[ast.Expression, ast.Expression]] = []
        while not self.at("}"):
            key = self.closed_expression()
            if not entries and (binding := self._optional_binding()) is not None:
                return ast.Comprehension("set", None, key, binding, start.span.to(self.expect("}").span))
            self.expect(":")
            value = self.closed_expression()
            if not entries and (binding := self._optional_binding()) is not None:
                return ast.Comprehension("map", key, value, binding, start.span.to(self.expect("}").span))
            entries.append((key, value))
            if not self.at("}"):
                self.expect(",")
        span = start.span.to(self.take().span)
        if all(isinstance(key, ast.Name) for key, _ in entries):
            named = tuple((ast.Word(key.text, key.span), value) for key, value in entries if isinstance(key, ast.Name))
            return ast.RecordLiteral(named, span)
        return ast.MapLiteral(tuple(entries), span)


def _depth(root: ast.Expression) -> int:
    """Return the depth of the tree. Iterative, because chains of operators nest to the left without bound."""
    deepest = 0
    waiting: list[tuple[ast.Expression, int]] = [(root, 1)]
    while waiting:
        expression, depth = waiting.pop()
        deepest = max(deepest, depth)
        waiting += [(part, depth + 1) for part in ast.parts(expression)]
    return deepest
