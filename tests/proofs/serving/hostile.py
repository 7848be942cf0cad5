"""A client that misbehaves on purpose: raw bytes over asyncio, and a neighbour that must not notice."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import socket
import struct
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from tests.proofs.serving.attacks import BODY, PATH, Attack, post

_STATUS = re.compile(rb"HTTP/1\.1 ([1-5][0-9][0-9])[ \r]")
ANSWER_SECONDS = 30.0


@dataclass(frozen=True)
class Talk:
    """What came back on a connection."""

    data: bytes
    is_closed: bool

    @property
    def statuses(self) -> list[int]:
        """Statuses of the final answers."""
        return [status for each in _STATUS.findall(self.data) if (status := int(each)) >= 200]


async def talk(port: int, pieces: Sequence[bytes], seconds: float, pause: float = 0.0, ends: str = "read") -> Talk:
    """Send the pieces, then read until the server closes or `seconds` have passed.

    `ends` is "read", "half" (the client's side is closed after the last piece) or "reset" (nothing is read).
    """
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    found = bytearray()
    is_closed = False
    try:
        # The server may answer and close before all was sent.
        with contextlib.suppress(OSError):
            for piece in pieces:
                writer.write(piece)
                await asyncio.wait_for(writer.drain(), ANSWER_SECONDS)
                if pause:
                    await asyncio.sleep(pause)
            if ends == "half" and writer.can_write_eof():
                writer.write_eof()
        if ends == "reset":
            sock: socket.socket = writer.get_extra_info("socket")
            with contextlib.suppress(OSError):
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return Talk(b"", True)
        with contextlib.suppress(TimeoutError, ConnectionError):
            async with asyncio.timeout(seconds):
                while part := await reader.read(1 << 16):
                    found += part
        is_closed = reader.at_eof() or reader.exception() is not None
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError, TimeoutError):
            await asyncio.wait_for(writer.wait_closed(), ANSWER_SECONDS)
    return Talk(bytes(found), is_closed)


async def attack_problem(port: int, attack: Attack) -> str | None:
    """Send one attack; return what is wrong with the answer, if anything."""
    found = await talk(port, [attack.data], seconds=3.0)
    if not found.is_closed and not found.statuses:
        found = await talk(port, [attack.data], seconds=ANSWER_SECONDS)  # until a timeout of the server
    shown = f"{attack.name}: {found.data[:200]!r}"
    if not found.statuses:
        return None if found.is_closed else f"{attack.name}: neither answered nor closed"
    if found.statuses[0] not in attack.statuses:
        return f"{shown}: not one of {sorted(attack.statuses)}"
    if attack.is_second_forbidden and len(found.statuses) > 1:
        return f"{shown}: a second answer"
    return None


@dataclass
class Neighbour:
    """A proper client beside the others: a request every 50 ms, each on a new connection."""

    port: int
    requests: int = 0
    longest_ms: float = 0.0
    problems: list[str] = field(default_factory=list)

    async def once(self) -> None:
        begun = time.monotonic()
        self.requests += 1
        try:
            found = await talk(self.port, [post("Connection: close", body=BODY)], ANSWER_SECONDS)
        except OSError as problem:
            self.problems.append(f"{type(problem).__name__}: {problem}")
            return
        self.longest_ms = max(self.longest_ms, (time.monotonic() - begun) * 1e3)
        head, _, body = found.data.partition(b"\r\n\r\n")
        if found.statuses != [200] or json.loads(body).get("decision") != "approve":
            self.problems.append(f"{PATH}: {head[:100]!r} {body[:200]!r}")

    @asynccontextmanager
    async def beside(self) -> AsyncIterator[None]:
        # Not ended by a cancellation: `asyncio.wait_for` of Python 3.11 loses one that arrives with its result.
        is_over = asyncio.Event()

        async def run() -> None:
            while not is_over.is_set():
                await self.once()
                await asyncio.sleep(0.05)

        task = asyncio.create_task(run())
        try:
            yield
        finally:
            is_over.set()
            await task
            await self.once()


async def drip(port: int, start: bytes, drop: bytes, pause: float, seconds: float) -> bool:
    """Send a start, then a drop at each pause; return whether the server ended it within `seconds`."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    until = time.monotonic() + seconds
    try:
        writer.write(start)
        while time.monotonic() < until:
            writer.write(drop)
            with contextlib.suppress(TimeoutError):
                # An answer such as 408 may come before the end.
                while await asyncio.wait_for(reader.read(1 << 16), pause):
                    pass
                return True
        return False
    except ConnectionError:
        return True
    finally:
        writer.close()


async def never_read(port: int, request: bytes, times: int, seconds: float) -> bool:
    """Send many requests without reading; return whether the server ended the connection within `seconds`."""
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(sock, ("127.0.0.1", port))
        until = time.monotonic() + seconds
        left = request * times
        while time.monotonic() < until:
            try:
                left = left[sock.send(left[: 1 << 16]) :] if left else left
                if sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) or _is_reset(sock):
                    return True
            except BlockingIOError:
                pass
            except ConnectionError:
                return True
            await asyncio.sleep(0.05)
    return False


def _is_reset(sock: socket.socket) -> bool:
    """Return True where the peer has ended the connection (TCP_INFO: every state but ESTABLISHED)."""
    return sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1) != b"\x01"


async def hold(port: int, count: int) -> list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Open connections that each have had one answer; return those that are open."""
    gate = asyncio.Semaphore(100)

    async def one() -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        async with gate:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
            async with asyncio.timeout(ANSWER_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
            if head.startswith(b"HTTP/1.1 200"):
                return reader, writer
            writer.close()
            return None

    found = await asyncio.gather(*(one() for _ in range(count)))
    return [each for each in found if each is not None]
