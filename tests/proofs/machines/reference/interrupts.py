"""Interrupts: the kinds of the table in docs/spec/kernel.md, and their four states."""

from __future__ import annotations

from tests.proofs.machines.messages import interrupt_pb2, orchestration_pb2
from tests.proofs.machines.reference.limits import HOUR_US, LONGEST_TTL_US, MINUTE_US, check_json
from tests.proofs.machines.reference.refusals import demand

PENDING = interrupt_pb2.INTERRUPT_STATUS_PENDING
RESOLVED = interrupt_pb2.INTERRUPT_STATUS_RESOLVED
EXPIRED = interrupt_pb2.INTERRUPT_STATUS_EXPIRED
CANCELLED = interrupt_pb2.INTERRUPT_STATUS_CANCELLED
KINDS: dict[int, tuple[int | None, bool]] = {
    interrupt_pb2.INTERRUPT_KIND_CLARIFICATION: (24 * HOUR_US, True),
    interrupt_pb2.INTERRUPT_KIND_CONFIRMATION: (HOUR_US, True),
    interrupt_pb2.INTERRUPT_KIND_AGENT_REVIEW: (30 * MINUTE_US, True),
    interrupt_pb2.INTERRUPT_KIND_CHECKPOINT: (None, False),
    interrupt_pb2.INTERRUPT_KIND_RESOURCE_EXHAUSTED: (5 * MINUTE_US, False),
    interrupt_pb2.INTERRUPT_KIND_TIMEOUT: (5 * MINUTE_US, False),
    interrupt_pb2.INTERRUPT_KIND_SYSTEM_ERROR: (HOUR_US, False),
}
"""Time to live, and whether a response is required."""
Question = interrupt_pb2.CreateInterruptRequest | orchestration_pb2.AgentQuestion


def is_answer_required(kind: int) -> bool:
    return KINDS[kind][1]


def check(question: Question) -> None:
    demand(question.kind in KINDS, "an interrupt has a kind")
    if question.HasField("ttl_us"):
        demand(KINDS[question.kind][0] is not None, "it never expires")
        demand(1 <= question.ttl_us <= LONGEST_TTL_US, "the time to live is out of bounds")
    if question.data_json:
        check_json(question.data_json)


def check_response(kind: int, response: interrupt_pb2.InterruptResponse | None) -> None:
    is_required = is_answer_required(kind)
    demand(response is not None or not is_required, "a response is required")
    if response is not None and (response.value_json or is_required):
        check_json(response.value_json)


def create(question: Question, interrupt_id: str, pid: str, now_us: int) -> interrupt_pb2.FlowInterrupt:
    ttl_us = question.ttl_us if question.HasField("ttl_us") else KINDS[question.kind][0]
    return interrupt_pb2.FlowInterrupt(
        interrupt_id=interrupt_id,
        pid=pid,
        kind=question.kind,
        status=PENDING,
        message=question.message,
        data_json=question.data_json,
        run_id=question.run_id,
        created_us=now_us,
        expires_us=None if ttl_us is None else now_us + ttl_us,
    )


def close(
    interrupt: interrupt_pb2.FlowInterrupt,
    status: interrupt_pb2.InterruptStatus,
    response: interrupt_pb2.InterruptResponse | None,
    now_us: int,
) -> None:
    interrupt.status, interrupt.ended_us = status, now_us
    if response is not None:
        interrupt.response.CopyFrom(response)
