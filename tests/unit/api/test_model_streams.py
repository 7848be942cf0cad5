"""Streams of a model on a loopback server: chunks before the end, and cancellation at random moments."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.models.replies import Asked, Fault, Reply
from tests.support.models.server import ModelServer
from tests.support.waiting import eventually
from tests.unit.host.small import host_in, node_from
from vesper.api.node import Node

STORY = """
node_id: story_v1
type: event_handler
intent: Ask a model for a story, and for a title of it.
security:
  capabilities_required: [models.call.main]
inputs:
  event_id: string
outputs:
  success: {story: json, title: json}
flow:
  - step: story
    operation: ask_model
    model: main
    request: {messages: [{role: user, content: "Tell a story."}], max_tokens: 1000}
  - step: title
    operation: ask_model
    model: main
    request: {messages: [{role: user, content: "Name it."}], max_tokens: 100}
  - {operation: return, success: [story, title]}
"""
TEXT = "Once upon a time there was a river, and it ran to the sea. " * 2


def tell(asked: Asked) -> Reply:
    return Reply(TEXT if "story" in asked.texts[-1] else "River", pause=0.01)


def settings_of(server: ModelServer) -> dict[str, object]:
    model = {"api": "ollama", "model": "llama3", "base_url": server.url, "allow_private_addresses": True}
    return {"models": {"main": model}}


@pytest.fixture
def story(tmp_path: Path) -> Iterator[tuple[ModelServer, Node]]:
    with ModelServer(tell) as server, host_in(tmp_path, settings_of(server)) as host:
        yield server, node_from(STORY, tmp_path, host)


def test_chunks_arrive_before_the_answer_has_ended(story: tuple[ModelServer, Node]) -> None:
    async def read() -> None:
        found = ""
        first = None
        began = time.monotonic()
        stream = story[1].stream(event_id="e")
        async for event in stream:
            if event.kind == "text" and event.path == "story":
                first = first or time.monotonic() - began
                found += event.text
        outcome = await stream.result()
        assert found == TEXT == outcome.story["text"]
        assert first is not None
        assert first < (time.monotonic() - began) / 2

    asyncio.run(read())


def test_a_call_that_nobody_follows_is_not_streamed(story: tuple[ModelServer, Node]) -> None:
    server, node = story
    assert node(event_id="e").story["text"] == TEXT
    assert [each.is_streamed for each in server.asked] == [False, False]


def test_a_run_that_is_cancelled_at_a_random_moment_asks_nothing_more(story: tuple[ModelServer, Node]) -> None:
    server, node = story
    draw = random.Random(61)

    async def cancel(after: float) -> float:
        stream = node.stream(event_id="e")

        async def read() -> None:
            async for _ in stream:
                pass

        task = asyncio.create_task(read())
        await asyncio.sleep(after)
        stopped_at = time.monotonic()
        task.cancel()
        await asyncio.wait({task})
        await stream.aclose()
        return time.monotonic() - stopped_at

    for _ in range(8):
        assert asyncio.run(cancel(draw.uniform(0, 0.25))) < 0.5
        asked = len(server.asked)
        time.sleep(0.02)
        assert len(server.asked) == asked
    eventually(lambda: not node.host._active)


def test_a_coroutine_that_is_cancelled_closes_the_connection(tmp_path: Path) -> None:
    def silent(asked: Asked) -> Fault:
        return Fault(is_silent=True)

    with ModelServer(silent) as server, host_in(tmp_path, settings_of(server)) as host:
        node = node_from(STORY, tmp_path, host)

        async def cancel() -> None:
            run = asyncio.create_task(node.arun(event_id="e"))
            await asyncio.to_thread(eventually, lambda: bool(server.asked))
            run.cancel()
            with pytest.raises(asyncio.CancelledError):
                await run

        asyncio.run(cancel())
        eventually(lambda: not host._active, 10)  # the server holds its answer back for a minute
        assert len(server.asked) == 1
