"""`vesper kernel run`: submits a pipeline and shows its events until the end."""

from __future__ import annotations

import json
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vesper.cli.kernel.connection import Connection, connect, connection_options
from vesper.cli.kernel.names import short_name
from vesper.cli.load_node import print_diagnostics
from vesper.cli.options import ReadPath
from vesper.kernel.errors import KernelError
from vesper.values.json_mistake import JsonMistake
from vesper.values.model import printable
from vesper.values.strict_json import forms_of_json

if TYPE_CHECKING:
    from vesper.kernel import Client, v1
    from vesper.kernel.pipelines.file import PipelineFile

_RETRY_SECONDS = 60.0
_PAUSE_SECONDS = 0.5


@click.command("run")
@click.argument("pipeline", type=ReadPath())
@click.option("-i", "--input", "pairs", multiple=True, metavar="NAME=VALUE", help="An input: JSON, or else text.")
@click.option("--user", default="", metavar="NAME", help="The user that the process is for.")
@click.option("--request-id", metavar="TEXT", help="Name of the request; a repeated one joins the process that has it.")
@connection_options
def run(
    pipeline: Path,
    pairs: tuple[str, ...],
    user: str,
    request_id: str | None,
    connection: Connection,
) -> None:
    """Submit PIPELINE, a file NAME.pipeline.yaml, and show its events until it ends.

    Events go to standard error, the outcome as JSON to standard output. While the kernel is away, the command tries
    again for a minute; the process continues without it.

    Exit codes: 0 completed, 1 ended otherwise, refused or unreadable, 2 usage.
    """
    inputs = _inputs(pairs)
    with connect(connection) as client:
        from vesper.kernel import v1

        read = _read(pipeline)
        process = v1.CreateProcessRequest(request_id=request_id or uuid.uuid4().hex, user_id=user, quota=read.quota)
        request = v1.ExecutePipelineRequest(process=process, pipeline=read.config, inputs_json=inputs)
        ended = _follow(client, request)
        click.echo(json.dumps(_document(ended), ensure_ascii=False))
        if ended.process.terminal_reason != v1.TerminalReason.TERMINAL_REASON_COMPLETED:
            raise SystemExit(1)


def _inputs(pairs: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"`{pair}`: write NAME=VALUE", param_hint="--input")
        try:
            forms_of_json(text)
        except (JsonMistake, ValueError):
            text = json.dumps(text)
        found[name] = text
    return found


def _read(path: Path) -> PipelineFile:
    from vesper.kernel.pipelines.file import PipelineRefused, read_pipeline

    try:
        return read_pipeline(path)
    except PipelineRefused as refused:
        print_diagnostics(refused.bag.source, refused.bag.sorted(), "full")
        raise SystemExit(1) from None


def _follow(client: Client, request: v1.ExecutePipelineRequest) -> v1.PipelineEvent:
    """Show the events, and return the last one."""
    from vesper.kernel import v1

    until = time.monotonic() + _RETRY_SECONDS
    while True:
        try:
            for event in client.execute_pipeline(request):
                until = time.monotonic() + _RETRY_SECONDS
                click.echo(_line(event), err=True)
                if event.kind == v1.PipelineEventKind.PIPELINE_EVENT_KIND_ENDED:
                    return event
        except KernelError as error:
            if error.code != "UNAVAILABLE" or time.monotonic() > until:
                raise
        time.sleep(_PAUSE_SECONDS)


def _line(event: v1.PipelineEvent) -> str:
    kind = short_name("PipelineEventKind", event.kind)
    stage = printable(event.stage)
    match kind:
        case "started":
            return f"{event.pid}: started"
        case "stage_started":
            return f"{event.pid}: {stage} started"
        case "stage_ended":
            failure = event.result.failure if event.result.HasField("failure") else None
            failed = "" if failure is None else f" with {printable(failure.code)}: {printable(failure.message)}"
            return f"{event.pid}: {stage} ended{failed}"
        case "interrupted":
            asked = event.interrupt
            kind = short_name("InterruptKind", asked.kind)
            how = f"`vesper kernel interrupts answer {asked.interrupt_id} --value JSON`"
            return f"{event.pid}: {printable(asked.stage)} asks ({kind}): {printable(asked.message)}; {how}"
        case "resumed":
            state, by = short_name("InterruptStatus", event.interrupt.status), printable(event.interrupt.response.by)
            return f"{event.pid}: {printable(event.interrupt.stage)} resumed: {state}{f' by {by}' if by else ''}"
        case _:
            reason, message = (
                short_name("TerminalReason", event.process.terminal_reason),
                event.process.terminal_message,
            )
            return f"{event.pid}: {kind}: {reason}{f': {printable(message)}' if message else ''}"


def _document(event: v1.PipelineEvent) -> dict[str, Any]:
    return {
        "process": event.pid,
        "reason": short_name("TerminalReason", event.process.terminal_reason),
        "message": event.process.terminal_message,
        "stages": [each.stage for each in event.envelope.history],
        "outputs": {name: json.loads(text) for name, text in sorted(event.envelope.outputs_json.items())},
    }
