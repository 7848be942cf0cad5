"""Parser from tokens to types: `decimal`, `enum[a, b]`, `map<string, array<Line>>`."""

from __future__ import annotations

from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.syntax import ast
from vesper.language.syntax.scalar_text import PlacedText, place_text
from vesper.language.syntax.token_reader import TokenReader
from vesper.language.syntax.tokens import NAME, STRING, WORD, tokenize
from vesper.language.syntax.yaml_tree import Scalar

ARITY = {"array": 1, "set": 1, "optional": 1, "map": 2}


def parse_type(scalar: Scalar, bag: DiagnosticBag) -> ast.TypeText | None:
    """Return the type in a scalar. After reporting an error it is the evidently intended type, or None."""
    before = bag.error_count
    placed = place_text(bag.source, scalar)
    parsed = None if " | " in scalar.text else _parse_placed(placed, bag)
    if parsed is not None:
        return parsed
    from vesper.language.syntax.habits.type_rescue import rescue_type  # for a faulty file only

    meant = rescue_type(scalar, bag, before)
    if meant is None and bag.error_count == before:
        help_ = "a value has one type: write one of them, or `json` for a value of any type"
        bag.error(Code.BAD_CHARACTER, scalar.span, help=help_, what="`|`")
    return None if meant is None else _parse_placed(meant, bag)


def _parse_placed(placed: PlacedText, bag: DiagnosticBag) -> ast.TypeText | None:
    tokens = tokenize(placed, bag)
    if tokens is None:
        return None
    first = tokens[0]
    if (
        len(tokens) == 2 and first.kind is NAME and first.text not in ARITY and first.text != "enum"
    ):  # most are one word
        return ast.TypeName(ast.Word(first.text, first.span), first.span)
    parser = TypeParser(tokens, bag)
    return parser.parse_all(parser.type)


class TypeParser(TokenReader):
    """Recursive-descent parser of type texts."""

    def type(self) -> ast.TypeText:
        return self.parse_nested(self._type)

    def _type(self) -> ast.TypeText:
        name = self.name("a type")
        if name.text == "enum":
            return self._enum(name)
        if name.text in ARITY:
            return self._parse_applied(name)
        return ast.TypeName(name, name.span)

    def _enum(self, head: ast.Word) -> ast.TypeText:
        self.expect("[")
        if self.at(".") or self.at(".."):
            help_ = "write its members: `enum[paid, declined]`"
            self.fail_at(self.next.span, "a member of the enum", self.next.describe(), help_)
        members = [self._member()]
        while self.at(","):
            self.take()
            members.append(self._member())
        return ast.TypeEnum(tuple(members), head.span.to(self.expect("]").span))

    def _member(self) -> ast.Word:
        if self.next.kind is WORD:  # `null` is a kind of json and a reserved word
            help_ = f"write a member that is a reserved word in quotes: '{self.next.text}'"
            self.fail_at(self.next.span, "a member of the enum", self.next.describe(), help_)
        if self.next.kind not in (NAME, STRING):
            self.fail("a member of the enum")
        token = self.take()
        return ast.Word(token.text, token.span)

    def _parse_applied(self, head: ast.Word) -> ast.TypeText:
        self.expect("<")
        arguments = [self.type()]
        while len(arguments) < ARITY[head.text]:
            self.expect(",")
            arguments.append(self.type())
        return ast.TypeApplied(head, tuple(arguments), head.span.to(self.expect(">").span))
