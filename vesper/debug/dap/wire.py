"""The wire of the Debug Adapter Protocol: a header with the length, then JSON. Nothing here knows what it means."""

from __future__ import annotations

import json
from typing import Any, BinaryIO

MAX_BYTES = 16 << 20
"""Of one message: more is refused before it is read."""
_MAX_HEADER = 4096


class WireError(ValueError):
    """What came is no message of the protocol; nothing more can be read."""


def read_message(stream: BinaryIO) -> dict[str, Any] | None:
    """The next message; None where the client has gone, in the middle of one too."""
    length: int | None = None
    while True:
        line = stream.readline(_MAX_HEADER)
        if not line:
            return None
        if not line.endswith(b"\n"):
            raise WireError("a line of a header is too long")
        text = line.strip()
        if not text:
            break
        name, _, value = text.partition(b":")
        if name.strip().lower() == b"content-length":
            if not value.strip().isdigit():
                raise WireError(f"Content-Length is a number of bytes, not {value.strip()[:40]!r}")
            length = int(value)
    if length is None:
        raise WireError("a message begins with `Content-Length: N` and an empty line")
    if length > MAX_BYTES:
        raise WireError(f"a message of {length:,} bytes is too large; {MAX_BYTES:,} at most")
    body = stream.read(length)
    if len(body) < length:
        return None
    try:
        message = json.loads(body)
    except (ValueError, RecursionError) as problem:
        raise WireError(f"a message is no JSON: {problem}") from None
    if not isinstance(message, dict):
        raise WireError("a message is a JSON object")
    return message


def write_message(stream: BinaryIO, message: dict[str, Any]) -> None:
    body = json.dumps(message, ensure_ascii=False).encode("utf-8", "replace")  # half a surrogate pair is no text
    stream.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
    stream.flush()
