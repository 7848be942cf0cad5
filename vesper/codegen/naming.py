"""Names of the node as Python identifiers: readable, and different from those that generated code uses itself."""

from __future__ import annotations

import keyword
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from functools import cache

from vesper.values.generated.operations import IMPLEMENTED
from vesper.values.model import decimal_text

_MAX_DECIMAL_NAME = 24
_OF_THE_MODULE = ("decimal", "constant", "default", "type", "function")
# Names that generated code uses besides those of the node; a step named `len` becomes `len_`.
RESERVED = frozenset({
    "Decimal", "Final", "Literal", "TypedDict", "Success", "ContractBroken", "Mark",
    "exact_decimals", "unsigned_zero", "checked", "checked_sum", "smallest", "largest", "map_of", "map_of_members",
    "members_in_order", "entries_of", "sorted_by", "distinct_by", "least_by", "greatest_by", "grouped_by", "counted_by",
    "taken_while", "dropped_while", "fold", "fold_entries", "mark",
    "Meter", "meter", "all_of", "before_each", "spend", "spending", "loop_numbers",
    "SKIPPED", "LoopMemory", "charge_groups", "counted_fold", "each_entry", "each_value", "fitting_items", "keep_item",
    "kept_values", "key_of_each", "dropped_rounds", "keyed_rounds", "taken_rounds", "recount_memory", "restore_memory",
    "len", "max", "min", "next", "sum", "all", "any", "sorted", "frozenset", "bool", "int", "str",
    "list", "dict", "float", "bytes", "date", "datetime", "time", "timedelta", "UTC", "Period", "Json", "json_literal",
    "FAILURES", "Asking", "Request", "DeclaredError", "Raised", "call_node", "called", "code_of",
    "counted", "exact_steps", "one_of", "http_class", "keep", "path", "now", "failure",
    "check_postconditions", "check_invariants", "charge_result", "deeper", "recurse",
    "Any", "INPUTS", "Inputs", "MAX_ENTRIES", "MAX_INTEGER", "MAX_TEXT", "MIN_INTEGER",
    "NOT_PLAIN", "NotPlain", "RUN", "SOURCE", "Source",
})  # fmt: skip


# Not `keyword.issoftkeyword`: 3.12 has `type` and 3.11 does not, and generated text is the same on every Python.
_SOFT_KEYWORDS = frozenset({"_", "case", "match", "type"})


def kernel_name(op: str) -> str:
    """Return the name of a kernel in generated code: `text_length` for `text.length`."""
    return op.replace(".", "_")


@cache
def kernel_names() -> frozenset[str]:
    return frozenset(map(kernel_name, IMPLEMENTED))


def _is_keyword(identifier: str) -> bool:
    return keyword.iskeyword(identifier) or identifier in _SOFT_KEYWORDS


class Naming:
    """Assigns a unique identifier to each name."""

    def __init__(self) -> None:
        self._taken: set[str] = set(RESERVED) | kernel_names()
        self._given: dict[tuple[str, str], str] = {}
        self._held: set[tuple[str, str]] = set()
        self._kept: set[str] = set()
        self._assigned: dict[str, str] = {}
        """The text of the type of each identifier that `:=` binds."""
        self._avoided: set[str] = set()

    def name(self, kind: str, name: str) -> str:
        """Return the identifier of an input, step, output or constant: the same one on every call."""
        if (kind, name) not in self._given:
            wanted = name.partition("#")[0]
            if kind in ("constant", "default"):
                wanted = wanted.upper() if kind == "constant" else f"DEFAULT_{wanted.upper()}"
            self._given[kind, name] = self._choose(wanted)
        return self._given[kind, name]

    def begin_statement(self) -> None:
        """Release the names that expressions of the last statement bound."""
        for key in [key for key in self._given if key[0] == "local" and key not in self._held]:
            identifier = self._given.pop(key)
            if identifier not in self._kept:
                self._taken.discard(identifier)

    def keep_local(self, number: int, name: str) -> str:
        """Return the identifier of a name that a statement binds. It stays reserved to the end of the function."""
        identifier = self.name_local(number, name)
        self._kept.add(identifier)
        return identifier

    def assign_local(self, number: int, name: str, type_: str) -> str:
        """Return the identifier of a name that `:=` binds.

        Python keeps it to the end of the function. Names of one type share one, unless they are in the same statement.
        """
        key = ("local", f"{name}#{number}")
        if key in self._given:
            return self._given[key]
        in_use = set(self._given.values())
        identifier = name
        while True:
            if identifier not in self._taken and identifier not in self._avoided and not _is_keyword(identifier):
                break
            if self._assigned.get(identifier) == type_ and identifier not in in_use:
                break
            identifier += "_"
        self._taken.add(identifier)
        self._kept.add(identifier)
        self._assigned[identifier] = type_
        self._given[key] = identifier
        return identifier

    def avoid(self, identifiers: Iterable[str]) -> None:
        """Exclude these identifiers, which the function assigns later, from those that `:=` binds."""
        self._avoided |= set(identifiers)

    def name_local_as(self, number: int, name: str, wanted: str) -> str:
        """Give a local of this statement an identifier other than its name."""
        identifier = self._choose(wanted)
        self._given["local", f"{name}#{number}"] = identifier
        return identifier

    def hold(self, number: int, name: str) -> str:
        """Return the identifier of a name that a loop binds, and keep it until `release`."""
        self._held.add(("local", f"{name}#{number}"))
        return self.name_local(number, name)

    def release(self, number: int, name: str) -> None:
        """Release a name at the end of its loop."""
        self._held.discard(("local", f"{name}#{number}"))

    def create_name(self, wanted: str) -> str:
        """Create an identifier for a value without a name in the node."""
        return self._choose(wanted)

    def name_local(self, number: int, name: str) -> str:
        """Return the identifier of a name that an expression binds, unique in its statement."""
        return self.name("local", f"{name}#{number}")

    def name_type(self, wanted: str) -> str:
        """Choose a unique name for a class: `Plan`, `Plan2`."""
        identifier, number = wanted, 1
        while identifier in self._taken or keyword.iskeyword(identifier):
            number += 1
            identifier = f"{wanted}{number}"
        self._taken.add(identifier)
        self._given["type", identifier] = identifier
        return identifier

    def reserve(self, identifier: str) -> None:
        """Reserve an identifier for generated code."""
        self._taken.add(identifier)

    @contextmanager
    def enter_function(self) -> Iterator[None]:
        """Enter another function: its names are independent, but those of the module are shared."""
        given, taken, assigned = self._given, self._taken, self._assigned
        shared = {key: identifier for key, identifier in given.items() if key[0] in _OF_THE_MODULE}
        self._given, self._assigned = dict(shared), {}
        self._taken = set(RESERVED) | kernel_names() | set(shared.values())
        try:
            yield
        finally:
            added = {key: each for key, each in self._given.items() if key[0] in _OF_THE_MODULE and key not in given}
            self._given, self._taken = given | added, taken | set(added.values())
            self._assigned = assigned

    def drop_name(self, kind: str, name: str) -> None:
        """Drop the identifier of a name, so that its next use gets a new one."""
        self._given.pop((kind, name), None)

    def alias(self, kind: str, name: str, identifier: str) -> None:
        """Bind a name to an existing identifier."""
        self._given[kind, name] = identifier

    def name_decimal(self, value: Decimal) -> str:
        """Return the name of a decimal literal: `D_0_029` for 0.029."""
        text = decimal_text(value)
        if ("decimal", text) not in self._given:
            word = "D_" + text.replace("-", "MINUS_").replace(".", "_")
            self._given["decimal", text] = self._choose(word[:_MAX_DECIMAL_NAME])
        return self._given["decimal", text]

    def _choose(self, wanted: str) -> str:
        identifier = wanted
        while identifier in self._taken or _is_keyword(identifier):
            identifier += "_"
        self._taken.add(identifier)
        return identifier
