"""The entries and definitions in a journal.

An execution is a list of entries. Each has the path of its step (`charge[2]`, an attempt of it is `charge[2]#1`):
entries are found by path and kind, never by their number, so that those of a follower and a replay correspond.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

FORMAT = 1
"""The version that new entries are written in. Older ones stay readable for ever (tests/unit/journal/golden)."""


class Kind(StrEnum):
    START = "START"
    """The inputs, the moment `now`, the definition, the engine."""
    INTENT = "INTENT"
    """A request that is about to be performed: durable before it is."""
    RESULT = "RESULT"
    """The value that came of a request."""
    FAILED = "FAILED"
    """The code that came of a request."""
    IN_DOUBT = "IN_DOUBT"
    """The request may have been performed, and may not be repeated."""
    RESOLVED = "RESOLVED"
    """The value or the code of a request that was in doubt, as a person stated it."""
    VALUE = "VALUE"
    """A decision of a policy: an attempt, a delay, a rejection."""
    STATE = "STATE"
    """An entity of a state machine moved."""
    CONTRACT = "CONTRACT"
    """A clause that was broken."""
    DIVERGENCE = "DIVERGENCE"
    """Two engines did not agree."""
    HANDOFF = "HANDOFF"
    """Another process or another engine took over."""
    END = "END"
    """The outcome. Nothing comes after it."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of an execution. `body` is a mapping of names to values of the language and of plain Python (None,
    bool, int, float, str, bytes, Decimal, date, datetime, timedelta, list, dict, frozenset); `typed_json` writes it."""

    kind: Kind
    path: str = ""
    effect: str = ""
    effect_class: str = ""
    key: str | None = None
    digest: str = ""
    """Of the request (`digest_of`): what a follower's request must equal."""
    body: Mapping[str, object] = field(default_factory=dict)
    at_us: int = 0
    """Microseconds since 1970."""


@dataclass(frozen=True, slots=True)
class Stored:
    """An entry with its number, branch and hash in the store."""

    entry: Entry
    seq: int
    branch: str
    hash: str
    """Over the hash before it and the canonical bytes of this one."""
    is_erased: bool = False
    """True where the key to its body was deleted: the body is empty."""


@dataclass(frozen=True, slots=True)
class Definition:
    """The definition to which a run is pinned.

    It suffices to load the node again if its file has changed or is gone.
    """

    semantic_hash: str
    node_id: str
    path: str
    source: str
    ir: bytes
    callees: tuple[Definition, ...] = ()


@dataclass(frozen=True, slots=True)
class AuditEvent:
    """One line of the audit log. The store numbers and chains it."""

    at_us: int
    execution: str
    node_id: str
    level: str
    action: str
    fields: Mapping[str, object]
    caller: Mapping[str, str] = field(default_factory=dict)
    """Further members of the line: `actor`, `tenant`, `user_id` and others."""
