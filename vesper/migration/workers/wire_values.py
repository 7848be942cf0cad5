"""Values, outcomes, requests and definitions as they go to a child and back: the same on the other side, to the order
of the keys of a dict and the kind of every number.

Typed JSON writes the keys of a dict in order, because a journal wants one text for equal values. An answer must not
look otherwise for having come from another process: so a dict goes as a list of pairs.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from vesper.engines.engine import Completion, Marks, Request
from vesper.engines.outcome import (
    ContractBroken,
    DeclaredError,
    Denied,
    EngineFault,
    Failed,
    LimitHit,
    Outcome,
    Returned,
)
from vesper.host.outcomes import outcome_record, recorded_outcome
from vesper.journal.entry import Definition
from vesper.journal.errors import JournalError
from vesper.journal.typed_json import encode_text
from vesper.migration.compare.paths import PathNote
from vesper.migration.compare.reports import Agreement, Difference, Disagreement, Fault, Lost, Report
from vesper.migration.compare.transcript import Exchange, Transcript
from vesper.migration.workers.shown import PartAgreed
from vesper.migration.workers.untrusted_values import unpack_said
from vesper.values.json_value import Json
from vesper.values.model import Problem, ProblemKind

_AS_THEY_ARE = frozenset({str, int, bool, type(None), float, bytes, Decimal, date, timedelta, Json})
_DEPTH = 200
_HALF = re.compile("[\ud800-\udfff]")
MOST_PROGRAMS = 64
"""So many nodes are known to a helper at once; it forgets all of them when there are more."""


class Unsendable(ValueError):
    """No other process can be given this value: what it would get is something else."""


def message(value: object) -> bytes:
    """The bytes of a message. What is in it was packed."""
    try:
        return encode_text(value).encode()
    except (JournalError, UnicodeEncodeError, OverflowError) as error:  # a moment before the year 1, in UTC, is none
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
    """Raises for what is none: a process that went wrong may say anything, and whoever has an outcome takes it for one.
    (`ValueError`, or what Python raises for a value that is not what it should be.)"""
    record, problems = packed
    outcome = recorded_outcome(unpack_said(record))
    if not _is_outcome(outcome):
        raise ValueError(f"no outcome: {type(outcome).__name__}")
    if isinstance(outcome, Failed) and problems:
        if not all(_is_text(path) for path, _ in problems):
            raise ValueError("no problems")
        return Failed(outcome.code, outcome.at, tuple(Problem(path, ProblemKind(kind)) for path, kind in problems))
    return outcome


def pack_request(request: Request) -> object:
    fixed, arguments = pack(dict(request.fixed)), pack(dict(request.arguments))
    return [request.id, request.path, request.effect, request.effect_class, fixed, arguments, request.key]


def unpack_request(packed: Any) -> Request:
    """Raises for what is none, as `unpack_outcome` does."""
    number, path, effect, effect_class, fixed, arguments, key = packed
    found = Request(number, path, effect, effect_class, unpack_said(fixed), unpack_said(arguments), key)
    texts = (path, effect, effect_class, "" if key is None else key)
    is_one = type(number) is int and all(map(_is_text, texts))
    if not (is_one and _is_named(found.fixed) and _is_named(found.arguments)):
        raise ValueError("no request")
    return found


def _is_outcome(outcome: Outcome) -> bool:
    match outcome:
        case DeclaredError(value):
            return _is_named(value) and all(_is_text(each) for each in value.values() if isinstance(each, str))
        case Returned(value):
            return _is_named(value)
        case Failed(code, at):
            return _is_text(code) and (at is None or type(at) is int)
        case ContractBroken(phase, index, values):
            return _is_text(phase) and type(index) is int and _is_named(values)
        case Denied(capability, why):
            return _is_text(capability) and _is_text(why)
        case LimitHit(word) | EngineFault(word):
            return _is_text(word)


def _is_text(value: object) -> bool:
    """Of this language: half a character is none, and names nothing."""
    return isinstance(value, str) and not _HALF.search(value)


def _is_named(values: object) -> bool:
    return type(values) is dict and all(map(_is_text, values))


def pack_completion(completion: Completion) -> object:
    return [completion.id, pack(completion.result), completion.failure]


def unpack_completion(packed: Any) -> Completion:
    number, result, failure = packed
    return Completion(number, unpack(result), failure)


def pack_marks(marks: Marks) -> object:
    return [[index, pack(value)] for index, value in marks]


def unpack_marks(packed: Any) -> Marks:
    return tuple((index, unpack_said(value)) for index, value in packed)


def asked_for(request: Request) -> str:
    """What a request asks for, to the letter, as a short text that is the same for no other: its fields in whatever
    order, and without its number, which each engine counts for itself. An engine asks with values of the language
    alone; of what is none, a subclass of a text, it is the same as of the text."""
    about = [request.path, request.effect, request.effect_class, request.key]
    return hashlib.sha256(message([*about, dict(request.fixed), dict(request.arguments)])).hexdigest()


def pack_answered(exchange: Exchange, asked: str) -> object:
    """An exchange for an engine that asks by itself. It is not told what it will ask for (`asked_for`), but how to know
    it: who says it has asked."""
    return [known_by(asked), pack(exchange.value), exchange.failure]


def known_by(asked: str) -> str:
    return hashlib.sha256(asked.encode("ascii")).hexdigest()


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
        case PartAgreed(words=words):
            return ["part", words]
        case Agreement(note, fingerprint, python_ns, direct_ns):
            return ["agreement", note.to_text(), fingerprint, python_ns, direct_ns]
        case Disagreement(difference, note, fingerprint, transcript, follower, execution):
            how = [difference.kind, difference.where, difference.leader, difference.follower, difference.is_effect]
            told = [None if note is None else note.to_text(), fingerprint, pack_transcript(transcript)]
            return ["disagreement", how, *told, None if follower is None else pack_outcome(follower), execution]
        case Fault(what, transcript):
            return ["fault", what, None if transcript is None else pack_transcript(transcript)]
        case Lost(why):
            return ["lost", why]


def unpack_report(packed: Any) -> Report | None:
    match packed:
        case None:
            return None
        case ["part", words] if type(words) is bytes:
            return PartAgreed.on(words)
        case ["agreement", note, fingerprint, python_ns, direct_ns]:
            return Agreement(_note(note), _fingerprint(fingerprint), _nanoseconds(python_ns), _nanoseconds(direct_ns))
        case ["disagreement", how, note, fingerprint, transcript, follower, execution]:
            return Disagreement(
                _difference(how),
                None if note is None else _note(note),
                None if fingerprint is None else _fingerprint(fingerprint),
                unpack_transcript(transcript),
                _follower(follower),
                execution,
            )
        case ["fault", what, transcript]:
            return Fault(_word(what), None if transcript is None else unpack_transcript(transcript))
        case ["lost", why]:
            return Lost(_word(why))
        case _:
            raise ValueError("no report")


def _follower(told: Any) -> Outcome | None:
    """What the direct engine came to, as far as it is anything: that it is over every limit may be the difference."""
    try:
        return None if told is None else unpack_outcome(told)
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def _difference(told: Any) -> Difference:
    found = Difference(*told)
    if (
        not all(map(_is_text, (found.kind, found.where, found.leader, found.follower)))
        or type(found.is_effect) is not bool
    ):
        raise ValueError("no difference")
    return found


def _word(told: Any) -> str:
    if not _is_text(told):
        raise ValueError("no word")
    return str(told)


def _note(text: Any) -> PathNote:
    note = PathNote.from_text(text)
    if not all(map(_is_text, (note.ending, *note.settled, *note.prefixes))):
        raise ValueError("no path")
    return note


def _fingerprint(told: Any) -> int:
    if type(told) is not int or not 0 <= told < 1 << 64:
        raise ValueError("no fingerprint")
    return told


def _nanoseconds(told: Any) -> int | None:
    if told is not None and (type(told) is not int or told < 0):
        raise ValueError("no time")
    return told


def pack_definition(definition: Definition) -> object:
    """Without the source: an engine needs the document alone, and a source may be private."""
    callees = [pack_definition(each) for each in definition.callees]
    return [definition.semantic_hash, definition.node_id, definition.path, definition.ir, callees]


def unpack_definition(packed: Any) -> Definition:
    semantic_hash, node_id, path, ir, callees = packed
    return Definition(semantic_hash, node_id, path, "", ir, tuple(map(unpack_definition, callees)))


def as_inputs(inputs: object) -> Mapping[str, object]:
    if not isinstance(inputs, dict):
        raise Unsendable(f"inputs are a dict, not a `{type(inputs).__name__}`")
    return inputs
