"""`vesper kernel interrupts`: questions of processes to people."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from vesper.cli.interrupts.values import value_of_json
from vesper.cli.journal.open_journal import current_user
from vesper.cli.journal.text import table
from vesper.cli.kernel.connection import Connection, connect, connection_options
from vesper.cli.kernel.names import short_name
from vesper.cli.options import by_option, limit_option, style_option
from vesper.cli.output.outcomes import json_text
from vesper.journal.moments import took_text
from vesper.values.model import printable

if TYPE_CHECKING:
    from vesper.kernel.v1 import FlowInterrupt

_STATUSES = ("pending", "resolved", "expired", "cancelled", "all")


@click.group("interrupts")
def interrupts() -> None:
    """List and answer questions of processes."""


@interrupts.command("list")
@click.option("--status", type=click.Choice(_STATUSES), default="pending", show_default=True)
@limit_option
@style_option
@connection_options
def list_command(status: str, limit: int, style: str, connection: Connection) -> None:
    """List questions, oldest first."""
    with connect(connection) as client:
        from vesper.kernel import v1

        wanted = f"INTERRUPT_STATUS_{'UNSPECIFIED' if status == 'all' else status.upper()}"
        request = v1.ListInterruptsRequest(status=wanted, page_size=min(limit, 1_000))
        found = list(client.list_interrupts(request).interrupts)
    if style == "json":
        click.echo(json_text([_document(each) for each in found]))
    elif not found:
        click.echo("no interrupts" if status == "all" else f"no interrupts are {status}")
    else:
        rows = [["interrupt", "process", "stage", "kind", "status", "expires", "message"]]
        rows += [_row(each) for each in found]
        click.echo("\n".join(table(rows)))


@interrupts.command("answer")
@click.argument("interrupt")
@click.option("--value", metavar="JSON", help="The answer, as JSON of the type that the question names.")
@by_option
@connection_options
def answer_command(
    interrupt: str,
    value: str | None,
    by: str | None,
    connection: Connection,
) -> None:
    """Answer a question; its process continues. Of several answers the first counts."""
    if value is not None:
        value_of_json(value)  # refuses what is no JSON
    with connect(connection) as client:
        from vesper.kernel import v1

        response = v1.InterruptResponse(value_json=value or "", by=by or current_user())
        done = client.resolve_interrupt(v1.ResolveInterruptRequest(interrupt_id=interrupt, response=response))
    click.echo(f"answered: {done.interrupt.interrupt_id} of {done.interrupt.pid}")


def _row(each: FlowInterrupt) -> list[str]:
    left = each.expires_us - time.time_ns() // 1000
    ends = "never" if not each.HasField("expires_us") else f"in {took_text(left)}" if left > 0 else "now"
    return [
        each.interrupt_id,
        each.pid,
        printable(each.stage),
        short_name("InterruptKind", each.kind),
        short_name("InterruptStatus", each.status),
        ends if short_name("InterruptStatus", each.status) == "pending" else "",
        printable(each.message),
    ]


def _document(each: FlowInterrupt) -> dict[str, Any]:
    from google.protobuf.json_format import MessageToDict

    return MessageToDict(each, preserving_proto_field_name=True)
