"""Inputs, outputs and error fields of a node as records, by inside and by outside names."""

from __future__ import annotations

from vesper.language.ir import nodes as ir
from vesper.values.outside_names import spelled_record
from vesper.values.types import Record

_MAX_KNOWN = 1_024
_known: dict[int, tuple[object, Record, Record]] = {}
"""By the address of the declarations, which an entry keeps alive: every call with JSON text needs them."""


def spelled_declarations(declared: tuple[ir.Input, ...] | tuple[ir.Output, ...]) -> tuple[Record, Record]:
    """Return the declarations as a record by inside names, and as one by outside names.

    Both are the same object if no declaration has an outside name.
    """
    found = _known.get(id(declared))
    if found is None:
        whole = ir.record_of(declared)
        if len(_known) >= _MAX_KNOWN:
            _known.clear()
        found = _known[id(declared)] = declared, whole, spelled_record(whole)
    return found[1], found[2]
