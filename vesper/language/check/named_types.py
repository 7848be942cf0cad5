"""Types as a node writes them: built-in types and types that the node declares."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from vesper.language.check.outside_names import check_outside, enum_outside
from vesper.language.check.recursive_types import contains_directly, find_recursive
from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import DiagnosticBag, Label
from vesper.language.diagnostics.source import Span
from vesper.language.syntax import ast
from vesper.language.syntax.habits.lookup import help_for_type
from vesper.values.node_id import MAX_NAME
from vesper.values.types import (
    KEY_TYPES,
    PRIMITIVES,
    ArrayOf,
    Enum,
    MapOf,
    OptionalOf,
    Outside,
    Record,
    Recursive,
    SetOf,
    Type,
    is_key,
)

if TYPE_CHECKING:
    from vesper.language.check.libraries import Library

MAX_TYPE_DEPTH = 32


@dataclass(frozen=True, slots=True)
class _KnownType:
    """A declared type. A type of a library also has the library, and the place of its `use`."""

    declaration: ast.RecordType | ast.NamedType
    type: Type | None
    span: Span
    library: Library | None = None

    def describe(self) -> str:
        return "another type" if self.library is None else f"a type of `{self.library.library_id}`"


class TypeResolver:
    """Resolves the type texts of one node. A declared type may use only types declared above it."""

    def __init__(self, declared: tuple[ast.RecordType | ast.NamedType, ...], bag: DiagnosticBag) -> None:
        self._bag = bag
        self._declared = declared
        self._known: dict[str, _KnownType] = {}
        self.has_recursive = False
        """Whether a declared type contains itself."""

    def resolve_all(self) -> None:
        """Resolve every declared type in order, and report errors in it."""
        recursive = find_recursive(self._declared)
        for declared in self._declared:
            name = declared.name
            if name.text in recursive and name.text not in self._known:
                self._known[name.text] = _KnownType(declared, Recursive(name.text), name.span)
                self.has_recursive = True
        for declared in self._declared:
            self._declare(declared)

    def declared_names(self) -> tuple[str, ...]:
        """Return the names of the types that this document declares."""
        return tuple(each.name.text for each in self._declared)

    def use(self, library: Library, name: str, span: Span) -> str | None:
        """Declare a type of a library; `span` is the place of its use.

        Returns a description of an existing type of that name.
        """
        other = self._known.get(name)
        if other is not None:
            return other.describe()
        known = library.types._known[name]
        self.has_recursive = self.has_recursive or library.types.has_recursive
        self._known[name] = _KnownType(known.declaration, known.type, span, library)
        return None

    def library_of(self, text: ast.TypeText) -> Library | None:
        """Return the library that declares the type of a text, or None."""
        known = self._known.get(text.name.text) if isinstance(text, ast.TypeName) else None
        return None if known is None else known.library

    def declaration(self, text: ast.TypeText) -> ast.RecordType | ast.NamedType | None:
        """Return the declaration that a type text names, or None."""
        if isinstance(text, ast.TypeName) and text.name.text in self._known:
            return self._known[text.name.text].declaration
        return None

    def has_constraints(self, text: ast.TypeText) -> bool:
        """Return whether the type text, or a type inside it, has constraints."""
        if isinstance(text, ast.TypeApplied):
            return any(self.has_constraints(argument) for argument in text.arguments)
        library = self.library_of(text)
        if library is not None:
            return library.types.has_constraints(text)
        declared = self.declaration(text)
        if declared is None or isinstance(self._known[declared.name.text].type, Recursive):
            return False
        inner = (
            (declared.type,) if isinstance(declared, ast.NamedType) else tuple(each.type for each in declared.fields)
        )
        return bool(declared.constraints) or any(self.has_constraints(each) for each in inner)

    def _declare(self, declared: ast.RecordType | ast.NamedType) -> None:
        name = declared.name
        known = self._known.get(name.text)
        if known is not None and known.declaration is not declared:
            also = (Label(known.span, "the first one" if known.library is None else "it is used here"),)
            what, other = "this type", known.describe()
            self._bag.error(Code.NAME_TAKEN, name.span, also=also, what=what, name=name.text, other=other)
            return
        if isinstance(declared, ast.NamedType):
            found = self.resolve(declared.type)
            inner = None if found is None else enum_outside(declared, found, self._bag)
            self._known[name.text] = _KnownType(declared, inner, name.span)
            return
        fields = [(field, self.resolve(field.type)) for field in declared.fields]
        self._report_repeats(declared.fields)
        outside = check_outside("field", fields, self._bag)
        if declared.rest is not None:
            outside = replace(outside or Outside(), rest=declared.rest.text)
        sound = tuple((field.name.text, type_) for field, type_ in fields if type_ is not None)
        if known is not None and isinstance(known.type, Recursive):
            self._complete(known.type, declared, sound, outside)
            return
        whole = Record(sound, name.text, outside) if sound and len(sound) == len(fields) else None
        self._known[name.text] = _KnownType(declared, whole, name.span)

    def _complete(
        self,
        type_: Recursive,
        declared: ast.RecordType,
        fields: tuple[tuple[str, Type], ...],
        outside: Outside | None,
    ) -> None:
        """Set the fields of a recursive type, and report parts that it cannot have."""
        type_.complete(fields, outside)
        name = declared.name
        problem = ""
        if any(contains_directly(each, type_) for _, each in fields):
            problem = "every value would contain another one: put an optional, an array or a map in between"
        elif declared.constraints or any(self.has_constraints(each.type) for each in declared.fields):
            problem = "a type that contains itself has no constraints: check the value in a function with `max_depth`"
        elif outside is not None and (outside.flags or outside.rest is not None):
            problem = "a type that contains itself has no `absent` and is not open"
        if problem:
            self._bag.error(Code.TYPE_MISMATCH, name.span, expected="another type", found=name.text, help=problem)

    def _report_repeats(self, fields: tuple[ast.Output, ...]) -> None:
        """Report a flag or `rest` with the name of another field.

        Other names are keys of one mapping, so they cannot repeat.
        """
        seen: dict[str, ast.Word] = {}
        for field in fields:
            first = seen.setdefault(field.name.text, field.name)
            if first is not field.name:
                also = (Label(first.span, "the first one"),)
                what, other = "this field", "another field"
                self._bag.error(
                    Code.NAME_TAKEN, field.name.span, also=also, what=what, name=field.name.text, other=other
                )

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
            case ast.KnownType(type=type_):
                return type_
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
            return self._known[name.text].type
        names = (*PRIMITIVES, "enum", "set", "array", "map", "optional", *self._known, *self.declared_names())
        later = any(each.name.text == name.text for each in self._declared)
        help_ = "a type sees only those declared above it" if later else help_for_type(name.text, names)
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
