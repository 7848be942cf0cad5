"""Fifty watchers of live pages beside a service at half load: what they cost its callers.

    python -m tests.proofs.web.watchers [--turns N] [--seconds S]

Turns with and without watchers alternate, so that a machine that becomes slower does not decide. A watcher does what
a browser does: it holds a stream of events and loads its page again at each.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tests.browser.estate import FAULTY, Bank
from tests.support.servers import free_port
from tests.support.serving import ROOT, Serving

WATCHERS: Final = 50
CALLERS: Final = 4
BAR: Final = 1.05
PAGES: Final = ("/", f"/nodes/{FAULTY}", "/divergences", "/executions", "/journal")
_MIN_INTERVAL_SECONDS: Final = 2.0
"""As in `live.js`."""
_TOPICS: Final = "migration journal"


def _request_body(number: int) -> bytes:
    amount = f"{1 + number * 7 % 90}.{number % 100:02}"
    value = {"amount": amount, "balance": "1000", "currency": "EUR", "country": "DE", "user_age_days": number % 900}
    return json.dumps(value).encode()


def load(port: int, rate: float | None, seconds: float) -> list[float]:
    """Send requests at a rate, or as fast as answers come; return the time of each in seconds."""
    times: list[list[float]] = [[] for _ in range(CALLERS)]
    begin = time.perf_counter() + 0.05
    end = begin + seconds

    def call(caller: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        number = caller
        while True:
            due = begin + number / rate if rate else time.perf_counter()
            if due >= end:
                break
            time.sleep(max(0.0, due - time.perf_counter()))
            connection.request("POST", f"/nodes/{FAULTY}", _request_body(number), {"Content-Type": "application/json"})
            response = connection.getresponse()
            response.read()
            assert response.status == 200, response.status
            times[caller].append(time.perf_counter() - due)
            number += CALLERS
        connection.close()

    threads = [threading.Thread(target=call, args=(each,)) for each in range(CALLERS)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return [each for part in times for each in part]


@contextmanager
def watching(port: int) -> Iterator[dict[str, int]]:
    """Hold the streams of all watchers meanwhile, in a process of its own; count pages and bytes at the end."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.proofs.web.watchers", "--watch", str(port)],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    found: dict[str, int] = {}
    try:
        yield found
    finally:
        output, _ = process.communicate("\n")
        found.update(json.loads(output))


def watch(port: int) -> None:
    """Be all watchers until a line comes. They stand for other machines, so they give way to the service."""
    os.nice(19)
    import asyncio

    counts = {"pages": 0, "bytes": 0, "events": 0}

    async def fetch(path: str, is_live: bool = True) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        live = "X-Live: 1\r\n" if is_live else ""
        writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{live}Connection: close\r\n\r\n".encode())
        answer = await reader.read(-1)
        assert b" 200 " in answer[:20], answer[:200]
        counts["pages"] += 1
        counts["bytes"] += len(answer)
        writer.close()

    async def hold(path: str) -> None:
        await fetch(path, is_live=False)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        topics = _TOPICS.replace(" ", "+")
        writer.write(f"GET /events?topics={topics} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
        due = 0.0
        while line := await reader.readline():
            if line.startswith(b"data:"):
                counts["events"] += 1
                if asyncio.get_running_loop().time() >= due:
                    due = asyncio.get_running_loop().time() + _MIN_INTERVAL_SECONDS
                    await fetch(path)

    async def run() -> None:
        tasks = [asyncio.create_task(hold(PAGES[each % len(PAGES)])) for each in range(WATCHERS)]
        await asyncio.sleep(1)
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        for each in tasks:
            if each.done():
                each.result()
            each.cancel()

    asyncio.run(run())
    print(json.dumps(counts))


def p99_ms(times: Sequence[float]) -> float:
    return statistics.quantiles(times, n=100)[98] * 1000


def measure(turns: int, seconds: float) -> dict[str, Any]:
    with Bank() as bank, tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "project"
        subprocess.run([sys.executable, "-m", "tests.browser.estate", str(folder), bank.url], cwd=ROOT, check=True)
        board = free_port()
        command = [sys.executable, "-m", "vesper", "serve", "--port", "{port}", "--dashboard", str(board)]
        with Serving(command, "/livez", folder) as service:
            capacity = len(load(service.port, None, seconds)) / seconds
            rate = capacity / 2
            pairs: list[tuple[float, float]] = []
            counts: dict[str, int] = {}
            for _ in range(turns):
                alone = p99_ms(load(service.port, rate, seconds))
                with watching(board) as found:
                    watched = p99_ms(load(service.port, rate, seconds))
                counts = {name: counts.get(name, 0) + value for name, value in found.items()}
                pairs.append((alone, watched))
    return {
        "watchers": WATCHERS,
        "requests_per_second": round(rate),
        "pages_per_second": round(counts["pages"] / (turns * seconds), 1),
        "bytes_per_page": counts["bytes"] // max(1, counts["pages"]),
        "p99_ms": [[round(a, 3), round(b, 3)] for a, b in pairs],
        "ratio": round(statistics.median(b for _, b in pairs) / statistics.median(a for a, _ in pairs), 3),
        "bar": BAR,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--watch", type=int, metavar="PORT", help="be the watchers of a dashboard; used by the proof")
    options = parser.parse_args()
    if options.watch is not None:
        watch(options.watch)
        return
    found = measure(options.turns, options.seconds)
    print(json.dumps(found))
    if found["ratio"] > BAR:
        sys.exit(f"the watchers cost the callers {found['ratio'] - 1:.1%} of their p99, more than {BAR - 1:.0%}")


if __name__ == "__main__":
    main()
