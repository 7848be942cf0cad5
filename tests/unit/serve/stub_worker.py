"""A worker without nodes: speaks the messages of `vesper.serve.control`, and answers each request with its pid.

`GET /crash` ends it, `GET /slow` takes half a second. A file `fails` in the working directory lets starts and reloads
fail; its text is the reason.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
import time
from pathlib import Path

from vesper.serve.control import Channel


def answer(connection: socket.socket) -> None:
    with connection:
        request = connection.recv(4096).split(b" ")
        if b"/crash" in request:
            os._exit(7)
        if b"/slow" in request:
            time.sleep(0.5)
        body = str(os.getpid()).encode()
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(body), body))


def accept_all(listener: socket.socket) -> None:
    while True:
        try:
            answer(listener.accept()[0])
        except BlockingIOError:
            return


def main() -> None:
    listener, channel = socket.socket(fileno=int(sys.argv[1])), Channel(socket.socket(fileno=int(sys.argv[2])))
    listener.setblocking(False)
    ending: list[int] = []
    wakes, waking = socket.socketpair()
    waking.setblocking(False)
    signal.set_wakeup_fd(waking.fileno())
    signal.signal(signal.SIGTERM, lambda number, _: ending.append(number))
    fails = Path("fails")
    if fails.exists():
        channel.send(kind="failed", why=fails.read_text())
        sys.exit(1)
    channel.send(kind="ready", nodes=3)
    while not ending:
        ready, _, _ = select.select([each.fileno() for each in (listener, channel, wakes)], [], [])
        if listener.fileno() in ready:
            accept_all(listener)
        if channel.fileno() in ready:
            messages = channel.receive()
            if messages is None:
                break
            for _ in messages:
                if fails.exists():
                    channel.send(kind="kept", why=fails.read_text())
                else:
                    channel.send(kind="loaded", nodes=4)
    accept_all(listener)


main()
