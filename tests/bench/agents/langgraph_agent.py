"""The task on LangGraph: a graph of one step that calls ChatOpenAI."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from langchain_core.messages import SystemMessage
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, MessagesState, StateGraph

from tests.bench.agents.contestant import KEY, MAX_TOKENS, SYSTEM, Ask, serve


@asynccontextmanager
async def make(url: str, protocol: str, model: str) -> AsyncIterator[Ask]:
    assert protocol == "openai"
    settings: dict[str, Any] = {"base_url": f"{url}/v1", "api_key": KEY, "max_completion_tokens": MAX_TOKENS}
    chat = ChatOpenAI(model=model, stream_usage=True, **settings)

    async def call(state: MessagesState) -> dict[str, object]:
        return {"messages": [await chat.ainvoke([SystemMessage(SYSTEM), *state["messages"]])]}

    graph: Any = StateGraph(MessagesState)
    graph.add_node("model", call)
    graph.add_edge(START, "model")
    graph.add_edge("model", END)
    compiled = graph.compile()

    async def ask(question: str) -> AsyncIterator[str]:
        given = {"messages": [("user", question)]}
        async for part, _ in compiled.astream(given, stream_mode="messages"):
            yield str(part.content)

    yield ask


if __name__ == "__main__":
    serve(make)
