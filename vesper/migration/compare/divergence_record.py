"""Conversion of a reported disagreement into the divergence that a store keeps.

The fingerprint covers kind, location and the direct engine's path, without loop rounds and without values: the same
fault has the same fingerprint on every input of a path, in every process, whichever engine led. For a sensitive node
only the occurrence is kept: the run id leads to the journal, which holds the rest sealed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from vesper.compiler import Compiled
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
from vesper.engines.registry import REFERENCE
from vesper.journal.errors import JournalError
from vesper.journal.typed_json import as_bytes, decode, encode_text
from vesper.language.ir.nodes import Node
from vesper.migration.compare.comparator import fold_rounds, kind_of
from vesper.migration.compare.divergence import Divergence, Exemplar, fingerprint_of, shorten
from vesper.migration.compare.reports import Difference, Disagreement, Fault
from vesper.migration.compare.transcript import Transcript
from vesper.values.model import Value, printable, show
from vesper.values.times import parse_timestamp, timestamp_text

MAX_EXEMPLAR = 256 << 10
"""Maximum bytes of inputs and records. For a larger execution only its name and size are kept."""
PAIR = ("python", "interp")
_PATHLESS = ("fault", "noise")
"""Kinds whose identity has no path: a faulty engine reports none, or another one each time."""
_MAX_PATHS = 32
"""Maximum number of paths of one place with a divergence each. Further paths share one divergence."""
_FAULT = re.compile(r"[A-Za-z_]+(?: [A-Za-z_]+){0,3}", re.ASCII)


class PathsByPlace:
    """The paths that have a divergence of their own, by place. Each process has its own, so their number is bounded."""

    def __init__(self) -> None:
        self._paths: dict[str, set[str]] = {}

    def identity(self, place: str, path: str) -> str:
        """Return the path if it is among the first at this place, else an empty text."""
        known = self._paths.setdefault(place, set())
        if path not in known and len(known) >= _MAX_PATHS:
            return ""
        known.add(path)
        return path


def divergence_of(
    report: Disagreement | Fault,
    compiled: Compiled,
    is_sensitive: bool,
    now_us: int,
    engines: tuple[str, str] = PAIR,
    odd: str | None = None,
    redact: Callable[[str], str] | None = None,
    paths: PathsByPlace | None = None,
) -> Divergence:
    """Return the divergence of a report.

    `engines` are the leader and the follower. `redact` removes secrets from a text that may contain a response.
    `paths` bounds the number of divergences at one place.
    """
    difference = _difference(report, compiled.node)
    if difference.kind == "noise":
        engines = (engines[1], engines[1])  # the follower, twice
    exemplar = _exemplar(report, difference, is_sensitive, now_us, redact or _keep_text)
    note = report.note if isinstance(report, Disagreement) else None
    path = report.path if isinstance(report, Disagreement) and difference.kind not in _PATHLESS else ""
    place = fingerprint_by(compiled.node.node_id, difference, engines, _fault_of(report))
    if path and paths is not None:
        path = paths.identity(place, path)
    return Divergence(
        fingerprint_by(compiled.node.node_id, difference, engines, path=path) if path else place,
        compiled.node.node_id,
        difference.kind,
        fold_rounds(difference.where),
        "" if note is None else note.name,
        engines,
        odd,
        1,
        now_us,
        now_us,
        (exemplar,),
        extra={
            "semantic_hash": compiled.semantic_hash,
            "place": place,
            "leader": fold_rounds(difference.leader),
            "follower": fold_rounds(difference.follower),
        },
    )


def fingerprint_by(
    node_id: str, difference: Difference, engines: tuple[str, str], fault: str = "", path: str = ""
) -> str:
    """Return the fingerprint, which does not depend on the leader: the reference comes first.

    Without a path it identifies the place, at which several paths may differ.
    """
    sides = [fold_rounds(difference.leader), fold_rounds(difference.follower)]
    if engines[1] == REFERENCE:
        sides.reverse()
    if difference.kind == "fault":
        # The other engine's outcome depends on the input; the identity of the fault must not.
        sides = ["", fault_words(fault)]
    return fingerprint_of(node_id, difference.kind, fold_rounds(difference.where), sides[0], sides[1], path)


def fault_words(what: str) -> str:
    """Return the kind of a fault without values: `panicked` for `panicked: index 5 of 3`."""
    found = _FAULT.fullmatch(what.partition(":")[0].strip())
    return "fault" if found is None or ":" not in what else found[0]


def outcome_words(outcome: Outcome) -> str:
    """Return an outcome as text: its ending, then a line for each value (`fee = 1.50`)."""
    match outcome:
        case Returned(value) | DeclaredError(value):
            return _value_lines(outcome.kind.replace("_", " "), value)
        case ContractBroken(phase, index, values):
            return _value_lines(f"{phase} {index + 1} broken", values)
        case Failed(code, at, problems):
            where = "" if at is None else f" at expression {at}"
            named = (f"{printable(each.path)} = {each.kind.value}" for each in problems)
            return "\n".join([f"failed {printable(str(code))}{where}", *named])
        case Denied(capability):
            return f"denied {printable(capability)}"
        case LimitHit(limit):
            return f"limit hit: {limit}"
        case EngineFault(message):
            return f"engine fault: {printable(message)}"


def transcript_in(exemplar: Exemplar) -> Transcript | None:
    """Return the transcript that an exemplar holds; None where it was not kept."""
    if exemplar.records is not None:
        return Transcript.from_text(exemplar.records)
    if exemplar.inputs is None:
        return None
    now = None if exemplar.now is None else parse_timestamp(exemplar.now)
    return Transcript(decode(exemplar.inputs.encode()), now, (), Returned({}))


def _value_lines(ending: str, values: Mapping[str, Value]) -> str:
    return "\n".join([ending, *(f"{printable(name)} = {show(each)}" for name, each in values.items())])


def _difference(report: Disagreement | Fault, node: Node) -> Difference:
    if isinstance(report, Disagreement):
        return report.difference
    leader = "" if report.transcript is None else kind_of(node, report.transcript.outcome)
    return Difference("fault", "engine", leader, "fault")


def _fault_of(report: Disagreement | Fault) -> str:
    """Return the message of a fault; empty where there is none."""
    if isinstance(report, Fault):
        return report.what
    for outcome in (report.follower, report.transcript.outcome):
        if isinstance(outcome, EngineFault):
            return outcome.message
    return ""


def _exemplar(
    report: Disagreement | Fault,
    difference: Difference,
    is_sensitive: bool,
    now_us: int,
    redact: Callable[[str], str],
) -> Exemplar:
    transcript = report.transcript
    name = report.execution or _generate_name(report, now_us)
    if is_sensitive:
        return Exemplar(name, now_us, None, None, None, difference.leader, difference.follower)
    leader, follower = (redact(each) for each in _outcome_texts(report, difference))
    if transcript is None:
        return Exemplar(name, now_us, None, None, None, shorten(leader), shorten(follower))
    try:
        inputs = redact(_to_utf8(encode_text(dict(transcript.inputs))))
        records = redact(_to_utf8(transcript.to_text())) if transcript.exchanges else None
    except (JournalError, ValueError, OverflowError):
        # Inputs that cannot be encoded still make a divergence.
        return Exemplar(name, now_us, None, None, None, shorten(leader), shorten(follower))
    size = len(inputs.encode()) + (0 if records is None else len(records.encode()))
    if size > MAX_EXEMPLAR:
        return Exemplar(name, now_us, None, None, None, shorten(leader), shorten(follower), size)
    now = None if transcript.now is None else timestamp_text(transcript.now)
    return Exemplar(name, now_us, inputs, now, records, shorten(leader), shorten(follower))


def _outcome_texts(report: Disagreement | Fault, difference: Difference) -> tuple[str, str]:
    """Return the outcomes of both engines as texts with values."""
    transcript = report.transcript
    leader = "" if transcript is None else outcome_words(transcript.outcome)
    if isinstance(report, Fault):
        return leader, printable(report.what)
    if difference.requests is not None:
        return difference.requests
    if difference.kind == "request":
        return difference.leader, difference.follower
    return leader, difference.follower if report.follower is None else outcome_words(report.follower)


def _generate_name(report: Disagreement | Fault, now_us: int) -> str:
    """Return a name for an execution without a journal. Equal inputs get equal names, so that exemplars differ."""
    fingerprint = report.fingerprint if isinstance(report, Disagreement) else None
    return f"at {now_us}" if fingerprint is None else f"input {fingerprint:016x}"


def _to_utf8(text: str) -> str:
    """Return the same JSON without lone surrogates, which UTF-8 cannot encode."""
    return as_bytes(text).decode()


def _keep_text(text: str) -> str:
    return text
