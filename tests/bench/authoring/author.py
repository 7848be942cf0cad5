"""A model as an author: a node of our own asks it, and diagnostics go back to it until an attempt is valid."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import vesper
from tests.bench.authoring.tasks import Task, Verdict, judge
from vesper.api.node import Node
from vesper.host.host import Host
from vesper.mcp.author.search import guide

MAX_TOKENS = 4_000
"""Tokens of one answer."""
ROLE = "You write Vesper nodes. Answer with one complete .vsp file in a ```yaml block, with at least two cases."
_NODE = """\
node_id: author_turn_v1
type: data_transform
intent: Continue a conversation with the author of a node
inputs: {{system: string, messages: array<json>}}
outputs: {{success: {{reply: json}}}}
flow:
  - step: reply
    operation: ask_model
    model: {model}
    request: {{system: "{{system}}", messages: "{{messages}}", max_tokens: {max_tokens}}}
    timeout: 5m
    retry: {{attempts: 4, on: [rate_limit, overloaded, timeout], backoff: {{base: 1s, factor: 2, max: 30s}}}}
  - return: {{reply: reply}}
security:
  capabilities_required: [models.call.{model}]
"""
_BLOCK = re.compile(r"```(?:ya?ml|vsp)?[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)


@dataclass
class Result:
    """What one task took, and whether it is solved."""

    task: Task
    attempts: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: Decimal = Decimal(0)
    verdict: Verdict = field(default_factory=lambda: Verdict(False, "no attempt was made"))
    problem: str | None = None
    """Why the model could not be asked."""


class Author:
    """A configured model."""

    def __init__(self, host: Host, model: str, folder: Path) -> None:
        """`folder` gets the node that asks the model; `host` grants it `models.call.MODEL`."""
        path = folder / "author_turn_v1.vsp"
        path.write_text(_NODE.format(model=model, max_tokens=MAX_TOKENS), encoding="utf-8")
        self._node: Node = vesper.load(path, host=host)
        self._system = f"{ROLE}\n\n{guide()}"

    def work(self, task: Task, tries: int) -> Result:
        """Give a task to the model: at most `tries` attempts, each with the diagnostics of the one before."""
        result = Result(task)
        messages: list[dict[str, Any]] = [{"role": "user", "content": task.prompt()}]
        while result.attempts < tries:
            outcome = self._node(system=self._system, messages=messages)
            if not outcome.ok:
                assert outcome.error is not None
                result.problem = outcome.error.message
                break
            reply = outcome.unwrap()["reply"]
            result.attempts += 1
            _count(result, reply)
            result.verdict = judge(task, node_of(reply["text"]))
            if result.verdict.report is None:
                break
            messages += [
                {"role": "assistant", "content": reply["text"] or "(nothing)"},
                {"role": "user", "content": f"vesper check:\n\n{result.verdict.report}\n\nWrite the whole file again."},
            ]
        return result


def node_of(answer: str) -> str:
    """Return the node in an answer: the last block that declares one, else the whole answer."""
    blocks = [each for each in _BLOCK.findall(answer) if "node_id:" in each]
    return str(blocks[-1]) if blocks else answer


def _count(result: Result, reply: dict[str, Any]) -> None:
    usage = reply["usage"]
    result.input_tokens += int(usage["input_tokens"])
    result.output_tokens += int(usage["output_tokens"])
    result.cost += Decimal(str(reply["cost_usd"]))


def lines_of(results: list[Result]) -> Iterator[str]:
    """Yield a line for each task, and the sums."""
    row = "{:<20} {:<8} {:>8} {:>10} {:>10} {:>12}  {}"
    yield row.format("task", "", "attempts", "input", "output", "USD", "")
    for each in results:
        why = each.problem or ", ".join(each.verdict.failed) or (each.verdict.report or "").partition("\n")[0]
        state = "solved" if each.verdict.is_solved else "failed"
        tokens = (f"{each.input_tokens:,}", f"{each.output_tokens:,}")
        yield row.format(each.task.name, state, each.attempts, *tokens, f"{each.cost:.6f}", why).rstrip()
    solved = sum(each.verdict.is_solved for each in results)
    first = sum(each.verdict.is_solved and each.attempts == 1 for each in results)
    tokens = (f"{sum(r.input_tokens for r in results):,}", f"{sum(r.output_tokens for r in results):,}")
    attempts = sum(r.attempts for r in results)
    cost = f"{sum((r.cost for r in results), Decimal(0)):.6f}"
    yield row.format(f"{solved} of {len(results)}", "solved", attempts, *tokens, cost, f"{first} at the first attempt")
