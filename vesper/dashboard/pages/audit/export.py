"""Download of the audit log, in the bytes of `vesper audit export`."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from typing import BinaryIO, cast

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from vesper.dashboard.action import Role
from vesper.dashboard.page import Context, context_of
from vesper.journal.audit_file import export_audit

_KINDS = {"jsonl": "application/jsonl", "csv": "text/csv; charset=utf-8"}
_CHUNK_BYTES = 1 << 16
_MAX_MEMORY_BYTES = 8 << 20


async def export(request: Request) -> Response:
    """Return the whole log as a file, for operators."""
    context = context_of(request)
    context.caller.require(Role.OPERATOR)
    style = context.choice("format", tuple(_KINDS), "jsonl") or "jsonl"
    file = await run_in_threadpool(_write, context, style)
    headers = {"content-disposition": f'attachment; filename="vesper-audit.{style}"', "cache-control": "no-store"}
    return StreamingResponse(_chunks(file), media_type=_KINDS[style], headers=headers)


def _write(context: Context, style: str) -> BinaryIO:
    """Write the log to a temporary file: a problem becomes a page, never a file that was cut off."""
    with ExitStack() as stack:
        spooled = stack.enter_context(tempfile.SpooledTemporaryFile(_MAX_MEMORY_BYTES))
        file = cast(BinaryIO, spooled)
        export_audit(context.stores.audit, file, style, context.now_us)
        file.seek(0)
        stack.pop_all()
        return file


def _chunks(file: BinaryIO) -> Iterator[bytes]:
    with file:
        while chunk := file.read(_CHUNK_BYTES):
            yield chunk
