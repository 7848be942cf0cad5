"""The model of a trace: everything recorded in one execution, with the node's definition.

A trace is self-contained: it carries the text and the IR of its node, so it can be read, replayed and turned into a
test without the node's file. It is written as typed JSON (docs/spec/traces.md). Reading checks the shape and the hash,
decodes no IR and performs nothing. Formats are numbered; every released format stays readable
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
"""Maximum bytes of one trace; larger ones are refused unread."""
REPLAY_KEY = "replay "
"""Prefix of idempotency keys of performed re-executions, which must not count as repetitions."""
KIND = "vesper trace"


class TraceError(VesperError):
    """A trace is missing, damaged or unreadable without a key."""


class MarkKind(StrEnum):
    VALUE = "value"
    """Value of a step, an arm or a handler; the result of a request or of a called node."""
    CONDITION = "condition"
    """Condition that selects the path."""
    CLAUSE = "clause"
    """Clause of a contract or of a validation step."""


@dataclass(frozen=True, slots=True)
class Decision:
    """Decision of a policy about a request: an attempt, a delay, a rejection or giving up."""

    attempt: int
    said: Mapping[str, object]
    at_us: int | None = None
    """Microseconds since 1970; None if no time was recorded."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request with its policy decisions and its completion."""

    path: str
    """Path of the step, with loop rounds (`charge[2]`) and calling steps (`pay/charge`)."""
    effect: str
    effect_class: str
    fixed: Mapping[str, str]
    arguments: Mapping[str, object]
    key: str | None = None
    value: object = None
    failure: str | None = None
    """Failure code; None if the request returned `value`."""
    message: str = ""
    """Description of the failure for people."""
    decisions: tuple[Decision, ...] = ()
    asked_us: int | None = None
    answered_us: int | None = None
    may_have_happened: bool = False
    """True for a failed request that may have been performed nevertheless."""
    origin: str = "recorded"
    """Source of the completion: `recorded`; in a re-execution `changed`, `prompt`, `file` or `live`."""

    def completion(self, request: Request) -> Completion:
        """Return the completion for an execution that makes this request."""
        return Completion(request.id, self.value, self.failure)

    @property
    def attempts(self) -> int:
        """Number of attempts that were made."""
        return max((each.attempt for each in self.decisions), default=1)

    @property
    def took_us(self) -> int | None:
        if self.asked_us is None or self.answered_us is None:
            return None
        return self.answered_us - self.asked_us


@dataclass(frozen=True, slots=True)
class Marked:
    """A mark: the value of one expression (docs/spec/ir.md, Marks)."""

    index: int
    value: object
    step: str
    """Author's name of the step; empty for a clause of the contracts."""
    kind: MarkKind
    after: int
    """Number of requests completed before the mark."""


@dataclass(frozen=True, slots=True)
class ContractResult:
    """One evaluated clause."""

    phase: str
    index: int
    """Index of the clause in its phase."""
    text: str
    """Source text of the clause."""
    holds: bool
    after: int
    values: Mapping[str, object] = field(default_factory=dict)
    """Values of the names in a broken clause."""


@dataclass(frozen=True, slots=True)
class Transition:
    """A transition of an entity in a state machine."""

    path: str
    machine: str
    entity: object
    before: str
    to: str
    after: int


@dataclass(frozen=True, slots=True)
class Origin:
    """Origin of a re-execution; the trace named here was not changed."""

    trace_id: str
    from_step: int | None
    changes: tuple[str, ...]
    """Descriptions such as `call_stripe_api.timeout: 30s -> 60s`."""


@dataclass(frozen=True, slots=True)
class Trace:
    trace_id: str
    """Id of the execution in the journal, if it has one."""
    definition: Definition
    """Definition of the node at that time, with its callees."""
    engines: tuple[str, ...]
    """Engines that ran it; the marks are those of the first."""
    inputs: Mapping[str, object]
    now: datetime | None
    started_us: int
    duration_us: int | None
    """Duration in microseconds; None for an execution that has not ended."""
    exchanges: tuple[Exchange, ...]
    marks: tuple[Marked, ...]
    contracts: tuple[ContractResult, ...]
    transitions: tuple[Transition, ...]
    outcome: Outcome | None
    """None for an execution that has not ended: it is running or in doubt."""
    divergence: str | None = None
    """Description of a divergence of the engines; None if none was observed."""
    origin: Origin | None = None
    waits_at: str | None = None
    """Path of the pending request of an execution that has not ended."""
    is_sensitive: bool = False
    """True if the node or a callee has sensitive inputs: stored sealed, shown on request only."""
    caller: Mapping[str, str] = field(default_factory=dict)
    """Context of the run (docs/spec/journal.md): `actor`, `tenant`, `key` and others."""

    @property
    def node_id(self) -> str:
        return self.definition.node_id

    @property
    def semantic_hash(self) -> str:
        return self.definition.semantic_hash

    def raw_marks(self) -> Marks:
        """Return the marks in the form of `vesper.engines.compare`."""
        # the values came from an engine
        return tuple((each.index, each.value) for each in self.marks)  # type: ignore[misc]

    def _repr_html_(self) -> str:
        from vesper.trace.html import trace_html  # it imports this module

        return trace_html(self)

    def without_times(self) -> Trace:
        """Return the trace without times, so that equal executions have equal traces."""
        exchanges = tuple(
            replace(
                each, asked_us=None, answered_us=None, decisions=tuple(replace(d, at_us=None) for d in each.decisions)
            )
            for each in self.exchanges
        )
        return replace(self, trace_id="", started_us=0, duration_us=None, exchanges=exchanges)

    def to_bytes(self) -> bytes:
        """Return typed JSON with a hash over its content."""
        body = encode(_trace_json(self))
        digest = hashlib.sha256(body).hexdigest()
        return b'{"format":%d,"kind":"%s","sha256":"%s","trace":%s}\n' % (
            FORMAT, KIND.encode(), digest.encode(), body,
        )  # fmt: skip

    @staticmethod
    def from_bytes(data: bytes, where: str = "the trace") -> Trace:
        """Read bytes written by `to_bytes` in any released format. Raises `TraceError`."""
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
        **({"caller": dict(trace.caller)} if trace.caller else {}),
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
