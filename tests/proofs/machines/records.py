"""Records: what the campaign sends to both sides, and what each observes after every one.

A record is a byte for its kind, a length and a text: `R` begins a sequence with settings, `C` is a change of the log,
`A` and `L` take and release a place of a service, `Q` is a query with its time and its number.
An observation has the code of the answer, the answer, events, the status of the machines, whether a cleanup is due,
and each entity that is no longer as before.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

from google.protobuf.message import Message

from tests.proofs.machines.messages import (
    engine_pb2,
    envelope_pb2,
    interrupt_pb2,
    kernel_pb2,
    log_message,
    orchestration_pb2,
    process_pb2,
    registry_pb2,
)
from tests.proofs.machines.reference import cleanup
from tests.proofs.machines.reference.commands import COMMANDS, acquire_slot, release_slot
from tests.proofs.machines.reference.coverage import Seen
from tests.proofs.machines.reference.kernel import Kernel, Settings
from tests.proofs.machines.reference.limits import COUNTERS
from tests.proofs.machines.reference.queries import QUERIES
from tests.proofs.machines.reference.refusals import CODES, Refused

Change = log_message("Change")
CHANGED, UNCHANGED, REFUSED = 0, 1, 10
_U32 = struct.Struct("<I")
_QUERY = struct.Struct("<qB")
_SETTINGS = struct.Struct("<11q")
_LIMITS = (*(f"max_{name}" for name in COUNTERS), "timeout_us")


@dataclass(frozen=True, slots=True)
class Record:
    """One command or query, with its time."""

    kind: bytes
    body: bytes
    now_us: int
    message: Any
    """The change, the name of the service, or the query with its text."""

    def encode(self) -> bytes:
        return self.kind + _U32.pack(len(self.body)) + self.body

    @property
    def name(self) -> str:
        if self.kind == b"C":
            return str(self.message.WhichOneof("change"))
        if self.kind == b"Q":
            return str(QUERIES[self.message[0]].__name__)
        return "acquire_slot" if self.kind == b"A" else "release_slot"


def change(now_us: int, **given: Any) -> Record:
    message = Change(at_us=now_us, **given)
    return Record(b"C", message.SerializeToString(), now_us, message)


def slot(is_taken: bool, service: str, now_us: int) -> Record:
    return Record(b"A" if is_taken else b"L", struct.pack("<q", now_us) + service.encode(), now_us, service)


def query(number: int, text: bytes, now_us: int) -> Record:
    return Record(b"Q", _QUERY.pack(now_us, number) + text, now_us, (number, text))


def reset(settings: Settings) -> bytes:
    """Return the record that begins a sequence."""
    quota = [getattr(settings.quota, name) if settings.quota.HasField(name) else -1 for name in _LIMITS]
    rates = [-1 if each is None else each for each in (settings.burst, settings.per_minute, settings.per_hour)]
    body = _SETTINGS.pack(*quota, *rates, settings.retention_us)
    return b"R" + _U32.pack(len(body)) + body


class Side:
    """The reference as one side: it performs records and observes what the driver of Rust observes."""

    def __init__(self, settings: Settings, seen: Seen | None = None) -> None:
        self.kernel = Kernel(settings, seen)
        self._known: dict[str, bytes] = {}
        self._status = b""

    def perform(self, record: Record) -> bytes:
        """Perform a record, and return the observation."""
        kernel = self.kernel
        kernel.now_us = record.now_us
        kernel.events = []
        kernel.touched = set()
        answer, code = None, UNCHANGED
        try:
            if record.kind == b"C":
                name = record.message.WhichOneof("change")
                answer, is_changed = COMMANDS[name](kernel, getattr(record.message, name))
                code = CHANGED if is_changed else UNCHANGED
                kernel.sequence += is_changed
            elif record.kind == b"Q":
                answer = QUERIES[record.message[0]](kernel, record.message[1])
            else:
                answer, _ = (acquire_slot if record.kind == b"A" else release_slot)(kernel, record.message)
        except Refused as refused:
            code = REFUSED + refused.code
        said = ("changed", "unchanged")[code] if code < REFUSED else CODES[code - REFUSED]
        kernel.seen.answers[f"{record.name} {said}"] += 1
        return self._observe(code, answer)

    def _observe(self, code: int, answer: Message | None) -> bytes:
        kernel = self.kernel
        answered = b"" if answer is None else answer.SerializeToString(deterministic=True)
        parts = [bytes([code]), _U32.pack(len(answered)), answered, _U32.pack(len(kernel.events))]
        for event in kernel.events:
            text = event.SerializeToString(deterministic=True)
            parts += [b"P" if isinstance(event, engine_pb2.PipelineEvent) else b"K", _U32.pack(len(text)), text]
        if kernel.touched or kernel.rates.requests:
            self._status = kernel.status().SerializeToString(deterministic=True)
        parts += [_U32.pack(len(self._status)), self._status, bytes([cleanup.is_due(kernel)])]
        rows = self._differences()
        parts.append(_U32.pack(len(rows)))
        for key, text in rows:
            parts += [_U32.pack(len(key)), key.encode(), _U32.pack(len(text)), text]
        return b"".join(parts)

    def _differences(self) -> list[tuple[str, bytes]]:
        """Return the entities that are not as before; a removed one has no text."""
        found: list[tuple[str, bytes]] = []
        for key in self.kernel.touched:
            text = self.kernel.entity(key)
            if text != self._known.get(key, b""):
                self._known[key] = text
                found.append((key, text))
        if not found:
            return found
        queue = " ".join(process.message.pid for process in self.kernel.processes.ready()).encode()
        if queue != self._known.get("ready", b""):
            self._known["ready"] = queue
            found.append(("ready", queue))
        return sorted(found)

    def missed(self) -> list[str]:
        """Return entities that changed without being named: an error of the reference."""
        kernel = self.kernel
        keys = {*kernel.processes.all, *kernel.interrupts, *kernel.envelopes}
        keys |= {f"s:{pid}" for pid in kernel.sessions} | {f"svc:{name}" for name in kernel.registry.services}
        keys |= self._known.keys() - {"ready"}
        return [key for key in sorted(keys) if kernel.entity(key) != self._known.get(key, b"")]


_ANSWERS: dict[str, type[Message] | None] = {
    **dict.fromkeys(
        ("create_process", "schedule_process", "transition_state", "terminate_process"), process_pb2.Process
    ),
    **dict.fromkeys(("create_interrupt", "resolve_interrupt", "cancel_interrupt"), interrupt_pb2.FlowInterrupt),
    **dict.fromkeys(("register_service", "update_health", "acquire_slot", "release_slot"), registry_pb2.ServiceInfo),
    **dict.fromkeys(("initialize_session", "terminate_session", "session_state"), orchestration_pb2.SessionState),
    **dict.fromkeys(("create_envelope", "update_envelope", "clone_envelope"), envelope_pb2.Envelope),
    "submit": kernel_pb2.SubmitResponse,
    "take_runnable": kernel_pb2.GetNextRunnableResponse,
    "record_usage": kernel_pb2.RecordUsageResponse,
    "record_request": kernel_pb2.CheckRateLimitResponse,
    "renew_lease": kernel_pb2.RenewLeaseResponse,
    "execute_pipeline": kernel_pb2.GetProcessRequest,
    "take_step": orchestration_pb2.Instruction,
    "report_result": orchestration_pb2.ReportAgentResultResponse,
    "worker_takes": registry_pb2.WorkResponse,
    "cleanup": kernel_pb2.CleanupResponse,
    "check_quota": kernel_pb2.CheckQuotaResponse,
    "request_status": kernel_pb2.GetRequestStatusResponse,
    "check_bounds": engine_pb2.BoundsCheckResult,
    "list_processes": kernel_pb2.ListProcessesResponse,
    "list_interrupts": interrupt_pb2.ListInterruptsResponse,
    "list_services": registry_pb2.ListServicesResponse,
    "service_stats": registry_pb2.GetServiceStatsResponse,
    "can_accept": registry_pb2.CanAcceptResponse,
    "get_interrupt": interrupt_pb2.FlowInterrupt,
    "get_envelope": envelope_pb2.Envelope,
}
_ENTITIES: dict[str, type[Message] | None] = {
    "p": process_pb2.Process,
    "i": interrupt_pb2.FlowInterrupt,
    "e": envelope_pb2.Envelope,
    "s:": log_message("SessionSnapshot"),
    "svc": registry_pb2.ServiceInfo,
}


class _Reader:
    def __init__(self, text: bytes) -> None:
        self.text, self.place = text, 0

    def take(self, size: int) -> bytes:
        self.place += size
        return self.text[self.place - size : self.place]

    def number(self) -> int:
        return int(_U32.unpack(self.take(4))[0])

    def chunk(self) -> bytes:
        return self.take(self.number())


def _read(text: bytes, message: type[Message] | None) -> Message | bytes:
    return text if message is None else message.FromString(text)


def explain(name: str, observation: bytes) -> dict[str, Any]:
    """Return the parts of an observation as messages: two of them are equal where both sides mean the same."""
    reader = _Reader(observation)
    found: dict[str, Any] = {"code": reader.take(1)[0]}
    found["answer"] = _read(reader.chunk(), _ANSWERS.get(name))
    for place in range(reader.number()):
        kind = engine_pb2.PipelineEvent if reader.take(1) == b"P" else kernel_pb2.KernelEvent
        found[f"event {place}"] = _read(reader.chunk(), kind)
    found["status"] = _read(reader.chunk(), kernel_pb2.GetSystemStatusResponse)
    found["is_due"] = bool(reader.take(1)[0])
    for _ in range(reader.number()):
        key = reader.chunk().decode()
        kind_of = "svc" if key.startswith("svc:") else "s:" if key.startswith("s:") else key[:1]
        text = reader.chunk()
        found[f"entity {key}"] = _read(text, _ENTITIES.get(kind_of)) if text else b""
    return found
