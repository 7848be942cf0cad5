"""Parser of zen's expressions: the standard form, and the unary form of table cells.

In a cell a value stands for its comparison with the column: `'a', 'b'` is `$ == 'a' or $ == 'b'`, `[1..5)` is
`$ in [1..5)`, `> 3` is `$ > 3`; a condition stands for itself.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

from vesper.importers.zen.syntax import (
    CLOSURES,
    Array,
    Assignments,
    Binary,
    Boolean,
    Call,
    Conditional,
    Interval,
    Member,
    Method,
    Name,
    Node,
    Null,
    Number,
    Object,
    Pointer,
    Slice,
    String,
    Template,
    Token,
    Unary,
    ZenSyntaxError,
    template_parts,
    tokens_of,
)

MAX_DEPTH = 64
_COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">=", "in", "not in"})
_PRECEDENCE = {
    "or": 10, "and": 15, **dict.fromkeys(_COMPARISONS, 20),
    "+": 30, "-": 30, "*": 60, "/": 60, "%": 60, "^": 70, "??": 80,
}  # fmt: skip
_PREFIX = {"not": 50, "+": 200, "-": 200}
_BOOLEAN_CALLS = frozenset(
    {"contains", "startsWith", "endsWith", "matches", "isNumeric", "all", "some", "none", "one"}
    | {"isSame", "isBefore", "isAfter", "isSameOrBefore", "isSameOrAfter", "isValid", "isYesterday", "isToday"}
    | {"isTomorrow", "isLeapYear"}
)
_COLLECTION_CALLS = frozenset(
    {"flatten", "merge", "mergeDeep", "extract", "split", "keys", "values"} | {"filter", "map", "flatMap"}
)
COLUMN = Name("$")


def parse_expression(source: str) -> Node:
    """Return the tree of an expression. Raises `ZenSyntaxError`."""
    parser = _Parser(tokens_of(source))
    node = parser.expression(0)
    parser.expect_end()
    return node


def parse_cell(source: str) -> Node:
    """Return the tree of the condition that a cell of an input column states. Raises `ZenSyntaxError`."""
    parser = _Parser(tokens_of(source))
    node = parser.cell()
    parser.expect_end()
    return node


class _Parser:
    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.at = 0
        self.depth = 0
        self.is_cell = False
        self.intervals = _intervals(tokens)

    @property
    def token(self) -> Token:
        return self.tokens[self.at]

    def is_operator(self, *texts: str) -> bool:
        return self.token.kind == "operator" and self.token.text in texts

    def accept(self, text: str) -> bool:
        if self.is_operator(text):
            self.at += 1
            return True
        return False

    def expect(self, text: str) -> None:
        if not self.accept(text):
            raise self.unexpected(f"`{text}`")

    def expect_end(self) -> None:
        if self.token.kind != "end":
            raise self.unexpected("the end")

    def unexpected(self, wanted: str) -> ZenSyntaxError:
        found = f"`{self.token.text}`" if self.token.kind != "end" else "the end"
        return ZenSyntaxError(f"found {found} at position {self.token.at + 1} instead of {wanted}")

    def cell(self) -> Node:
        node = self.cell_test()
        while self.is_operator("and", "or", ","):
            operator = "and" if self.token.text == "and" else "or"
            self.at += 1
            node = Binary(operator, node, self.cell_test())
        return node

    def cell_test(self) -> Node:
        if self.token.kind == "operator" and self.token.text in _COMPARISONS:
            operator = self.token.text
            self.at += 1
            return Binary(operator, COLUMN, self.cell_expression())
        value = self.cell_expression()
        compared = _comparison(value)
        return Binary(compared, COLUMN, value) if compared else Call("bool", (value,))

    def cell_expression(self) -> Node:
        self.is_cell = True
        node = self.expression(0)
        self.is_cell = False
        return node

    def nested(self) -> Node:
        """Return an expression inside brackets, where `and`, `or` and commas do not separate tests of a cell."""
        was_cell, self.is_cell = self.is_cell, False
        node = self.expression(0)
        self.is_cell = was_cell
        return node

    def expression(self, precedence: int) -> Node:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise ZenSyntaxError(f"the expression is nested more than {MAX_DEPTH} levels deep")
        left = self.prefix()
        while self.token.kind == "operator" and not (self.is_cell and self.token.text in ("and", "or")):
            operator = self.token.text
            binds = _PRECEDENCE.get(operator, -1)
            if binds < precedence or binds < 0:
                break
            self.at += 1
            left = Binary(operator, left, self.expression(binds if operator == "^" else binds + 1))
        if precedence == 0 and self.accept("?"):
            then = self.expression(0)
            self.expect(":")
            left = Conditional(left, then, self.expression(0))
        self.depth -= 1
        return left

    def prefix(self) -> Node:
        if self.is_operator(*_PREFIX):
            operator = self.token.text
            self.at += 1
            return Unary(operator, self.expression(_PREFIX[operator]))
        return self.primary()

    def primary(self) -> Node:
        token = self.token
        if token.kind == "operator":
            if self.at in self.intervals:
                return self.postfix(self.interval())
            if self.accept("("):
                node = self.nested()
                self.expect(")")
                return self.postfix(node)
            if self.accept("["):
                return self.postfix(Array(self.items("]")))
            if self.accept("{"):
                return self.object()
            raise self.unexpected("a value")
        self.at += 1
        match token.kind:
            case "number":
                return Number(_digits(token))
            case "string":
                return String(token.text[1:-1])
            case "template":
                parts = template_parts(token.text)
                return Template(tuple(parse_expression(text) if is_hole else String(text) for is_hole, text in parts))
            case "name":
                return self.name(token)
        self.at -= 1
        raise self.unexpected("a value")

    def name(self, token: Token) -> Node:
        words: dict[str, Node] = {"null": Null(), "true": Boolean(True), "false": Boolean(False), "#": Pointer()}
        if token.text in words:
            return self.postfix(words[token.text])
        if self.is_operator("("):
            self.at += 1
            return self.postfix(self.call(token.text))
        node = self.postfix(Name(token.text))
        if self.is_operator("="):
            return self.assignments(node)
        return node

    def call(self, name: str) -> Node:
        if name not in CLOSURES:
            return Call(name, self.items(")"))
        source = self.nested()
        alias = None
        if self.token.kind == "name" and self.token.text == "as":
            self.at += 1
            if self.token.kind != "name":
                raise self.unexpected("a name")
            alias = self.token.text
            self.at += 1
        self.expect(",")
        body = self.nested()
        self.expect(")")
        return Call(name, (source, body), alias)

    def items(self, closing: str) -> tuple[Node, ...]:
        items: list[Node] = []
        while not self.accept(closing):
            if items:
                self.expect(",")
                if self.accept(closing):
                    break
            items.append(self.nested())
        return tuple(items)

    def object(self) -> Node:
        entries: list[tuple[Node, Node]] = []
        while not self.accept("}"):
            if entries:
                self.expect(",")
                if self.accept("}"):
                    break
            key = self.object_key()
            self.expect(":")
            entries.append((key, self.nested()))
        return self.postfix(Object(tuple(entries)))

    def object_key(self) -> Node:
        token = self.token
        if self.accept("["):
            key = self.nested()
            self.expect("]")
            return key
        if token.kind not in ("name", "number", "string"):
            raise self.unexpected("a key")
        self.at += 1
        return String(token.text[1:-1] if token.kind == "string" else token.text)

    def postfix(self, node: Node) -> Node:
        while True:
            if self.accept("."):
                key = self.token
                if key.kind != "name" and key.text not in ("and", "or", "in", "not"):
                    raise self.unexpected("a key")
                self.at += 1
                if self.accept("("):
                    node = Method(node, key.text, self.items(")"))
                else:
                    node = Member(node, String(key.text))
            elif self.accept("["):
                node = self.subscript(node)
            else:
                return node

    def subscript(self, node: Node) -> Node:
        start = None if self.is_operator(":") else self.nested()
        if self.accept(":"):
            end = None if self.is_operator("]") else self.nested()
            self.expect("]")
            return Slice(node, start, end)
        self.expect("]")
        assert start is not None
        return Member(node, start)

    def interval(self) -> Node:
        has_left = self.token.text == "["
        self.at += 1
        left = self.nested()
        self.expect("..")
        right = self.nested()
        has_right = self.is_operator("]")
        self.expect("]" if has_right else ")")
        return Interval(left, right, has_left, has_right)

    def assignments(self, first: Node) -> Node:
        entries: list[tuple[str, Node]] = []
        key: Node | None = first
        while key is not None:
            self.expect("=")
            entries.append((_path(key), self.nested()))
            key = None
            if self.accept(";") and self.token.kind != "end":
                start = self.at
                if self.token.kind == "name" and self.token.text not in ("null", "true", "false", "#"):
                    self.at += 1
                    key = self.postfix(Name(self.tokens[start].text))
                if key is None or not self.is_operator("="):
                    self.at = start
                    return Assignments(tuple(entries), self.nested())
        return Assignments(tuple(entries), None)


def _intervals(tokens: list[Token]) -> set[int]:
    """Return the positions of brackets that begin an interval: `..` stands directly between them."""
    found: set[int] = set()
    opened: list[int] = []
    for at, token in enumerate(tokens):
        if token.kind != "operator":
            continue
        if token.text in ("(", "[", "{"):
            opened.append(at)
        elif token.text in (")", "]", "}") and opened:
            opened.pop()
        elif token.text == ".." and opened:
            found.add(opened[-1])
    return found


def _path(node: Node) -> str:
    match node:
        case Name(text):
            return text
        case Member(base, String(key)):
            return f"{_path(base)}.{key}"
    raise ZenSyntaxError("only a name with keys can be assigned")


def _digits(token: Token) -> str:
    text = token.text.replace("_", "")
    if "e" not in text.lower():
        return text
    try:
        return f"{Decimal(text):f}" if abs(Decimal(text).adjusted()) < 100 else text
    except InvalidOperation as error:
        raise ZenSyntaxError(f"`{token.text}` is no number") from error


def _comparison(node: Node) -> str | None:
    """Return the operator that compares a column with this value of a cell; None where the value is a condition."""
    match node:
        case Array() | Slice() | Interval():
            return "in"
        case Conditional(_, then, otherwise):
            return _comparison(then) if _comparison(then) == _comparison(otherwise) else "=="
        case Unary(_, operand):
            return _comparison(operand)
        case Binary(operator, left, right):
            if operator in ("and", "or", "??") or operator in _COMPARISONS:
                return None
            return _comparison(left) if _comparison(left) == _comparison(right) else "=="
        case Call(name) | Method(_, name):
            return None if name in _BOOLEAN_CALLS else "in" if name in _COLLECTION_CALLS else "=="
        case Pointer():
            return None
    return "=="
