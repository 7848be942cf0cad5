"""The wire format of the Debug Adapter Protocol: a length header, then JSON."""

from __future__ import annotations

import json
from typing import Any, BinaryIO

MAX_BYTES = 16 << 20
"""Maximum bytes of one message; longer ones are refused unread."""
_MAX_HEADER = 4096


class WireError(ValueError):
    """The stream contains no valid message; reading cannot continue."""


def read_message(stream: BinaryIO) -> dict[str, Any] | None:
    """Return the next message; None if the client disconnected, even within a message."""
    length: int | None = None
    while True:
        line = stream.readline(_MAX_HEADER)
        if not line:
            return None
        if not line.endswith(b"\n"):
            raise WireError("a header line is too long")
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
        raise WireError(f"a message is not JSON: {problem}") from None
    if not isinstance(message, dict):
        raise WireError("a message must be a JSON object")
    return message


def write_message(stream: BinaryIO, message: dict[str, Any]) -> None:
    body = json.dumps(message, ensure_ascii=False).encode("utf-8", "replace")  # a lone surrogate cannot be encoded
    stream.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
    stream.flush()
