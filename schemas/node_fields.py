"""Loader of `fields.toml`: the fields of every mapping in a node, and their kinds."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PATH = Path(__file__).parent / "fields.toml"
SLOTS = (
    "id", "name", "configured_name", "text", "type", "expression", "clause", "literal", "word", "constraint", "step",
    "observation", "template", "json_template",
)  # fmt: skip


class FieldError(Exception):
    """An invalid declaration of a field."""


@dataclass(frozen=True, slots=True)
class Field:
    """Declaration of one field."""

    name: str
    kind: str
    doc: str
    required: bool
    later: bool
    values: tuple[str, ...]
    """Allowed values of a word."""


@dataclass(frozen=True, slots=True)
class NodeMapping:
    """Declaration of one kind of mapping."""

    name: str
    where: str
    step: str | None
    """Operation of a step."""
    fields: tuple[Field, ...]
    implied_by: tuple[str, ...] = ()
    """Keys that make a step without `operation` this one."""
    short: str | None = None
    """Field that the value of a key with the name of the operation stands for."""

    def names(self, *, required: bool | None = None, later: bool = False) -> tuple[str, ...]:
        chosen = (each for each in self.fields if each.later == later)
        return tuple(each.name for each in chosen if required is None or each.required == required)


@dataclass(frozen=True, slots=True)
class NodeFields:
    """Every mapping of `fields.toml`."""

    mappings: tuple[NodeMapping, ...]
    """Mappings with their fields. Those of steps include the fields common to all steps or to steps with effects."""

    def mapping(self, name: str) -> NodeMapping:
        return next(each for each in self.mappings if each.name == name)


def load_node_fields() -> NodeFields:
    """Read and check the fields of every mapping."""
    table = tomllib.loads(PATH.read_text(encoding="utf-8"))
    names = set(table["mapping"])
    common = {kind: _fields(kind, entries, names) for kind, entries in table["common"].items()}
    found: dict[str, NodeMapping] = {}
    for name, entry in table["mapping"].items():
        found[name] = _mapping(name, entry, names, common, found)
    return NodeFields(tuple(found.values()))


def _mapping(
    name: str,
    entry: dict[str, Any],
    names: set[str],
    common: dict[str, tuple[Field, ...]],
    above: dict[str, NodeMapping],
) -> NodeMapping:
    if unknown := set(entry) - {"where", "step", "effect", "fields", "implied_by", "short", "extends", "without"}:
        raise FieldError(f"{PATH.name}: {name} has unknown entries {sorted(unknown)}")
    fields = _fields(name, entry["fields"], names)
    shared = (*(common["effect"] if entry.get("effect") else ()), *(common["step"] if "step" in entry else ()))
    if "extends" in entry:
        shared += tuple(each for each in above[entry["extends"]].fields if each.name not in entry.get("without", ()))
    own = {field.name for field in fields}
    fields += tuple(field for field in shared if field.name not in own)
    return NodeMapping(
        name, entry["where"], entry.get("step"), fields, tuple(entry.get("implied_by", ())), entry.get("short")
    )


def _fields(mapping: str, entries: dict[str, Any], names: set[str]) -> tuple[Field, ...]:
    return tuple(_field(mapping, name, found, names) for name, found in entries.items())


def _field(mapping: str, name: str, entry: dict[str, Any], names: set[str]) -> Field:
    where = f"{PATH.name}: {mapping}.{name}"
    if unknown := set(entry) - {"kind", "doc", "required", "later", "values"}:
        raise FieldError(f"{where} has unknown entries {sorted(unknown)}")
    for word in re.findall(r"[a-z_]+", entry["kind"]):
        if word not in SLOTS and word not in ("list", "map") and word not in names:
            raise FieldError(f"{where}: `{word}` is no kind")
    required, later = entry.get("required", False), entry.get("later", False)
    return Field(name, entry["kind"], entry["doc"], required, later, tuple(entry.get("values", ())))
