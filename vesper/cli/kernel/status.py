"""`vesper kernel status`: processes, services and questions of a kernel, or one process."""

from __future__ import annotations

from typing import Any

import click

from vesper.cli.journal.text import table
from vesper.cli.kernel.connection import Connection, connect, connection_options
from vesper.cli.kernel.names import short_name
from vesper.cli.options import style_option
from vesper.cli.output.outcomes import json_text
from vesper.journal.moments import number, took_text
from vesper.values.model import printable


@click.command("status")
@click.argument("process", required=False)
@style_option
@connection_options
def status(process: str | None, style: str, connection: Connection) -> None:
    """Show the kernel, or one PROCESS with its envelope."""

    with connect(connection) as client:
        from google.protobuf.json_format import MessageToDict

        from vesper.kernel import v1

        def document(message: Any) -> Any:
            return MessageToDict(message, preserving_proto_field_name=True)

        if process is not None:
            found = client.get_request_status(v1.GetRequestStatusRequest(pid=process))
            click.echo(json_text(document(found)))
            return
        system = client.get_system_status(v1.GetSystemStatusRequest())
        services = client.list_services(v1.ListServicesRequest()).services
        if style == "json":
            click.echo(json_text({**document(system), "services": [document(each) for each in services]}))
            return
    counts = ", ".join(f"{count} {state}" for state, count in sorted(system.process_counts.items()))
    click.echo(f"kernel up {took_text(system.uptime_us)}{', draining' if system.draining else ''}")
    click.echo(f"processes: {counts or 'none'}")
    click.echo(
        f"{number(system.pending_interrupts, 'pending interrupt')}, {number(system.bus.queued, 'queued message')}"
    )
    if services:
        rows = [["service", "type", "status", "workers", "load"]]
        for each in services:
            kind, state = short_name("ServiceType", each.type), short_name("ServiceStatus", each.status)
            rows.append(
                [printable(each.name), kind, state, str(each.workers), f"{each.current_load}/{each.max_concurrent}"]
            )
        click.echo("\n".join(table(rows)))
