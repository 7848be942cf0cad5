"""Answers that runs got elsewhere, carried to the kernel: by `vesper interrupts`, over HTTP, in the dashboard."""

from __future__ import annotations

import json

from vesper.host.waiting_runs import InterruptStatus, interrupts_of
from vesper.journal.errors import UnknownExecution
from vesper.journal.journal import Journal
from vesper.journal.typed_json import encode_text
from vesper.kernel import v1
from vesper.kernel.client import Client
from vesper.kernel.errors import KernelError
from vesper.kernel.steps import is_asked_by

_PAGE = 1_000
_LOST_RACE = ("FAILED_PRECONDITION", "NOT_FOUND")


def carry_answers(client: Client, journal: Journal) -> int:
    """Resolve or cancel pending interrupts whose run was answered or cancelled in the journal; return how many."""
    carried, token = 0, ""
    while True:
        page = client.list_interrupts(
            v1.ListInterruptsRequest(
                status=v1.InterruptStatus.INTERRUPT_STATUS_PENDING, page_size=_PAGE, page_token=token
            )
        )
        carried += sum(_carry(client, journal, each) for each in page.interrupts if each.run_id)
        token = page.next_page_token
        if not token:
            return carried


def _carry(client: Client, journal: Journal, interrupt: v1.FlowInterrupt) -> bool:
    try:
        recorded = journal.read(interrupt.run_id)
    except UnknownExecution:
        return False  # of another journal
    found = next((each for each in interrupts_of(journal, recorded) if is_asked_by(interrupt, each.wait)), None)
    try:
        if found is not None and found.status is InterruptStatus.RESOLVED:
            response = v1.InterruptResponse(value_json=_answer_json(found.answer), by=found.by or "")
            request = v1.ResolveInterruptRequest(interrupt_id=interrupt.interrupt_id, response=response)
            client.resolve_interrupt(request)
            return True
        if found is not None and found.status is InterruptStatus.CANCELLED:
            client.cancel_interrupt(v1.CancelInterruptRequest(interrupt_id=interrupt.interrupt_id, by=found.by or ""))
            return True
    except KernelError as error:
        if error.code not in _LOST_RACE:
            raise
    return False


def _answer_json(answer: object) -> str:
    return json.dumps(json.loads(encode_text(answer)))
