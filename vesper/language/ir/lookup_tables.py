"""Tables of IR documents: their canonical text, their hash, and their rows for kernels.

A table is stored beside the semantics of its node under its hash. So documents are quick to compare, and the semantic
hash covers every row.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from vesper.kernels.lookup import LookupTable
from vesper.language.ir.type_json import type_from_json, type_to_json
from vesper.values.types import Record

MAX_TABLES = 64 * 1024 * 1024
"""Maximum size in bytes of the tables of a document, beside its other parts."""

# One encoder, since `json.dumps` would create one per call.
canonical_text = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False).encode


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its hash and its canonical text."""

    hash: str
    text: str


def table_of(keys: Record, results: Record, rows: Iterable[str]) -> Table:
    """Return the table of rows in canonical text.

    A row has cells and results; a cell is null, a test or a list of tests.
    """
    types = f'"keys":{canonical_text(type_to_json(keys))},"results":{canonical_text(type_to_json(results))}'
    text = f'{{{types},"rows":[{",".join(rows)}]}}'
    return Table(hashlib.sha256(text.encode()).hexdigest(), text)


def tables_to_text(tables: Iterable[Table]) -> str:
    """Return the canonical text of the tables of a document."""
    return "{" + ",".join(f'"{each.hash}":{each.text}' for each in sorted(tables, key=lambda each: each.hash)) + "}"


def tables_from_json(forms: dict[str, Any]) -> tuple[Table, ...]:
    """Return the tables of a document."""
    return tuple(Table(hash_, canonical_text(form)) for hash_, form in sorted(forms.items()))


def read_table(ir: bytes, hash_: str) -> LookupTable:
    """Return a table of a document for the kernels."""
    form = json.loads(ir)["tables"][hash_]
    keys, results = type_from_json(form["keys"]), type_from_json(form["results"])
    assert isinstance(keys, Record)
    assert isinstance(results, Record)
    return LookupTable(keys, results, form["rows"])
