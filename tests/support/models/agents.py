"""Agents of tests: a tool, an agent with a history, and one that has this agent as its tool."""

from __future__ import annotations

from pathlib import Path

NODES = {
    "weather_v1": """
node_id: weather_v1
type: function
intent: Tell the weather of a city
inputs:
  city: {type: string, constraints: [non_empty]}
outputs:
  success: {degrees: integer}
flow:
  - {operation: return, success: {degrees: length(city)}}
""",
    "guide_v1": """
node_id: guide_v1
type: agent
intent: Answer questions about cities
inputs:
  question: string
  history: {type: array<json>, default: []}
outputs:
  success: {reply: string}
agent:
  model: main
  system: Be short.
  messages: ["{history}", "{question}"]
  tools: [{node: weather, description: The weather of today}]
security:
  capabilities_required: [models.call.main]
""",
    "desk_v1": """
node_id: desk_v1
type: agent
intent: Hand questions to the guide
inputs: {question: string}
outputs:
  success: {reply: string}
agent:
  model: main
  messages: "{question}"
  tools: [guide]
security:
  capabilities_required: [models.call.main]
""",
}


def write_agents(folder: Path) -> None:
    for name, text in NODES.items():
        (folder / f"{name}.vsp").write_text(text.lstrip(), encoding="utf-8")
