"""Parser of FEEL: expressions and unary tests. Names with spaces are resolved by the names in scope."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import contextmanager
from typing import TYPE_CHECKING

from vesper.importers.dmn.feel.syntax import (
    AtLiteral,
    Between,
    Binary,
    Call,
    Comparison,
    ContextLiteral,
    Feel,
    Filter,
    For,
    FunctionLiteral,
    If,
    In,
    InstanceOf,
    Iterator,
    ListLiteral,
    Name,
    Null,
    Number,
    Path,
    Quantified,
    Range,
    Text,
    Truth,
    TypeName,
    Unary,
    UnaryTests,
)
from vesper.importers.dmn.feel.tokens import KEYWORDS, NUMBER, Cursor, FeelProblem

if TYPE_CHECKING:
    from collections.abc import Generator

MAX_DEPTH = 100
_COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
FUNCTION_NAMES = (
    "date", "time", "date and time", "years and months duration", "days and time duration",
    "string length", "upper case", "lower case",
    "substring before", "substring after", "starts with", "ends with", "list contains", "index of", "insert before",
    "distinct values", "get value", "get entries", "round up", "round down", "round half up", "round half down",
    "met by", "overlaps before", "overlaps after", "finished by", "started by", "day of year", "day of week",
    "month of year", "week of year", "context put", "context merge", "string join", "list replace", "is", "number",
)  # fmt: skip
"""Built-in functions whose names have spaces, and the types that are functions."""
TYPE_NAMES = (
    "date and time", "days and time duration", "years and months duration", "day time duration", "year month duration",
)  # fmt: skip
PROPERTY_NAMES = ("time offset", "start included", "end included")
_MULTIPLE_WORDS = tuple(name for name in FUNCTION_NAMES if " " in name)


def parse_expression(text: str, names: Iterable[str], properties: Iterable[str] = ()) -> Feel:
    """Parse an expression. Raises `FeelProblem`."""
    parser = _Parser(text, names, properties)
    found = parser.expression()
    if not parser.cursor.at_end():
        raise parser.cursor.fail("expected the end of the expression")
    return found


def parse_unary_tests(text: str, names: Iterable[str], properties: Iterable[str] = ()) -> UnaryTests:
    """Parse the cell of a table. Raises `FeelProblem`."""
    parser = _Parser(text, [*names, "?"], properties)
    found = parser.unary_tests()
    if not parser.cursor.at_end():
        raise parser.cursor.fail("expected the end of the cell")
    return found


class _Parser:
    def __init__(self, text: str, names: Iterable[str], properties: Iterable[str]) -> None:
        self.cursor = Cursor(text)
        self._scopes: list[set[str]] = [set(_MULTIPLE_WORDS), set(names)]
        self._properties = {*PROPERTY_NAMES, *properties}
        self._depth = 0
        self._has_filters = True

    @contextmanager
    def _scope(self, names: Iterable[str] = ()) -> Generator[set[str], None, None]:
        self._scopes.append(set(names))
        try:
            yield self._scopes[-1]
        finally:
            self._scopes.pop()

    def expression(self) -> Feel:
        """Parse any expression."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self.cursor.fail(f"an expression has at most {MAX_DEPTH} levels")
        try:
            return self._expression()
        finally:
            self._depth -= 1

    def _expression(self) -> Feel:
        cursor = self.cursor
        at = cursor.at
        match cursor.word():
            case "if":
                cursor.take_word("if")
                condition = self.expression()
                cursor.expect_word("then")
                then = self.expression()
                cursor.expect_word("else")
                return If(condition, then, self.expression(), at)
            case "for":
                cursor.take_word("for")
                with self._scope() as scope:
                    iterators = self._iterators(scope)
                    cursor.expect_word("return")
                    scope.add("partial")
                    return For(iterators, self.expression(), at)
            case "some" | "every" as kind:
                cursor.take_word(kind)
                with self._scope() as scope:
                    iterators = self._iterators(scope)
                    cursor.expect_word("satisfies")
                    return Quantified(kind, iterators, self.expression(), at)
        return self._binary(0)

    def _iterators(self, scope: set[str]) -> tuple[Iterator, ...]:
        cursor = self.cursor
        found = []
        while True:
            at = cursor.at
            name = self._new_name(("in",))
            cursor.expect_word("in")
            source = self._binary(0)
            end = self._binary(0) if cursor.take("..") else None
            found.append(Iterator(name, source, end, at))
            scope.add(name)
            if not cursor.take(","):
                return tuple(found)

    def _new_name(self, stops: tuple[str, ...]) -> str:
        """Read words up to a keyword or symbol that ends a new name."""
        cursor = self.cursor
        parts = []
        while True:
            word = cursor.word()
            if word and word not in stops:
                parts.append(word)
                cursor.at += len(word)
                cursor.skip()
                continue
            number = NUMBER.match(cursor.text, cursor.at) if parts else None
            symbol = cursor.symbol()
            if number is not None:
                parts.append(number[0])
                cursor.at = number.end()
            elif parts and symbol in ("-", "+", "*", "/", ".", "'", "**"):
                parts.append(symbol)
                cursor.at += len(symbol)
            else:
                break
            cursor.skip()
        if not parts:
            raise cursor.fail("expected a name")
        return " ".join(parts)

    def _binary(self, level: int) -> Feel:
        if level == len(_LEVELS):
            return self._unary()
        if level == _COMPARISON_LEVEL:
            return self._comparison()
        left = self._binary(level + 1)
        cursor = self.cursor
        while True:
            at = cursor.at
            operator = next((each for each in _LEVELS[level] if self._takes(each)), None)
            if operator is None:
                return left
            left = Binary(operator, left, self._binary(level + 1), at)

    def _takes(self, operator: str) -> bool:
        return self.cursor.take_word(operator) if operator.isalpha() else self.cursor.take(operator)

    def _comparison(self) -> Feel:
        cursor = self.cursor
        left = self._binary(_COMPARISON_LEVEL + 1)
        while True:
            at = cursor.at
            operator = next((each for each in _COMPARISONS if cursor.take(each)), None)
            if operator is not None:
                left = Binary(operator, left, self._binary(_COMPARISON_LEVEL + 1), at)
            elif cursor.take_word("between"):
                low = self._binary(_COMPARISON_LEVEL + 1)
                cursor.expect_word("and")
                left = Between(left, low, self._binary(_COMPARISON_LEVEL + 1), at)
            elif cursor.take_word("in"):
                left = In(left, self._in_tests(), at)
            else:
                return left

    def _in_tests(self) -> tuple[Feel, ...]:
        """Parse one test, or several in parentheses."""
        cursor = self.cursor
        start = cursor.at
        if cursor.take("("):
            try:
                tests = [self._test()]
                while cursor.take(","):
                    tests.append(self._test())
                if cursor.take(")") and (len(tests) > 1 or not self._goes_on()):
                    return tuple(tests)
            except FeelProblem:
                pass  # the parenthesis opens a range or an expression
            cursor.at = start
        return (self._test(),)

    def _goes_on(self) -> bool:
        """Return whether parentheses begin an operand, and not a list of tests."""
        symbol = self.cursor.symbol()
        return symbol in ("..", ".", "[", "+", "-", "*", "/", "**", "(")

    def _test(self) -> Feel:
        """Parse one positive unary test."""
        cursor = self.cursor
        at = cursor.at
        for operator in _COMPARISONS:
            if cursor.take(operator):
                return Comparison(operator, self._binary(_COMPARISON_LEVEL + 1), at)
        return self.expression()

    def unary_tests(self) -> UnaryTests:
        """Parse a cell."""
        cursor = self.cursor
        at = cursor.at
        if cursor.at_end():
            return UnaryTests((), False, at)
        if cursor.take("-"):
            if cursor.at_end():
                return UnaryTests((), False, at)
            cursor.at = at
        if cursor.word() == "not":
            cursor.take_word("not")
            if cursor.take("("):
                tests = self._test_list()
                if cursor.take(")") and cursor.at_end():
                    return UnaryTests(tests, True, at)
            cursor.at = at
        return UnaryTests(self._test_list(), False, at)

    def _test_list(self) -> tuple[Feel, ...]:
        tests = [self._test()]
        while self.cursor.take(","):
            tests.append(self._test())
        return tuple(tests)

    def _unary(self) -> Feel:
        cursor = self.cursor
        at = cursor.at
        if cursor.symbol() == "-":
            cursor.take("-")
            self._depth += 1
            if self._depth > MAX_DEPTH:
                raise cursor.fail(f"an expression has at most {MAX_DEPTH} levels")
            try:
                return Unary(self._unary(), at)
            finally:
                self._depth -= 1
        return self._instance_of(self._postfix())

    def _instance_of(self, value: Feel) -> Feel:
        cursor = self.cursor
        while cursor.word() == "instance":
            at = cursor.at
            cursor.take_word("instance")
            cursor.expect_word("of")
            value = InstanceOf(value, self.type_name(), at)
        return value

    def type_name(self) -> TypeName:
        """Parse the name of a type."""
        cursor = self.cursor
        at = cursor.at
        known = cursor.known_name(TYPE_NAMES)
        name = known or self._qualified_name()
        if name in ("list", "range") and cursor.take("<"):
            inner = self.type_name()
            cursor.expect(">")
            return TypeName(name, (inner,), (), at)
        if name == "context" and cursor.take("<"):
            return self._context_type(at)
        if name == "function" and cursor.take("<"):
            parameters = []
            if not cursor.take(">"):
                parameters = [self.type_name()]
                while cursor.take(","):
                    parameters.append(self.type_name())
                cursor.expect(">")
            cursor.expect("->")
            return TypeName(name, (*parameters, self.type_name()), (), at)
        return TypeName(name, (), (), at)

    def _context_type(self, at: int) -> TypeName:
        cursor = self.cursor
        names, types = [], []
        while True:
            names.append(self._new_name(()))
            cursor.expect(":")
            types.append(self.type_name())
            if not cursor.take(","):
                break
        cursor.expect(">")
        return TypeName("context", tuple(types), tuple(names), at)

    def _qualified_name(self) -> str:
        cursor = self.cursor
        known = cursor.known_name(self._properties)
        parts = [known] if known else []
        if not parts:
            word = cursor.word()
            if not word:
                raise cursor.fail("expected the name of a type")
            cursor.at += len(word)
            cursor.skip()
            parts = [word]
        while cursor.symbol() == "." and cursor.take("."):
            word = cursor.word()
            if not word:
                raise cursor.fail("expected the name of a type")
            cursor.at += len(word)
            cursor.skip()
            parts.append(word)
        return ".".join(parts)

    def _postfix(self) -> Feel:
        cursor = self.cursor
        value = self._primary()
        while True:
            at = cursor.at
            symbol = cursor.symbol()
            if symbol == ".":
                cursor.take(".")
                value = Path(value, self._property(), at)
            elif symbol == "[" and self._has_filters:
                cursor.take("[")
                with self._scope({*self._properties, "item"}):
                    condition = self.expression()
                cursor.expect("]")
                value = Filter(value, condition, at)
            elif symbol == "(":
                value = self._call(value, at)
            else:
                return value

    def _property(self) -> str:
        cursor = self.cursor
        known = cursor.known_name(self._properties)
        if known:
            return known
        word = cursor.word()
        if not word:
            raise cursor.fail("expected the name of a property")
        cursor.at += len(word)
        cursor.skip()
        return word

    def _call(self, function: Feel, at: int) -> Feel:
        cursor = self.cursor
        cursor.expect("(")
        if cursor.take(")"):
            return Call(function, (), (), at)
        start = cursor.at
        names: list[str] = []
        arguments: list[Feel] = []
        try:
            while True:
                name = self._new_name(())
                cursor.expect(":")
                names.append(name)
                arguments.append(self.expression())
                if not cursor.take(","):
                    break
            cursor.expect(")")
            return Call(function, tuple(arguments), tuple(names), at)
        except FeelProblem:
            if names:
                raise
            cursor.at = start
        arguments = [self.expression()]
        while cursor.take(","):
            arguments.append(self.expression())
        cursor.expect(")")
        return Call(function, tuple(arguments), (), at)

    def _primary(self) -> Feel:
        cursor = self.cursor
        at = cursor.at
        text = cursor.string()
        if text is not None:
            return Text(text, at)
        if cursor.symbol() == "@":
            cursor.take("@")
            text = cursor.string()
            if text is None:
                raise cursor.fail("expected a string after `@`")
            return AtLiteral(text, at)
        number = cursor.match(NUMBER)
        if number is not None:
            return Number(number[0], at)
        reader = _BRACKETS.get(cursor.symbol())
        if reader is not None:
            return reader(self, at)
        return self._word(at)

    def _word(self, at: int) -> Feel:
        cursor = self.cursor
        known = cursor.known_name(name for scope in self._scopes for name in scope)
        word = cursor.word()
        if known is not None:
            return Name(known, at)
        match word:
            case "true" | "false":
                cursor.take_word(word)
                return Truth(word == "true", at)
            case "null":
                cursor.take_word(word)
                return Null(at)
            case "function":
                return self._function(at)
        if not word or word in KEYWORDS:
            raise cursor.fail("expected a value")
        cursor.take_word(word)
        return Name(word, at)

    def _function(self, at: int) -> Feel:
        cursor = self.cursor
        cursor.take_word("function")
        cursor.expect("(")
        names: list[str] = []
        types: list[TypeName | None] = []
        if not cursor.take(")"):
            while True:
                names.append(self._new_name(()))
                types.append(self.type_name() if cursor.take(":") else None)
                if not cursor.take(","):
                    break
            cursor.expect(")")
        is_external = cursor.take_word("external")
        with self._scope(names):
            return FunctionLiteral(tuple(names), tuple(types), self.expression(), is_external, at)

    def _parenthesis(self, at: int) -> Feel:
        cursor = self.cursor
        cursor.expect("(")
        for operator in _COMPARISONS:
            if cursor.take(operator):
                endpoint = self._binary(_COMPARISON_LEVEL + 1)
                cursor.expect(")")
                return Comparison(operator, endpoint, at)
        inner = self.expression()
        if cursor.take(".."):
            return self._range_end(inner, False, at)
        cursor.expect(")")
        return inner

    def _square(self, at: int) -> Feel:
        cursor = self.cursor
        cursor.expect("[")
        if cursor.take("]"):
            return ListLiteral((), at)
        items = [self._item()]
        if cursor.take(".."):
            return self._range_end(items[0], True, at)
        while cursor.take(","):
            items.append(self._item())
        cursor.expect("]")
        return ListLiteral(tuple(items), at)

    def _item(self) -> Feel:
        """Parse an item of a list; `in [< 3, [1..2]]` lists tests."""
        cursor = self.cursor
        return self._test() if cursor.symbol() in _COMPARISONS else self.expression()

    def _open_range(self, at: int) -> Feel:
        self.cursor.expect("]")
        low = self._binary(0)
        self.cursor.expect("..")
        return self._range_end(low, False, at)

    def _range_end(self, low: Feel, is_low_closed: bool, at: int) -> Feel:
        """Parse the upper end. `[` after it ends an open range; it is a filter only if that gives no range."""
        cursor = self.cursor
        start = cursor.at
        for has_filters in (True, False):
            cursor.at = start
            self._has_filters = has_filters
            try:
                high = self._binary(0)
            except FeelProblem:
                if not has_filters:
                    raise
                continue
            finally:
                self._has_filters = True
            if cursor.take("]"):
                return Range(low, high, is_low_closed, True, at)
            if cursor.take(")") or cursor.take("["):
                return Range(low, high, is_low_closed, False, at)
        raise cursor.fail("expected the end of a range")

    def _braces(self, at: int) -> Feel:
        cursor = self.cursor
        cursor.expect("{")
        entries: list[tuple[str, Feel]] = []
        with self._scope() as scope:
            while cursor.symbol() != "}":
                key = cursor.string()
                name = self._new_name(()) if key is None else key
                cursor.expect(":")
                entries.append((name, self.expression()))
                scope.add(name)
                self._properties.add(name)
                if not cursor.take(","):
                    break
            cursor.expect("}")
        return ContextLiteral(tuple(entries), at)


_LEVELS = (("or",), ("and",), (), ("+", "-"), ("*", "/"), ("**",))
"""Operators from the loosest to the tightest; the empty level is comparison."""
_COMPARISON_LEVEL = 2
_BRACKETS: dict[str, Callable[[_Parser, int], Feel]] = {
    "(": _Parser._parenthesis,
    "[": _Parser._square,
    "]": _Parser._open_range,
    "{": _Parser._braces,
}
