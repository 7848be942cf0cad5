"""The task on Pydantic AI."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pydantic_ai import Agent
from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings

from tests.bench.agents.contestant import KEY, MAX_TOKENS, SYSTEM, Ask, serve


def _model(url: str, protocol: str, model: str) -> Model:
    """Return the model; only the package of its protocol is loaded."""
    if protocol == "openai":
        from pydantic_ai.models.openai import OpenAIChatModel
        from pydantic_ai.providers.openai import OpenAIProvider

        return OpenAIChatModel(model, provider=OpenAIProvider(base_url=f"{url}/v1", api_key=KEY))
    from anthropic import AsyncAnthropic
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    client = AsyncAnthropic(base_url=url, api_key=KEY)
    return AnthropicModel(model, provider=AnthropicProvider(anthropic_client=client))


@asynccontextmanager
async def make(url: str, protocol: str, model: str) -> AsyncIterator[Ask]:
    settings = ModelSettings(max_tokens=MAX_TOKENS)
    agent = Agent(_model(url, protocol, model), instructions=SYSTEM, model_settings=settings)

    async def ask(question: str) -> AsyncIterator[str]:
        async with agent.run_stream(question) as answer:
            async for text in answer.stream_text(delta=True, debounce_by=None):
                yield text

    yield ask


if __name__ == "__main__":
    serve(make)
