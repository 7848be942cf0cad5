"""Nodes that ask a model inside budgets, and a Host with a model on loopback."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.models.replies import Asked, Fault, Reply
from tests.support.models.server import ModelServer
from tests.unit.host.small import host_in
from vesper.host.host import Host

PRICES = {"input": "10", "output": "20"}
"""Dollars for a million tokens."""
COST = "0.002"
"""Of 100 tokens of input and 50 of output."""
TOKENS = 150


def reply(asked: Asked) -> Reply:
    return Reply("fine", input_tokens=100, output_tokens=50)


def busy(asked: Asked) -> Fault:
    return Fault(429)


def silent(asked: Asked) -> Fault:
    return Fault(is_silent=True)


def node_text(policies: str = "", step: str = "", steps: int = 1, more: str = "") -> str:
    """Return a node with steps that ask the model `main`, one after the other."""
    asking = "\n".join(
        f"""  - step: ask{number}
    operation: ask_model
    model: main
    request: {{messages: [{{role: user, content: "{{event_id}}"}}], max_tokens: 50}}
    timeout: 5s
{step}"""
        for number in range(steps)
    )
    return f"""
node_id: asking_v1
type: event_handler
intent: Ask a model.
security:
  capabilities_required: [models.call.main]
inputs:
  event_id: string
outputs:
  success: {{answer: json}}
{policies}
flow:
{asking}
{more}
  - operation: return
    success: {{answer: ask{steps - 1}}}
"""


def budget_host(folder: Path, server: ModelServer, **settings: Any) -> Host:
    model = {
        "api": "ollama",
        "model": "llama3",
        "base_url": server.url,
        "allow_private_addresses": True,
        "prices": PRICES,
        "context": 100_000,
        "max_output": 1000,
    }
    return host_in(folder, {"models": {"main": model}, **settings})
