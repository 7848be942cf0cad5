"""`make proof-costs`: no random agent spends more than `vesper nodes cost` computes before it runs.

Each node is drawn: turns, attempts, repairs, tools, fallback models, budgets, and flows that ask agents in loops,
branches and budgets. The models are on a loopback server that answers, calls tools, misses the form, refuses, fails
before and after it has charged, and charges as much as a request can cost. What the server counted is compared with
the computed worst case: requests, tokens and money.
"""

from __future__ import annotations

import argparse
import json
import logging
import random
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT))

from tests.proofs.robustness.proof import PROOFS, engine_hash, whole_hash, write_json  # noqa: E402  # after the path is set
from tests.support.models.replies import Asked, Fault, Reply, filled  # noqa: E402
from tests.support.models.server import ModelServer  # noqa: E402
from tests.unit.host.small import compiled_in, host_in  # noqa: E402
from vesper.api.node import Node  # noqa: E402
from vesper.cli.nodes.cost import terms_of  # noqa: E402
from vesper.config.settings import config_from  # noqa: E402
from vesper.engines.model_cost import INFINITE, Cost, CostReport, cost_of  # noqa: E402
from vesper.engines.registry import ENGINES  # noqa: E402

NAME = "costs"
NODES = 500
CONTEXT = 24_000
PRICES = {"big": ("3", "15"), "small": ("0.25", "2")}
_MILLION = Decimal(1_000_000)

TOOL = """\
node_id: look_up_v1
type: function
intent: Look something up
inputs: {key: {type: string, constraints: [{max_length: 40}]}}
outputs: {success: {found: string}}
flow:
  - return: {found: "'found ' + key"}
"""
ADVISOR = """\
node_id: advisor_v1
type: agent
intent: Give advice
inputs: {question: {type: string, constraints: [{max_length: 200}]}}
outputs: {success: {advice: string}}
agent:
  model: small
  messages: "{question}"
  max_tokens: 120
  max_turns: 2
  retry: {attempts: 2, on: [overloaded, unavailable], backoff: {base: 1ms}}
  circuit_breaker: {failures: 1000, within: 1s, open_for: 1ms}
security: {capabilities_required: [models.call.small]}
"""


# -- nodes ----------------------------------------------------------------------------------------


def draw_agent(draw: random.Random, name: str) -> str:
    """Return the text of a random agent."""
    tools = draw.sample(["look_up", "advisor"], draw.randint(0, 2))
    outputs = draw.choice(["text: string", 'count: integer, mood: "enum[good, bad]"'])
    codes = draw.sample(["overloaded", "unavailable", "rate_limit"], draw.randint(1, 3))
    needed = {"models.call.big"} | ({"models.call.small"} if "advisor" in tools else set())
    lines = [
        f"node_id: {name}",
        "type: agent",
        "intent: Answer a question",
        "inputs: {question: {type: string, constraints: [{max_length: 300}]}}",
        f"outputs: {{success: {{{outputs}}}}}",
        "agent:",
        "  model: big",
        "  system: You answer questions.",
        '  messages: "{question}"',
        f"  tools: [{', '.join(tools)}]" if tools else "",
        f"  max_tokens: {draw.choice([20, 100, 700])}",
        f"  max_turns: {draw.randint(1, 5)}",
        f"  repairs: {draw.randint(0, 3)}",
        f"  retry: {{attempts: {draw.randint(1, 4)}, on: [{', '.join(codes)}], backoff: {{base: 1ms}}}}",
        "  circuit_breaker: {failures: 1000, within: 1s, open_for: 1ms}",
        f"  {draw_budget(draw)}" if draw.random() < 0.5 else "",
        f"security: {{capabilities_required: [{', '.join(sorted(needed))}]}}",
    ]
    return "\n".join(line for line in lines if line) + "\n"


def draw_budget(draw: random.Random) -> str:
    limits = draw.sample(
        [f"usd: {Decimal(draw.randint(1, 900)) / 1000}", f"tokens: {draw.randint(2_000, 60_000)}",
         f"calls: {draw.randint(1, 12)}"],
        draw.randint(1, 3),
    )  # fmt: skip
    return f"budget: {{{', '.join(limits)}}}"


def draw_flow(draw: random.Random, name: str, agent: str, outputs: str) -> str:
    """Return the text of a workflow around an agent: a bounded loop, a branch, a question, in a budget or not.

    `outputs` is the value of the agent where it fails.
    """
    ask = [
        "operation: ask_agent",
        f"agent: {agent}",
        'message: "{question}"',
        draw_budget(draw) if draw.random() < 0.5 else "",
    ]
    question = [
        "operation: ask_model",
        f"model: {draw.choice(['big', 'small'])}",
        'request: {messages: [{role: user, content: "{question}"}], max_tokens: 60}',
        draw_budget(draw) if draw.random() < 0.3 else "",
    ]
    failed, unanswered = f'on_error: {{any: {{value: "{outputs}"}}}}', "on_error: {any: {value: to_json(1)}}"
    steps = [
        "- step: rounds",
        f"  over: i IN range(1, {draw.randint(2, 4)})",
        "  collect: i",
        "  steps:",
        "    - step: asked",
        *(f"      {line}" for line in ask if line),
        f"      {failed}",
        "- step: last",
        "  condition: length(question) > 40",
        "  then:",
        "    steps:",
        "      - step: one",
        *(f"        {line}" for line in question if line),
        f"        {unanswered}",
        "    value: 1",
        "  else:",
        "    steps:",
        "      - step: two",
        *(f"        {line}" for line in ask if line),
        f"        {failed}",
        "    value: 2",
    ]
    if draw.random() < 0.6:
        amounts = draw_budget(draw).removeprefix("budget: {").removesuffix("}").split(", ")
        steps = [
            "- step: whole",
            "  operation: budget",
            *(f"  {each}" for each in amounts),
            "  steps:",
            *(f"    {line}" for line in steps),
            "  value: last",
        ]
    lines = [
        f"node_id: {name}",
        "type: workflow",
        "intent: Ask agents",
        "inputs: {question: {type: string, constraints: [{max_length: 300}]}}",
        'outputs: {success: {done: boolean}, error: {error_code: "enum[failed]", message: string}}',
        "flow:",
        *(f"  {line}" for line in steps),
        "  - {operation: raise, error: {error_code: failed, message: nothing asked}, when: question == ''}",
        "  - return: {done: 'true'}",
        "security: {capabilities_required: [models.call.big, models.call.small]}",
    ]
    return "\n".join(lines) + "\n"


# -- models ---------------------------------------------------------------------------------------


@dataclass
class Charged:
    """What the server counted."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: Decimal = Decimal(0)


class Adversary:
    """The behaviour of the models: it charges as much as it may."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)
        self._lock = threading.Lock()
        self.charged = Charged()

    def __call__(self, asked: Asked) -> Reply | Fault:
        with self._lock:
            return self._answer(asked)

    def _answer(self, asked: Asked) -> Reply | Fault:
        draw = self._draw
        self.charged.requests += 1
        limit = int(asked.body["options"]["num_predict"])
        size = len(json.dumps(asked.body, ensure_ascii=False).encode())
        given = int(size * draw.choice([0.25, 1.0]))
        answered = draw.choice([limit, draw.randint(1, limit)])
        if given + answered > CONTEXT:
            return Fault(400, "context_length_exceeded")
        chance = draw.random()
        if chance < 0.2:
            return Fault(draw.choice([429, 503, 529]))
        self._charge(asked.model, given, answered)
        if chance < 0.25:
            return Fault(500)
        return replace(self._reply(asked), input_tokens=given, output_tokens=answered)

    def _reply(self, asked: Asked) -> Reply:
        draw = self._draw
        if asked.tools and draw.random() < 0.5:
            calls = [(name, self._arguments(name)) for name in draw.choices(asked.tools, k=draw.randint(1, 3))]
            return Reply("I look it up.", tools=tuple(calls))
        if asked.schema is not None:
            fits = draw.random() < 0.5
            return Reply(json.dumps(filled(asked.schema)) if fits else '{"count": "many"}')
        return Reply("word " * draw.randint(0, 200), stop=draw.choice(["", "", "", "length", "refusal"]))

    def _arguments(self, name: str) -> dict[str, object]:
        names = {"look_up": "key", "advisor": "question"}
        return {names[name]: self._draw.choice(["a", "b" * 30, 7])}

    def _charge(self, model: str, given: int, answered: int) -> None:
        prices = PRICES[model]
        self.charged.input_tokens += given
        self.charged.output_tokens += answered
        self.charged.usd += (given * Decimal(prices[0]) + answered * Decimal(prices[1])) / _MILLION


# -- the proof ------------------------------------------------------------------------------------


def exceeded(charged: Charged, total: Cost) -> list[str]:
    """Return the amounts of which more was charged than computed."""
    pairs = {
        "requests": (Decimal(charged.requests), total.requests),
        "input_tokens": (Decimal(charged.input_tokens), total.input_tokens),
        "output_tokens": (Decimal(charged.output_tokens), total.output_tokens),
        "usd": (charged.usd, total.usd),
    }
    return [f"{name}: {actual} of {most}" for name, (actual, most) in pairs.items() if actual > most]


def run(folder: Path, count: int, seed: int) -> dict[str, object]:
    """Run `count` random nodes; return what was compared."""
    draw, adversary = random.Random(seed), Adversary(seed)
    for name, text in (("look_up_v1", TOOL), ("advisor_v1", ADVISOR)):
        (folder / f"{name}.vsp").write_text(text, encoding="utf-8")
    wrong: list[str] = []
    shares: list[float] = []
    bounded = 0
    ended: dict[str, int] = {}
    with ModelServer(adversary) as server:
        settings = {"models": {name: model_settings(server, name) for name in PRICES}}
        with host_in(folder, settings) as host:
            terms = terms_of(config_from(settings, folder).parts.models)
            for number in range(count):
                agent = f"agent_{number}_v1"
                text = draw_agent(draw, agent)
                if number % 2:
                    compiled_in(text, folder)
                    outputs = "{text: ''}" if "text: string" in text else "{count: 0, mood: 'bad'}"
                    text = draw_flow(draw, f"flow_{number}_v1", agent, outputs)
                compiled, engine = compiled_in(text, folder), ("python", "interp")[number // 2 % 2]
                node = Node(compiled, ENGINES[engine].load(compiled), engine, None, (), host)
                report = cost_of(compiled, terms)
                adversary.charged = Charged()
                outcome = node(question="Why? " * draw.randint(1, 40))
                kind = "returned" if outcome.error is None else outcome.error.kind
                ended[kind] = ended.get(kind, 0) + 1
                wrong += [f"node {number}: {each}" for each in exceeded(adversary.charged, report.total)]
                bounded += report.total.usd != INFINITE
                shares += shares_of(adversary.charged, report)
    return {
        "nodes": count, "wrong": wrong, "bounded": bounded, "ended": dict(sorted(ended.items())),
        "largest_share_of_bound": round(max(shares, default=0.0), 3),
    }  # fmt: skip


def shares_of(charged: Charged, report: CostReport) -> list[float]:
    """Return the share of the computed money that was charged."""
    most = report.total.usd
    return [] if most in (INFINITE, 0) else [float(charged.usd / most)]


def model_settings(server: ModelServer, name: str) -> dict[str, object]:
    given, answered = PRICES[name]
    settings: dict[str, object] = {
        "api": "ollama",
        "model": name,
        "base_url": server.url,
        "allow_private_addresses": True,
        "prices": {"input": given, "output": answered},
        "context": CONTEXT,
    }
    return settings | ({"fallback": ["small"]} if name == "big" else {})


def is_right(found: dict[str, object]) -> bool:
    return not found["wrong"] and bool(found["bounded"]) and found["largest_share_of_bound"] != 0


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    arguments.add_argument("--nodes", type=int, default=NODES)
    arguments.add_argument("--seed", type=int, default=1)
    given = arguments.parse_args()
    logging.getLogger("vesper.host").setLevel(logging.ERROR)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        found = run(Path(name), given.nodes, given.seed)
    right = is_right(found)
    proof = {
        "source_hash": whole_hash(), "engine_hash": engine_hash(), "seed": given.seed, **found,
        "is_right": right, "seconds": round(time.monotonic() - began, 1),
    }  # fmt: skip
    print(json.dumps(proof, indent=2))
    if right and given.nodes >= NODES:
        write_json(PROOFS / f"{NAME}.json", proof)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
