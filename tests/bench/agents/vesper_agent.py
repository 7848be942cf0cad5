"""The task on Vesper: an agent without tools, on a Host with a journal in SQLite."""

from __future__ import annotations

import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import vesper
from tests.bench.agents.contestant import KEY, MAX_TOKENS, SYSTEM, Ask, serve
from vesper.agents import Agent
from vesper.config.settings import config_from
from vesper.host.host import Host

NODE = f"""\
node_id: teller_v1
type: agent
intent: Tell what a model says
inputs: {{question: string}}
outputs:
  success: {{reply: string}}
agent:
  model: main
  system: {SYSTEM}
  messages: "{{question}}"
  max_tokens: {MAX_TOKENS}
security:
  capabilities_required: [models.call.main]
"""


def load(url: str, protocol: str, model: str, folder: Path, streams: int = 64) -> Agent:
    """Return the agent on the engine that `VESPER_BENCH_ENGINE` names; its Host is `agent.node.host`."""
    os.environ["VESPER_SECRET_BENCH_KEY"] = KEY
    settings = {
        "api": protocol, "model": model, "base_url": f"{url}/v1" if protocol == "openai" else url,
        "key_secret": "bench_key", "allow_private_addresses": True, "allow_http": True,
        "prices": {"input": "1", "output": "2"}, "max_connections": streams,
    }  # fmt: skip
    values = {
        "journal": {"dsn": f"sqlite:{folder / 'journal.db'}"},
        "grants": [{"nodes": ["*"], "allow": ["models.call.main", "secrets.read.bench_key"]}],
        "models": {"main": settings},
    }
    path = folder / "teller_v1.vsp"
    path.write_text(NODE, encoding="ascii")
    engine = os.environ.get("VESPER_BENCH_ENGINE", "interp")
    return Agent(vesper.load(path, host=Host(config_from(values, folder)), engine=engine))


async def texts(agent: Agent, question: str) -> AsyncIterator[str]:
    stream = agent.stream(question=question)
    async for event in stream:
        if event.kind == "text":
            yield event.text
    (await stream.result()).unwrap()


@asynccontextmanager
async def make(url: str, protocol: str, model: str) -> AsyncIterator[Ask]:
    with tempfile.TemporaryDirectory() as folder:
        agent = load(url, protocol, model, Path(folder))
        yield lambda question: texts(agent, question)
        agent.node.host.close()


if __name__ == "__main__":
    serve(make)
