"""Types of columns, guessed from their cells."""

from __future__ import annotations

import re
from collections.abc import Sequence

from vesper.importers.sheets.model import SheetFormatError

_CANDIDATES = {
    "boolean": re.compile(r"true|false"),
    "integer": re.compile(r"-?(0|[1-9][0-9]{0,17})"),
    "decimal": re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?"),
    "date": re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}"),
    "timestamp": re.compile(
        r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?(Z|[+-][0-9]{2}:[0-9]{2})"
    ),
}
_OPERAND = re.compile(r"not\(|[\[\](),]|\.\.|<=|>=|==|!=|<|>")


def guess_cell_type(cells: Sequence[str]) -> str:
    """Return the narrowest type that every operand of the cells is a literal of; strings if none is."""
    operands: list[str] = []
    is_optional = False
    for cell in cells:
        if cell.startswith("{"):
            return "string"
        for operand in _OPERAND.split(cell):
            text = operand.strip()
            if text == "null":
                is_optional = True
            elif text:
                operands.append(text)
    type_ = _narrowest(operands)
    return f"optional<{type_}>" if is_optional else type_


def guess_result_type(name: str, texts: Sequence[str]) -> str:
    """Return the narrowest type of the literals; optional where a result is missing. Raises `SheetFormatError`."""
    literals = [text for text in texts if text and not text.startswith("=")]
    if not literals:
        raise SheetFormatError(0, f"the type of `{name}` does not follow from literals; state it")
    type_ = _narrowest(literals)
    return f"optional<{type_}>" if "" in texts else type_


def _narrowest(texts: Sequence[str]) -> str:
    if texts:
        for name, pattern in _CANDIDATES.items():
            if all(pattern.fullmatch(text) for text in texts):
                return name
    return "string"
