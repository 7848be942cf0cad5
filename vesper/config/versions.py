"""The tables `[versions.NAME]` of `vesper.toml`: the lead version of a name and its candidate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

from vesper.config.migration import read_share
from vesper.effects.settings import Table
from vesper.values.node_id import split_node_id

_MIN_SHARE = 0.0001


@dataclass(frozen=True, slots=True)
class VersionSettings:
    """The lead and the candidate of one name."""

    lead: str
    """Id of the version whose outcome callers get."""
    candidate: str | None = None
    """Id of the version that follows the lead and performs nothing."""
    share: float = 1.0
    """Share of runs that the candidate follows, before admission."""
    until: date | None = None
    """Last day on which it follows, in UTC."""


def read_versions(top: Table) -> Mapping[str, VersionSettings]:
    """Read the tables. Raises `ConfigError`."""
    return {name: _read_name(name, each) for name, each in top.table("versions").tables().items()}


def _read_name(name: str, table: Table) -> VersionSettings:
    found = VersionSettings(
        _version_of(name, table, "lead"),
        _version_of(name, table, "candidate") if "candidate" in table else None,
        read_share(table, "share", 1.0, _MIN_SHARE, 1.0),
        table.day("until") if "until" in table else None,
    )
    table.done()
    if found.candidate == found.lead:
        raise table.error("candidate", f"`{found.lead}` leads already: name another version, or omit `candidate`")
    if found.candidate is None:
        for key in ("share", "until"):
            if key in table:
                raise table.error(key, "it is about a candidate, and there is none: name one, or omit it")
    return found


def _version_of(name: str, table: Table, key: str) -> str:
    node_id = table.text(key)
    split = split_node_id(node_id)
    if split is None or split[0] != name:
        raise table.error(key, f"a version of `{name}` is expected, such as `{name}_v1`, not `{node_id}`")
    return node_id
