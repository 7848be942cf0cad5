"""Reader of trace bytes from untrusted sources: every part is checked before use.

The hash of a file detects accidental changes only. Names that later appear in tests and terminals must therefore match
Vesper's own formats, and each part has its type.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, NoReturn, TypeVar

from vesper.host.outcomes import recorded_outcome
from vesper.journal.entry import Definition
from vesper.journal.errors import JournalError
from vesper.journal.typed_json import decode, encode
from vesper.trace.model import (
    FORMAT,
    KIND,
    MAX_BYTES,
    ContractResult,
    Decision,
    Exchange,
    Marked,
    MarkKind,
    Origin,
    Trace,
    TraceError,
    Transition,
)
from vesper.values.node_id import split_node_id

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,199}", re.ASCII)
_ENGINE = re.compile(r"[a-z][a-z0-9_]{0,40}", re.ASCII)
_HASH = re.compile(r"[0-9a-f]{64}", re.ASCII)
_MAX_WHOLE = 2**63 // 1000
"""Microseconds until the year 2262: in nanoseconds, a time fits 64 bits, as OpenTelemetry needs it."""
_Found = TypeVar("_Found")


def read_trace(data: bytes, where: str) -> Trace:
    """Read bytes written by `Trace.to_bytes`. Raises `TraceError`."""
    if len(data) > MAX_BYTES:
        raise TraceError(f"{where} has {len(data):,} bytes; the maximum is {MAX_BYTES:,}")
    try:
        found = decode(data.rstrip(b"\n"))
    except JournalError as error:
        raise TraceError(f"{where} is not a trace, or is truncated: {error}") from None
    if not isinstance(found, dict) or found.get("kind") != KIND:
        raise TraceError(f"{where} is not a trace; `vesper traces export` writes one")
    if found.get("format") != FORMAT:
        raise TraceError(
            f"{where} has the format {found.get('format')!r}, and this Vesper reads {FORMAT}: "
            "use the newer Vesper that wrote it"
        )
    body = found.get("trace")
    if hashlib.sha256(encode(body)).hexdigest() != found.get("sha256"):
        raise TraceError(f"{where} was changed: its hash does not match")
    try:
        return _trace(body)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise TraceError(f"{where} is malformed: {type(error).__name__}: {str(error)[:200]}") from None


def _trace(body: Any) -> Trace:
    exchanges = tuple(_exchange(each) for each in body["exchanges"])

    def after(found: object) -> int:
        number = _whole(found)
        if number > len(exchanges):
            raise ValueError(f"something comes after request {number}, and there are {len(exchanges)}")
        return number

    return Trace(
        _named(_ID, body["trace_id"]),
        _definition(body["definition"]),
        _engines(body["engines"]),
        _mapping(body["inputs"]),
        _maybe(body["now"], _moment),
        _whole(body["started_us"]),
        _maybe(body["duration_us"], _whole),
        exchanges,
        tuple(
            Marked(_whole(index), value, _text(step), MarkKind(kind), after(count))
            for index, value, step, kind, count in body["marks"]
        ),
        tuple(
            ContractResult(_text(phase), _whole(index), _text(text), _flag(holds), after(count), _mapping(values))
            for phase, index, text, holds, count, values in body["contracts"]
        ),
        tuple(
            Transition(_text(path), _text(machine), entity, _text(before), _text(to), after(count))
            for path, machine, entity, before, to, count in body["transitions"]
        ),
        _maybe(body["outcome"], lambda found: recorded_outcome(_mapping(found))),
        _maybe(body["divergence"], _text),
        _maybe(body["origin"], _origin),
        _maybe(body["waits_at"], _text),
        _flag(body["is_sensitive"]),
        {_text(name): _text(text) for name, text in _mapping(body.get("caller", {})).items()},
    )


def _engines(found: Any) -> tuple[str, ...]:
    engines = tuple(_named(_ENGINE, each) for each in found)
    return engines or _fail("no engine ran it")


def _origin(found: Any) -> Origin:
    changes = tuple(_text(each) for each in found["changes"])
    return Origin(_named(_ID, found["trace_id"]), _maybe(found["from_step"], _whole), changes)


def _definition(found: Any) -> Definition:
    callees = tuple(_definition(each) for each in found["callees"])
    node_id, ir = _text(found["node_id"]), found["ir"]
    if split_node_id(node_id) is None:
        raise ValueError(f"{node_id[:80]!a} is no id of a node")
    if not isinstance(ir, bytes):
        raise TypeError("the IR of a node is bytes")
    path, source = _text(found["path"]), _text(found["source"])
    return Definition(_named(_HASH, found["semantic_hash"]), node_id, path, source, ir, callees)


def _exchange(found: Any) -> Exchange:
    decisions = tuple(
        Decision(_whole(attempt), _mapping(said), _maybe(at_us, _whole)) for attempt, said, at_us in found["decisions"]
    )
    fixed = _mapping(found["fixed"])
    return Exchange(
        _text(found["path"]),
        _text(found["effect"]),
        _text(found["class"]),
        {name: _text(each) for name, each in fixed.items()},
        _mapping(found["arguments"]),
        _maybe(found["key"], _text),
        found["value"],
        _maybe(found["failure"], _text),
        _text(found["message"]),
        decisions,
        _maybe(found["asked_us"], _whole),
        _maybe(found["answered_us"], _whole),
        _flag(found["may_have_happened"]),
        _text(found["origin"]),
    )


# -- parts ----------------------------------------------------------------------------------------


def _maybe(found: Any, read: Callable[[Any], _Found]) -> _Found | None:
    return None if found is None else read(found)


def _text(found: object) -> str:
    return found if isinstance(found, str) else _fail(f"a text is expected, not {type(found).__name__}")


def _named(shape: re.Pattern[str], found: object) -> str:
    text = _text(found)
    return text if shape.fullmatch(text) else _fail(f"{text[:80]!a} cannot be a name here")


def _whole(found: object) -> int:
    """Return a non-negative integer that no reader overflows on: a time, number or count."""
    if not isinstance(found, int) or isinstance(found, bool):
        return _fail(f"a whole number is expected, not {type(found).__name__}")
    return found if 0 <= found <= _MAX_WHOLE else _fail(f"a whole number from 0 to {_MAX_WHOLE:,} is expected")


def _flag(found: object) -> bool:
    return found if isinstance(found, bool) else _fail(f"true or false is expected, not {type(found).__name__}")


def _moment(found: object) -> datetime:
    return found if isinstance(found, datetime) else _fail(f"a time is expected, not {type(found).__name__}")


def _mapping(found: object) -> Mapping[str, Any]:
    if isinstance(found, dict) and all(isinstance(name, str) for name in found):
        return found
    return _fail(f"names and values are expected, not {type(found).__name__}")


def _fail(why: str) -> NoReturn:
    raise ValueError(why)
