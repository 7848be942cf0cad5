"""A contestant of `make bench-agents`: a process that asks questions on command, and times their first chunks.

A line "STREAMS QUESTIONS SEED" on standard input asks so many questions in each of so many streams at once; the answer
is JSON. The overhead of a question is the time to its first chunk without the time that the provider took.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from tests.bench.agents.provider import Pace

SYSTEM = "Answer in one sentence."
MAX_TOKENS = 400
PAUSE_SECONDS = 0.03
KEY = "key-of-a-bench-0123456789"
Ask: TypeAlias = Callable[[str], AsyncIterator[str]]
"""Asks a question; yields the parts of the text of the answer."""
Make: TypeAlias = Callable[[str, str, str], AbstractAsyncContextManager[Ask]]
"""Takes the provider's URL, its protocol and the model."""


class Wrong(Exception):
    """A contestant did not return the answer that the provider sent."""


@dataclass(frozen=True, slots=True)
class Sample:
    """The times of one question, in nanoseconds of one clock."""

    overhead_ms: float
    """Time to the first chunk beyond that of the provider."""
    came_ns: int
    """When the provider had the request."""
    ended_ns: int


async def sample(ask: Ask, question: str, pace: Pace) -> Sample:
    """Ask a question, and check the answer."""
    began = time.monotonic_ns()
    first, parts = 0, []
    async for part in ask(question):
        if part:
            first = first or time.monotonic_ns()
            parts.append(part)
    text = "".join(parts)
    came, sent, tail = [*text.split(" ", 2), "", "", ""][:3]
    if not came or tail.strip() != pace.tail.strip():
        raise Wrong(f"the answer is not that of the provider: {text[:200]!r}")
    overhead_ns = first - began - (int(sent) - int(came))
    return Sample(overhead_ns / 1e6, int(came), time.monotonic_ns())


async def _one_stream(ask: Ask, questions: int, draw: random.Random, pace: Pace) -> list[float]:
    found = []
    for number in range(questions):
        await asyncio.sleep(draw.uniform(0, PAUSE_SECONDS))
        found.append((await sample(ask, f"What is {number}?", pace)).overhead_ms)
    return found


def resident_mib(name: str = "VmRSS") -> float:
    """Return the resident memory of this process, or with `VmHWM` the most that it ever had."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    (line,) = [each for each in status.splitlines() if each.startswith(f"{name}:")]
    return int(line.split()[1]) / 1024


async def _serve(make: Make, url: str, protocol: str, model: str) -> None:
    loop, pace = asyncio.get_running_loop(), Pace.of(model)
    async with make(url, protocol, model) as ask:
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            streams, questions, seed = map(int, line.split())
            spent = time.process_time()
            draws = [random.Random(seed + each) for each in range(streams)]
            found = await asyncio.gather(*(_one_stream(ask, questions, draw, pace) for draw in draws))
            answer = {
                "overheads_ms": [each for row in found for each in row],
                "processor_ms": (time.process_time() - spent) * 1000 / (streams * questions),
                "rss_mib": resident_mib("VmHWM"),
            }
            print(json.dumps(answer), flush=True)


def serve(make: Make) -> None:
    """Answer the lines of standard input; the arguments are the provider's URL, its protocol and the model."""
    asyncio.run(_serve(make, *sys.argv[1:4]))
