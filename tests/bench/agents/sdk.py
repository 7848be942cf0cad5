"""The task on the official SDKs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from anthropic import AsyncAnthropic
from openai import AsyncOpenAI

from tests.bench.agents.contestant import KEY, MAX_TOKENS, SYSTEM, Ask, serve


@asynccontextmanager
async def make(url: str, protocol: str, model: str) -> AsyncIterator[Ask]:
    if protocol == "openai":
        async with AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY) as client:
            yield lambda question: _from_openai(client, model, question)
    else:
        async with AsyncAnthropic(base_url=url, api_key=KEY) as client:
            yield lambda question: _from_anthropic(client, model, question)


async def _from_openai(client: AsyncOpenAI, model: str, question: str) -> AsyncIterator[str]:
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": question}]
    stream = await client.chat.completions.create(
        model=model,
        messages=messages,
        max_completion_tokens=MAX_TOKENS,
        stream=True,
        stream_options={"include_usage": True},
    )
    async for chunk in stream:
        if chunk.choices:
            yield chunk.choices[0].delta.content or ""


async def _from_anthropic(client: AsyncAnthropic, model: str, question: str) -> AsyncIterator[str]:
    stream = await client.messages.create(
        model=model,
        system=SYSTEM,
        messages=[{"role": "user", "content": question}],
        max_tokens=MAX_TOKENS,
        stream=True,
    )
    async for event in stream:
        if event.type == "content_block_delta" and event.delta.type == "text_delta":
            yield event.delta.text


if __name__ == "__main__":
    serve(make)
