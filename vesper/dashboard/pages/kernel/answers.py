"""The answer of a person to an interrupt of the kernel."""

from __future__ import annotations

from collections.abc import Mapping

from vesper.dashboard.action import Context, Done, Refused
from vesper.dashboard.page import BadRequest
from vesper.dashboard.pages.kernel.connection import Absence, client_of
from vesper.dashboard.problem import Unavailable
from vesper.journal.audit import audit_change
from vesper.journal.journal import Journal
from vesper.kernel.errors import KernelError
from vesper.values.json_mistake import JsonMistake
from vesper.values.model import printable
from vesper.values.strict_json import forms_of_json

_LOOK_AGAIN = "Nothing was changed. Load the page again: another person or a time may have been faster."
_REFUSALS = ("FAILED_PRECONDITION", "INVALID_ARGUMENT", "NOT_FOUND")


def answer(context: Context, fields: Mapping[str, str]) -> Done:
    """Resolve the interrupt of the form with its response."""
    interrupt, value = fields.get("interrupt", ""), fields.get("value", "").strip()
    if value:
        try:
            forms_of_json(value)
        except (JsonMistake, ValueError) as problem:
            hint = 'Write JSON, such as `true`, `"a text"` or `{"approved": true}`.'
            raise BadRequest(f"the response is no JSON: {printable(str(problem))}", hint) from None
    client, journal = client_of(context.stores), _journal(context)
    from vesper.kernel import v1

    response = v1.InterruptResponse(value_json=value, by=context.caller.name)
    try:
        done = client.resolve_interrupt(v1.ResolveInterruptRequest(interrupt_id=interrupt, response=response)).interrupt
    except KernelError as problem:
        if problem.code in _REFUSALS:
            raise Refused(printable(problem.message), _LOOK_AGAIN) from None
        raise Absence.of(context.stores.config, problem) from None
    message = f"Answered {done.interrupt_id} of {done.pid}."
    if journal is None:
        message += " There is no journal here to keep the reason; the kernel keeps your name."
    else:
        by, why = context.caller.name, fields["reason"]
        audit_change(
            journal, "kernel_interrupt", done.run_id, "", by, interrupt=done.interrupt_id, pid=done.pid, why=why
        )
    return Done(message, "/workload/kernel")


def _journal(context: Context) -> Journal | None:
    try:
        return context.stores.audit
    except Unavailable:
        return None
