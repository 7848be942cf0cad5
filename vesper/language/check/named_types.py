"""Types as a node writes them: built-in types and types that the node declares."""

from __future__ import annotations

from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import DiagnosticBag, Label
from vesper.language.diagnostics.suggest import did_you_mean
from vesper.language.syntax import ast
from vesper.values.node_id import MAX_NAME
from vesper.values.types import (
    KEY_TYPES,
    PRIMITIVES,
    ArrayOf,
    Enum,
    MapOf,
    OptionalOf,
    Record,
    SetOf,
    Type,
    is_key,
)

MAX_TYPE_DEPTH = 32


class TypeResolver:
    """Resolves the type texts of one node. A declared type may use only types declared above it."""

    def __init__(self, declared: tuple[ast.RecordType | ast.NamedType, ...], bag: DiagnosticBag) -> None:
        self._bag = bag
        self._declared = declared
        self._known: dict[str, tuple[ast.RecordType | ast.NamedType, Type | None]] = {}

    def resolve_all(self) -> None:
        """Resolve every declared type in order, and report errors in it."""
        for declared in self._declared:
            self._declare(declared)

    def declaration(self, text: ast.TypeText) -> ast.RecordType | ast.NamedType | None:
        """Return the node's own declaration that a type text names, or None."""
        if isinstance(text, ast.TypeName) and text.name.text in self._known:
            return self._known[text.name.text][0]
        return None

    def has_constraints(self, text: ast.TypeText) -> bool:
        """Return whether the type text, or a type inside it, has constraints."""
        if isinstance(text, ast.TypeApplied):
            return any(self.has_constraints(argument) for argument in text.arguments)
        declared = self.declaration(text)
        if declared is None:
            return False
        inner = (
            (declared.type,) if isinstance(declared, ast.NamedType) else tuple(each.type for each in declared.fields)
        )
        return bool(declared.constraints) or any(self.has_constraints(each) for each in inner)

    def _declare(self, declared: ast.RecordType | ast.NamedType) -> None:
        name = declared.name
        if name.text in self._known:
            also = (Label(self._known[name.text][0].name.span, "the first one"),)
            what, other = "this type", "another type"
            self._bag.error(Code.NAME_TAKEN, name.span, also=also, what=what, name=name.text, other=other)
            return
        if isinstance(declared, ast.NamedType):
            self._known[name.text] = (declared, self.resolve(declared.type))
            return
        fields = [(field.name.text, self.resolve(field.type)) for field in declared.fields]
        known = tuple((field, type_) for field, type_ in fields if type_ is not None)
        is_sound = len(known) == len(fields) and bool(fields)
        self._known[name.text] = (declared, Record(known, name.text) if is_sound else None)

    def resolve(self, text: ast.TypeText) -> Type | None:
        """Return the type of a text, or None after reporting an error."""
        type_ = self._resolve(text)
        if type_ is not None and _depth(type_) > MAX_TYPE_DEPTH:
            self._bag.error(Code.TOO_DEEP, text.span, limit=MAX_TYPE_DEPTH, what="types in one another")
            return None
        return type_

    def _resolve(self, text: ast.TypeText) -> Type | None:
        match text:
            case ast.Unread():
                return None
            case ast.TypeEnum(members=words):
                return self._enum(words)
            case ast.TypeName(name=name):
                return self._resolve_name(name)
            case ast.TypeApplied(head=head, arguments=arguments):
                inner = [self._resolve(argument) for argument in arguments]
                known = [type_ for type_ in inner if type_ is not None]
                return self._resolve_applied(text, head.text, known) if len(known) == len(inner) else None

    def _resolve_name(self, name: ast.Word) -> Type | None:
        if name.text in PRIMITIVES:
            return PRIMITIVES[name.text]
        if name.text in self._known:
            return self._known[name.text][1]
        names = (*PRIMITIVES, "enum", "set", "array", "map", "optional", *(each.name.text for each in self._declared))
        later = any(each.name.text == name.text for each in self._declared)
        help_ = "a type sees only those declared above it" if later else did_you_mean(name.text, names)
        self._bag.error(Code.UNKNOWN_TYPE, name.span, name=name.text, help=help_)
        return None

    def _resolve_applied(self, text: ast.TypeApplied, head: str, inner: list[Type]) -> Type | None:
        if head in ("set", "map") and not is_key(inner[0]):
            expected = f"{KEY_TYPES} as the {'members of a set' if head == 'set' else 'keys of a map'}"
            self._bag.error(Code.TYPE_MISMATCH, text.arguments[0].span, expected=expected, found=inner[0])
            return None
        if head == "optional" and isinstance(inner[0], OptionalOf):
            expected = "a type that has no null"
            self._bag.error(Code.TYPE_MISMATCH, text.arguments[0].span, expected=expected, found=inner[0])
            return None
        match head:
            case "array":
                return ArrayOf(inner[0])
            case "set":
                return SetOf(inner[0])
            case "optional":
                return OptionalOf(inner[0])
            case _:
                return MapOf(inner[0], inner[1])

    def _enum(self, words: tuple[ast.Word, ...]) -> Type:
        seen: dict[str, ast.Word] = {}
        for word in words:
            if not 0 < len(word.text) <= MAX_NAME:
                help_ = f"a member has 1 to {MAX_NAME} characters"
                self._bag.error(Code.BAD_NAME, word.span, name=word.text, what="a member of an enum", help=help_)
            first = seen.setdefault(word.text, word)
            if first is not word:
                also = (Label(first.span, "the first one"),)
                what, other = "a member", "another member"
                self._bag.error(Code.NAME_TAKEN, word.span, also=also, what=what, name=word.text, other=other)
        return Enum(tuple(seen))


def _depth(type_: Type) -> int:
    match type_:
        case ArrayOf(inner) | SetOf(inner) | OptionalOf(inner) | MapOf(_, inner):
            return 1 + _depth(inner)
        case Record(fields):
            return 1 + max(_depth(field) for _, field in fields)
        case _:
            return 1
