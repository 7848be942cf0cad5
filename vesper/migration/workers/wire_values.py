"""Encoding of values, outcomes, requests and definitions for child processes, without loss.

Typed JSON sorts the keys of a dict, because a journal needs one text for equal values. Here the order must survive, so
that a dict is encoded as a list of pairs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from vesper.engines.engine import Completion, Marks, Request
from vesper.engines.outcome import Failed, Outcome
from vesper.host.outcomes import outcome_record, recorded_outcome
from vesper.journal.entry import Definition
from vesper.journal.errors import JournalError
from vesper.journal.typed_json import encode_text
from vesper.migration.compare.paths import PathNote
from vesper.migration.compare.reports import Agreement, Difference, Disagreement, Fault, Lost, PartAgreed, Report
from vesper.migration.compare.transcript import Exchange, Transcript
from vesper.values.json_value import Json
from vesper.values.model import Problem, ProblemKind

_AS_THEY_ARE = frozenset({str, int, bool, type(None), float, bytes, Decimal, date, timedelta, Json})
_DEPTH = 200
MAX_PROGRAMS = 64
"""Maximum number of nodes that the helper keeps loaded. It drops all of them when one more comes."""


class Unsendable(ValueError):
    """A value that no other process can receive unchanged."""


def message(value: object) -> bytes:
    """Return the bytes of a message of packed values. Raises `Unsendable`."""
    try:
        return encode_text(value).encode()
    except (JournalError, UnicodeEncodeError, OverflowError) as error:  # a timestamp before year 1 in UTC
        raise Unsendable(str(error)) from None


def pack(value: object, depth: int = 0) -> object:
    kind = type(value)
    if kind in _AS_THEY_ARE:
        return value
    if depth > _DEPTH:
        raise Unsendable("a value is nested too deeply, or contains itself")
    if isinstance(value, list | tuple) and kind in (list, tuple):
        return [pack(each, depth + 1) for each in value]
    if isinstance(value, dict) and kind is dict:
        return {"d": [[pack(key, depth + 1), pack(each, depth + 1)] for key, each in value.items()]}
    if isinstance(value, set | frozenset) and kind in (set, frozenset):
        return {"s": [pack(each, depth + 1) for each in value]}
    if isinstance(value, datetime) and kind is datetime and value.tzinfo is not None:
        return value
    raise Unsendable(f"a value of type `{kind.__name__}` cannot be sent to another process as it is")


def unpack(value: Any, depth: int = 0) -> Any:
    if depth > _DEPTH:
        raise ValueError("a value is nested too deeply")
    if type(value) is list:
        return [unpack(each, depth + 1) for each in value]
    if type(value) is dict:
        if "d" in value:
            return {unpack(key, depth + 1): unpack(each, depth + 1) for key, each in value["d"]}
        return frozenset(unpack(each, depth + 1) for each in value["s"])
    return value


def pack_outcome(outcome: Outcome) -> object:
    problems = outcome.problems if isinstance(outcome, Failed) else ()
    return [pack(outcome_record(outcome)), [[each.path, each.kind.value] for each in problems]]


def unpack_outcome(packed: Any) -> Outcome:
    record, problems = packed
    outcome = recorded_outcome(unpack(record))
    if isinstance(outcome, Failed) and problems:
        return Failed(outcome.code, outcome.at, tuple(Problem(path, ProblemKind(kind)) for path, kind in problems))
    return outcome


def pack_request(request: Request) -> object:
    fixed, arguments = pack(dict(request.fixed)), pack(dict(request.arguments))
    return [request.id, request.path, request.effect, request.effect_class, fixed, arguments, request.key]


def unpack_request(packed: Any) -> Request:
    number, path, effect, effect_class, fixed, arguments, key = packed
    return Request(number, path, effect, effect_class, unpack(fixed), unpack(arguments), key)


def pack_completion(completion: Completion) -> object:
    return [completion.id, pack(completion.result), completion.failure]


def unpack_completion(packed: Any) -> Completion:
    number, result, failure = packed
    return Completion(number, unpack(result), failure)


def pack_marks(marks: Marks) -> object:
    return [[index, pack(value)] for index, value in marks]


def unpack_marks(packed: Any) -> Marks:
    return tuple((index, unpack(value)) for index, value in packed)


def request_digest(request: Request) -> str:
    """Return a hash of a request without its id and the order of its fields.

    Each engine numbers its requests itself.
    """
    about = [request.path, request.effect, request.effect_class, request.key]
    return hashlib.sha256(message([*about, dict(request.fixed), dict(request.arguments)])).hexdigest()


def pack_recorded(exchange: Exchange) -> object:
    """Pack a recorded exchange as the digest of its request and its completion. The worker makes the request itself."""
    return [request_digest(exchange.request), pack(exchange.value), exchange.failure]


def pack_exchange(exchange: Exchange) -> object:
    return [pack_request(exchange.request), pack(exchange.value), exchange.failure]


def pack_transcript(transcript: Transcript) -> object:
    exchanges = list(map(pack_exchange, transcript.exchanges))
    return [pack(dict(transcript.inputs)), transcript.now, exchanges, pack_outcome(transcript.outcome)]


def unpack_transcript(packed: Any) -> Transcript:
    inputs, now, exchanges, outcome = packed
    found = tuple(Exchange(unpack_request(asked), unpack(value), failure) for asked, value, failure in exchanges)
    return Transcript(unpack(inputs), now, found, unpack_outcome(outcome))


def pack_report(report: Report | None) -> object:
    match report:
        case None:
            return None
        case PartAgreed(count=count):
            return ["part", count]
        case Agreement(note, fingerprint, python_ns, direct_ns):
            return ["agreement", note.to_text(), fingerprint, python_ns, direct_ns]
        case Disagreement(difference, note, fingerprint, transcript, follower, execution, prefix):
            texts = None if difference.requests is None else list(difference.requests)
            how = [difference.kind, difference.where, difference.leader, difference.follower, difference.is_effect]
            told = [None if note is None else note.to_text(), fingerprint, pack_transcript(transcript)]
            end = None if follower is None else pack_outcome(follower)
            return ["disagreement", [*how, texts], *told, end, execution, prefix]
        case Fault(what, transcript):
            return ["fault", what, None if transcript is None else pack_transcript(transcript)]
        case Lost(why):
            return ["lost", why]


def _unpack_difference(how: list[Any], texts: list[str] | None) -> Difference:
    kind, where, leader, follower, is_effect = how
    return Difference(kind, where, leader, follower, is_effect, None if texts is None else (texts[0], texts[1]))


def unpack_report(packed: Any) -> Report | None:
    match packed:
        case None:
            return None
        case ["part", count]:
            return PartAgreed.on(count)
        case ["agreement", note, fingerprint, python_ns, direct_ns]:
            return Agreement(PathNote.from_text(note), fingerprint, python_ns, direct_ns)
        case ["disagreement", [*how, texts], note, fingerprint, transcript, follower, execution, prefix]:
            return Disagreement(
                _unpack_difference(how, texts),
                None if note is None else PathNote.from_text(note),
                fingerprint,
                unpack_transcript(transcript),
                None if follower is None else unpack_outcome(follower),
                execution,
                prefix,
            )
        case ["fault", what, transcript]:
            return Fault(what, None if transcript is None else unpack_transcript(transcript))
        case ["lost", why]:
            return Lost(why)
        case _:
            raise ValueError("not a report")


def pack_definition(definition: Definition) -> object:
    """Pack a definition without its source. Engines need only the IR, and a source may be private."""
    callees = [pack_definition(each) for each in definition.callees]
    return [definition.semantic_hash, definition.node_id, definition.path, definition.ir, callees]


def unpack_definition(packed: Any) -> Definition:
    semantic_hash, node_id, path, ir, callees = packed
    return Definition(semantic_hash, node_id, path, "", ir, tuple(map(unpack_definition, callees)))


def as_inputs(inputs: object) -> Mapping[str, object]:
    if not isinstance(inputs, dict):
        raise Unsendable(f"inputs are a dict, not a `{type(inputs).__name__}`")
    return inputs
