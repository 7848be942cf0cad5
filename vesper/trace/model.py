"""A trace: all that happened in one execution, and the node that it happened in.

A trace stands by itself: it carries the text and the IR of its node, so it can be read, replayed and turned into a test
when the node's file is long gone. It is written as typed JSON (docs/spec/traces.md). Reading one checks its shape and
its hash, decodes no IR and performs nothing. Formats are numbered; every one that was released is read for ever
(tests/unit/trace/goldens).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from vesper.engines.engine import Completion, Marks, Request
from vesper.engines.outcome import Outcome
from vesper.host.outcomes import outcome_record
from vesper.journal.entry import Definition
from vesper.journal.typed_json import encode
from vesper.values.vesper_error import VesperError

FORMAT = 1
MAX_BYTES = 64 << 20
"""Of one trace: more is refused before it is read."""
REPLAY_KEY = "replay "
"""What the idempotency key of a request begins with that a re-execution performed: it is no repetition of the first."""
KIND = "vesper trace"


class TraceError(VesperError):
    """Something is wrong with a trace: there is none, it is damaged, it cannot be read without a key."""


class MarkKind(StrEnum):
    VALUE = "value"
    """Of a step, an arm, a handler; the result of a request or of a called node."""
    CONDITION = "condition"
    """It decides which way the execution goes."""
    CLAUSE = "clause"
    """Of the contracts, or of a validation step."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What a policy decided about a request: an attempt, a delay, a rejection, that it is given up."""

    attempt: int
    said: Mapping[str, object]
    at_us: int | None = None
    """Microseconds since 1970; None where nobody looked at a clock."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request, what was decided about it, and what came of it."""

    path: str
    """The step, in loops with the iteration (`charge[2]`), of a called node under the calling step (`pay/charge`)."""
    effect: str
    effect_class: str
    fixed: Mapping[str, str]
    arguments: Mapping[str, object]
    key: str | None = None
    value: object = None
    failure: str | None = None
    """The code, where it failed; otherwise `value` came of it."""
    message: str = ""
    """What was said about the failure, for people."""
    decisions: tuple[Decision, ...] = ()
    asked_us: int | None = None
    answered_us: int | None = None
    may_have_happened: bool = False
    """Of one that failed: nobody knows whether it was performed all the same."""
    origin: str = "recorded"
    """Where the answer comes from: `recorded`, or in a re-execution `changed`, `prompt`, `file` or `live`."""

    def completion(self, request: Request) -> Completion:
        """What an execution that asks for this is told."""
        return Completion(request.id, self.value, self.failure)

    @property
    def took_us(self) -> int | None:
        if self.asked_us is None or self.answered_us is None:
            return None
        return self.answered_us - self.asked_us


@dataclass(frozen=True, slots=True)
class Marked:
    """Expression `index` had this value (docs/spec/ir.md, Marks)."""

    index: int
    value: object
    step: str
    """The step that it belongs to, as its author calls it; nothing for a clause of the contracts."""
    kind: MarkKind
    after: int
    """How many requests had been answered by then."""


@dataclass(frozen=True, slots=True)
class ContractResult:
    """A clause that was evaluated."""

    phase: str
    index: int
    """Of the clause in its phase."""
    text: str
    """As its author wrote it."""
    holds: bool
    after: int
    values: Mapping[str, object] = field(default_factory=dict)
    """Of a clause that was broken: what it mentions."""


@dataclass(frozen=True, slots=True)
class Transition:
    """An entity of a state machine moved."""

    path: str
    machine: str
    entity: object
    before: str
    to: str
    after: int


@dataclass(frozen=True, slots=True)
class Origin:
    """What a re-execution was made from; the trace that it names was not changed."""

    trace_id: str
    from_step: int | None
    changes: tuple[str, ...]
    """In words: `call_stripe_api.timeout: 30s -> 60s`."""


@dataclass(frozen=True, slots=True)
class Trace:
    trace_id: str
    """The id of the execution, where the journal has one."""
    definition: Definition
    """The node as it was, with those that it calls."""
    engines: tuple[str, ...]
    """Which ran it; the first is the one whose marks these are."""
    inputs: Mapping[str, object]
    now: datetime | None
    started_us: int
    duration_us: int | None
    """None where it has not ended."""
    exchanges: tuple[Exchange, ...]
    marks: tuple[Marked, ...]
    contracts: tuple[ContractResult, ...]
    transitions: tuple[Transition, ...]
    outcome: Outcome | None
    """None where it has not ended: it runs, or is in doubt."""
    divergence: str | None = None
    """Where two engines did not agree; None where nobody saw that."""
    origin: Origin | None = None
    waits_at: str | None = None
    """The path of the request that an execution waits for which has not ended."""
    is_sensitive: bool = False
    """True where the node, or one that it calls, has sensitive inputs: stored sealed, shown only when asked."""

    @property
    def node_id(self) -> str:
        return self.definition.node_id

    @property
    def semantic_hash(self) -> str:
        return self.definition.semantic_hash

    def raw_marks(self) -> Marks:
        """The marks as engines give them, for `vesper.engines.compare`."""
        return tuple((each.index, each.value) for each in self.marks)  # type: ignore[misc]  # they were values

    def without_times(self) -> Trace:
        """The same without what differs from one run to the next: two executions that did the same are equal."""
        exchanges = tuple(
            replace(
                each, asked_us=None, answered_us=None, decisions=tuple(replace(d, at_us=None) for d in each.decisions)
            )
            for each in self.exchanges
        )
        return replace(self, trace_id="", started_us=0, duration_us=None, exchanges=exchanges)

    def to_bytes(self) -> bytes:
        """Typed JSON, with a hash over all of it."""
        body = encode(_trace_json(self))
        digest = hashlib.sha256(body).hexdigest()
        return b'{"format":%d,"kind":"%s","sha256":"%s","trace":%s}\n' % (
            FORMAT, KIND.encode(), digest.encode(), body,
        )  # fmt: skip

    @staticmethod
    def from_bytes(data: bytes, where: str = "the trace") -> Trace:
        """Reads what `to_bytes` wrote, in any format that was ever released. Raises `TraceError`."""
        from vesper.trace.reading import read_trace

        return read_trace(data, where)


# -- writing --------------------------------------------------------------------------------------


def _trace_json(trace: Trace) -> dict[str, object]:
    return {
        "trace_id": trace.trace_id,
        "definition": _definition_json(trace.definition),
        "engines": list(trace.engines),
        "inputs": dict(trace.inputs),
        "now": trace.now,
        "started_us": trace.started_us,
        "duration_us": trace.duration_us,
        "exchanges": [_exchange_json(each) for each in trace.exchanges],
        "marks": [[each.index, each.value, each.step, str(each.kind), each.after] for each in trace.marks],
        "contracts": [
            [each.phase, each.index, each.text, each.holds, each.after, dict(each.values)] for each in trace.contracts
        ],
        "transitions": [
            [each.path, each.machine, each.entity, each.before, each.to, each.after] for each in trace.transitions
        ],
        "outcome": None if trace.outcome is None else outcome_record(trace.outcome),
        "divergence": trace.divergence,
        "origin": None
        if trace.origin is None
        else {
            "trace_id": trace.origin.trace_id,
            "from_step": trace.origin.from_step,
            "changes": list(trace.origin.changes),
        },
        "waits_at": trace.waits_at,
        "is_sensitive": trace.is_sensitive,
    }


def _definition_json(definition: Definition) -> dict[str, object]:
    return {
        "semantic_hash": definition.semantic_hash,
        "node_id": definition.node_id,
        "path": definition.path,
        "source": definition.source,
        "ir": definition.ir,
        "callees": [_definition_json(each) for each in definition.callees],
    }


def _exchange_json(exchange: Exchange) -> dict[str, object]:
    return {
        "path": exchange.path,
        "effect": exchange.effect,
        "class": exchange.effect_class,
        "fixed": dict(exchange.fixed),
        "arguments": dict(exchange.arguments),
        "key": exchange.key,
        "value": exchange.value,
        "failure": exchange.failure,
        "message": exchange.message,
        "decisions": [[each.attempt, dict(each.said), each.at_us] for each in exchange.decisions],
        "asked_us": exchange.asked_us,
        "answered_us": exchange.answered_us,
        "may_have_happened": exchange.may_have_happened,
        "origin": exchange.origin,
    }
