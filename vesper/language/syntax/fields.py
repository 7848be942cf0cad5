"""Fields of a mapping, read by its shape. Unknown, missing and not yet supported fields are reported here."""

from __future__ import annotations

import re

from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.diagnostics.suggest import single_suggestion
from vesper.language.syntax.habits.lookup import help_for_field, help_for_missing, known_field, note_on_field
from vesper.language.syntax.shape import Shape
from vesper.language.syntax.yaml_tree import UNREAD, Mapping, Scalar, Sequence, Tree, describe

QUOTE_HELP = "if this is meant as text, put it in quotes: YAML reads `: `, `{` and `[` as structure"
_JOINED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*):([^ \t\r\n:/][^ \t\r\n]*)")
"""A key and a value without the space between them."""


class Fields:
    """The entries of one mapping, checked against its shape."""

    def __init__(self, mapping: Mapping, shape: Shape, bag: DiagnosticBag) -> None:
        self._bag = bag
        self._shape = shape
        self._entries: dict[str, Tree] = {}
        self.span = mapping.entries[0][0].span if mapping.entries else mapping.span
        entries, required, optional = self._entries, shape.required, shape.optional
        for key, value in mapping.entries:
            if key.text in required or key.text in optional:
                entries[key.text] = value
            elif key.style != UNREAD:
                self._refuse(key, value)
        for name in required:
            if name not in entries:
                help_ = help_for_missing(shape.where, name)
                bag.error(Code.MISSING_KEY, self.span, where=shape.where, key=name, help=help_)

    def _refuse(self, key: Scalar, value: Tree) -> None:
        """Report an unknown field. Its value is used for the field that is evidently intended."""
        shape = self._shape
        if key.text in shape.later:
            self._bag.error(Code.NOT_IN_THIS_VERSION, key.span, what=f"`{key.text}` in {shape.where}")
            return
        allowed = (*shape.required, *shape.optional)
        meant = known_field(shape.where, key.text, allowed)
        first, _, rest = key.text.partition(" ")
        if first in allowed and rest and isinstance(value, Scalar) and not value.text:  # `{type decimal, value: 1}`
            colon = f"`:` is missing: write `{first}: {rest}`"
            self._bag.error(Code.UNKNOWN_KEY, key.span, where=shape.where, key=key.text, help=colon)
            self._entries.setdefault(first, Scalar("", UNREAD, value.span))
            return
        note = note_on_field(shape.where, key.text, value) if meant is None and "operation" in allowed else None
        if note is not None:
            self._bag.error(Code.UNKNOWN_KEY, key.span, where=shape.where, key=key.text, help=note.help)
            for name in note.replaces:
                self._entries.setdefault(name, Scalar("", UNREAD, value.span))
            return
        help_ = f"write `{meant}`" if meant else help_for_field(shape.where, key.text, (*allowed, *shape.later))
        self._bag.error(Code.UNKNOWN_KEY, key.span, where=shape.where, key=key.text, help=help_)
        meant = meant or single_suggestion(help_)
        if meant is not None:
            self._entries.setdefault(meant, value)

    def part(self, keys: tuple[str, ...]) -> Mapping:
        """Return the entries with these keys as a separate mapping."""
        entries = tuple((Scalar(key, "", self.span), self._entries[key]) for key in keys if key in self._entries)
        return Mapping(entries, self.span)

    def names(self) -> tuple[str, ...]:
        return tuple(self._entries)

    def get(self, name: str) -> Tree | None:
        return self._entries.get(name)

    def scalar(self, name: str) -> Scalar | None:
        """Return a field as a scalar. None if it is absent, or after reporting another kind."""
        tree = self._entries.get(name)
        return None if tree is None else expect_scalar(tree, name, self._bag)

    def sequence(self, name: str) -> Sequence | None:
        """Return a field as a list. None if it is absent, or after reporting another kind."""
        tree = self._entries.get(name)
        return None if tree is None else expect_sequence(tree, name, self._bag)

    def mapping(self, name: str) -> Mapping | None:
        """Return a field as a mapping. None if it is absent, or after reporting another kind."""
        tree = self._entries.get(name)
        return None if tree is None else expect_mapping(tree, name, self._bag)


def expect_scalar(tree: Tree, key: str, bag: DiagnosticBag) -> Scalar | None:
    """Return the tree as a scalar with text, or None after reporting another kind."""
    if isinstance(tree, Scalar) and tree.style != UNREAD and (tree.text != "" or tree.style != ""):
        return tree
    help_ = None
    if isinstance(tree, Mapping | Sequence):
        help_ = QUOTE_HELP
    report_wrong_kind(tree, key, "text", bag, help_)
    return None


def expect_sequence(tree: Tree, key: str, bag: DiagnosticBag) -> Sequence | None:
    """Return the tree as a list, or None after reporting another kind."""
    if isinstance(tree, Sequence):
        return tree
    report_wrong_kind(tree, key, "a list", bag)
    return None


def expect_mapping(tree: Tree, key: str, bag: DiagnosticBag) -> Mapping | None:
    """Return the tree as a mapping, or None after reporting another kind."""
    if isinstance(tree, Mapping):
        return tree
    joined = _JOINED.match(tree.text) if isinstance(tree, Scalar) and tree.style == "" else None
    if joined is not None:
        span, help_ = bag.source.character(tree.span.start + joined.end(1)), f"write `{joined[1]}: {joined[2]}`"
        label = "a space is missing after this colon"
        bag.error(Code.WRONG_KIND, span, label, key=key, expected="a mapping", found="text", help=help_)
    else:
        report_wrong_kind(tree, key, "a mapping", bag)
    return None


def report_wrong_kind(tree: Tree, key: str, expected: str, bag: DiagnosticBag, help_: str | None = None) -> None:
    """Report a tree of another kind than expected."""
    if isinstance(tree, Scalar) and tree.style == UNREAD:
        return  # its own error is reported
    span = tree.span if tree.span.end > tree.span.start else bag.source.character(tree.span.start)
    bag.error(Code.WRONG_KIND, span, key=key, expected=expected, found=describe(tree), help=help_)
