"""Names of the node as Python identifiers: readable, and never one that generated code needs for itself."""

from __future__ import annotations

import keyword
from decimal import Decimal

from vesper.spec.operations import OPERATIONS
from vesper.spec.values import decimal_text

_MAX_DECIMAL_NAME = 24
# What generated code mentions besides the node's own names; a step called `len` becomes `len_`.
RESERVED = frozenset({
    "Decimal", "Final", "Literal", "TypedDict", "Success", "ContractBroken", "Mark",
    "exact_decimals", "unsigned_zero", "checked", "mark", "len", "frozenset", "bool", "int", "str",
})  # fmt: skip


def kernel_name(op: str) -> str:
    """What generated code calls a kernel: `text_length` for `text.length`."""
    return op.replace(".", "_")


class Naming:
    """Hands out each identifier once."""

    def __init__(self) -> None:
        self._taken: set[str] = set(RESERVED) | {kernel_name(op) for op in OPERATIONS}
        self._given: dict[tuple[str, str], str] = {}

    def name(self, kind: str, name: str) -> str:
        """The identifier of an input, step, output or constant; the same one each time."""
        if (kind, name) not in self._given:
            self._given[kind, name] = self._fresh(name.upper() if kind == "constant" else name)
        return self._given[kind, name]

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
        while identifier in self._taken or keyword.iskeyword(identifier) or keyword.issoftkeyword(identifier):
            identifier += "_"
        self._taken.add(identifier)
        return identifier
