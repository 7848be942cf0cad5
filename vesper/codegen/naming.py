"""Names of the node as Python identifiers: readable, and never one that generated code needs for itself."""

from __future__ import annotations

import keyword
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from functools import cache

from vesper.values.generated.operations import IMPLEMENTED
from vesper.values.model import decimal_text

_MAX_DECIMAL_NAME = 24
_OF_THE_MODULE = ("decimal", "constant", "type")
# What generated code mentions besides the node's own names; a step called `len` becomes `len_`.
RESERVED = frozenset({
    "Decimal", "Final", "Literal", "TypedDict", "Success", "ContractBroken", "Mark",
    "exact_decimals", "unsigned_zero", "checked", "checked_sum", "smallest", "largest", "map_of", "map_of_members",
    "members_in_order", "entries_of", "sorted_by", "distinct_by", "least_by", "greatest_by", "grouped_by", "counted_by",
    "taken_while", "dropped_while", "fold", "fold_entries", "mark",
    "Meter", "meter", "all_of", "before_each", "spend", "spending",
    "len", "sum", "all", "any", "sorted", "frozenset", "bool", "int", "str",
    "list", "dict", "float", "bytes", "date", "datetime", "timedelta", "UTC", "Json", "json_literal",
    "FAILURES", "Asking", "Request", "DeclaredError", "Raised", "call_node", "called", "code_of",
    "counted", "exact_steps", "one_of", "http_class", "keep", "path", "now", "failure",
    "check_postconditions", "check_invariants",
    "Any", "INPUTS", "Inputs", "MAX_ENTRIES", "MAX_INTEGER", "MAX_TEXT", "MIN_INTEGER",
    "NOT_PLAIN", "NotPlain", "RUN", "SOURCE", "Source",
})  # fmt: skip


# Not `keyword.issoftkeyword`: 3.12 has `type` and 3.11 does not, and generated text is the same on every Python.
_SOFT_KEYWORDS = frozenset({"_", "case", "match", "type"})


def kernel_name(op: str) -> str:
    """What generated code calls a kernel: `text_length` for `text.length`."""
    return op.replace(".", "_")


@cache
def kernel_names() -> frozenset[str]:
    return frozenset(map(kernel_name, IMPLEMENTED))


class Naming:
    """Hands out each identifier once."""

    def __init__(self) -> None:
        self._taken: set[str] = set(RESERVED) | kernel_names()
        self._given: dict[tuple[str, str], str] = {}
        self._held: set[tuple[str, str]] = set()
        self._kept: set[str] = set()

    def name(self, kind: str, name: str) -> str:
        """The identifier of an input, step, output or constant; the same one each time."""
        if (kind, name) not in self._given:
            self._given[kind, name] = self._fresh(name.upper() if kind == "constant" else name.partition("#")[0])
        return self._given[kind, name]

    def begin_statement(self) -> None:
        """The names that the last statement's expressions bound are free again: Python forgets them as well."""
        for key in [key for key in self._given if key[0] == "local" and key not in self._held]:
            identifier = self._given.pop(key)
            if identifier not in self._kept:
                self._taken.discard(identifier)

    def kept_local(self, number: int, name: str) -> str:
        """The same for a name that a statement of its own binds: Python remembers it, and its type, to the end."""
        identifier = self.local(number, name)
        self._kept.add(identifier)
        return identifier

    def hold(self, number: int, name: str) -> str:
        """The identifier of a name that a loop binds: it stays as long as the loop does."""
        self._held.add(("local", f"{name}#{number}"))
        return self.local(number, name)

    def let_go(self, number: int, name: str) -> None:
        """The loop is over; the name is free for others."""
        self._held.discard(("local", f"{name}#{number}"))

    def fresh(self, wanted: str) -> str:
        """An identifier for something that has no name in the node."""
        return self._fresh(wanted)

    def local(self, number: int, name: str) -> str:
        """The identifier of a name that an expression binds; within one statement no two share one."""
        return self.name("local", f"{name}#{number}")

    def type(self, wanted: str) -> str:
        """A name for a class that no other has: `Plan`, `Plan2`."""
        identifier, number = wanted, 1
        while identifier in self._taken or keyword.iskeyword(identifier):
            number += 1
            identifier = f"{wanted}{number}"
        self._taken.add(identifier)
        self._given["type", identifier] = identifier
        return identifier

    def reserve(self, identifier: str) -> None:
        """Keep an identifier for what generated code calls so."""
        self._taken.add(identifier)

    @contextmanager
    def apart(self) -> Iterator[None]:
        """A function of its own: its names are free of those around it; what belongs to the module is shared."""
        given, taken = self._given, self._taken
        shared = {key: identifier for key, identifier in given.items() if key[0] in _OF_THE_MODULE}
        self._given = dict(shared)
        self._taken = set(RESERVED) | kernel_names() | set(shared.values())
        try:
            yield
        finally:
            added = {key: each for key, each in self._given.items() if key[0] in _OF_THE_MODULE and key not in given}
            self._given, self._taken = given | added, taken | set(added.values())

    def forget(self, kind: str, name: str) -> None:
        """Let the next use of a name have an identifier of its own."""
        self._given.pop((kind, name), None)

    def alias(self, kind: str, name: str, identifier: str) -> None:
        """Let a name stand for an identifier that is there already."""
        self._given[kind, name] = identifier

    def decimal(self, value: Decimal) -> str:
        """The name of a decimal literal: `D_0_029` for 0.029."""
        text = decimal_text(value)
        if ("decimal", text) not in self._given:
            word = "D_" + text.replace("-", "MINUS_").replace(".", "_")
            self._given["decimal", text] = self._fresh(word[:_MAX_DECIMAL_NAME])
        return self._given["decimal", text]

    def _fresh(self, wanted: str) -> str:
        identifier = wanted
        while identifier in self._taken or keyword.iskeyword(identifier) or identifier in _SOFT_KEYWORDS:
            identifier += "_"
        self._taken.add(identifier)
        return identifier
