"""The control: a socket, a request as text, and the `data:` lines of what comes back."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from tests.bench.agents.contestant import MAX_TOKENS, SYSTEM, Ask, serve
from tests.bench.agents.provider import Anthropic, OpenAi


def _request(protocol: str, model: str, question: str) -> bytes:
    asked = {"role": "user", "content": question}
    body: dict[str, object] = {"model": model, "max_tokens": MAX_TOKENS, "stream": True, "messages": [asked]}
    if protocol == "openai":
        path, body["messages"] = OpenAi.PATH, [{"role": "system", "content": SYSTEM}, asked]
    else:
        path, body["system"] = Anthropic.PATH, SYSTEM
    data = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: loopback\r\nContent-Type: application/json\r\nContent-Length: {len(data)}"
    return f"{head}\r\n\r\n".encode() + data


def _texts(data: bytes) -> list[str]:
    """Return the texts of the whole chunks in some bytes."""
    found = []
    for line in data.split(b"\n"):
        if b'"content":' in line or b'"text_delta"' in line:
            value = json.loads(line.removeprefix(b"data: "))
            choices = value.get("choices")
            found.append(
                choices[0]["delta"].get("content") or "" if choices else value.get("delta", {}).get("text", "")
            )
    return found


@asynccontextmanager
async def make(url: str, protocol: str, model: str) -> AsyncIterator[Ask]:
    loop, idle = asyncio.get_running_loop(), list[socket.socket]()
    address = urlsplit(url)

    async def connect() -> socket.socket:
        connection = socket.socket()
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await loop.sock_connect(connection, (str(address.hostname), int(address.port or 0)))
        return connection

    async def ask(question: str) -> AsyncIterator[str]:
        connection = idle.pop() if idle else await connect()
        await loop.sock_sendall(connection, _request(protocol, model, question))
        rest = b""
        while not rest.endswith(b"0\r\n\r\n"):
            rest += await loop.sock_recv(connection, 65_536)
            whole, mark, after = rest.rpartition(b"\n\n")
            for text in _texts(whole + mark):
                yield text
            rest = after
        idle.append(connection)

    yield ask
    for each in idle:
        each.close()


if __name__ == "__main__":
    serve(make)
