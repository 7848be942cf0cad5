"""`make proof-conversations`: recorded conversations of agents replay on every engine without a request to a model.

Agents talk to a server that speaks the protocols of three providers and answers by a seed: fitting and wrong output,
calls of tools, refusals, faults. Some conversations are sessions of several messages, some stream, some agents call
others. Then each run is read from the journal, carried as a file, replayed on every engine, and written as a case that
runs on both: records must be equal byte for byte, and nothing may reach the server.
"""

from __future__ import annotations

import argparse
import json
import logging
import random
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT))

import vesper  # noqa: E402  # after the path is set
from tests.proofs.replay.replay import same_on_every_engine  # noqa: E402
from tests.proofs.robustness.proof import PROOFS, engine_hash, whole_hash, write_json  # noqa: E402
from tests.support.models.agents import write_agents  # noqa: E402
from tests.support.models.replies import Asked, Fault, Reply  # noqa: E402
from tests.support.models.server import KEY, ModelServer  # noqa: E402
from tests.unit.host.small import host_in  # noqa: E402
from vesper.agents import Agent  # noqa: E402
from vesper.engines.registry import PAIR  # noqa: E402
from vesper.host.host import Host  # noqa: E402
from vesper.language.diagnostics.source import SourceFile  # noqa: E402
from vesper.replay.to_test import case_text  # noqa: E402
from vesper.testing import Sources  # noqa: E402
from vesper.testing.replay_host import read_cases  # noqa: E402
from vesper.trace.export.call_records import MODEL_CALL  # noqa: E402
from vesper.trace.journalled import trace_of_execution  # noqa: E402
from vesper.trace.model import Trace  # noqa: E402
from vesper.trace.programs import compiled_of  # noqa: E402
from vesper.verify.differential.verifier import meets  # noqa: E402
from vesper.verify.inputs.model_answers import ModelAnswers  # noqa: E402
from vesper.verify.inputs.responses import UnexpectedRequest, run_case  # noqa: E402

NAME = "conversations"
CONVERSATIONS = 200
PROVIDERS = {"anthropic": "", "openai": "/v1", "ollama": ""}
WORKED = ("support_triage_v1", "data_extraction_v1", "contract_summary_v1")
OWN = ("guide_v1", "desk_v1")
MESSAGES = 3
"""Messages of a conversation that a session keeps."""
_FAULTS = (429, 503, 529, 500)
_FAULT_SHARE = 0.1


def behaviour(answers: ModelAnswers, seed: int) -> Callable[[Asked], Reply | Fault]:
    """Return the answers of a seed, by the number of the request."""

    def answer(asked: Asked) -> Reply | Fault:
        chance = random.Random(f"{seed} {asked.number}")
        if chance.random() < _FAULT_SHARE:
            return Fault(chance.choice(_FAULTS))
        found: Any = answers.draw(_request(asked), chance)
        if found is None:
            return Reply("null")
        if "tool_calls" in found:
            called = [(each["name"], each["arguments"]) for each in found["tool_calls"]]
            return Reply(found["text"], tools=tuple((name, _object(given)) for name, given in called))
        stop = found["stop"] if found["stop"] in ("length", "refusal") else ""
        return Reply(found["text"], stop=stop)

    return answer


def _request(asked: Asked) -> dict[str, Any]:
    """Return tools and schema of a request in the form of `model_call`."""
    listed = [each.get("function", each) for each in asked.body.get("tools") or ()]
    tools = [
        {"name": each["name"], "parameters": each.get("parameters") or each.get("input_schema")}
        for each in listed
        if each["name"] in asked.tools
    ]
    return {"tools": tools} if asked.schema is None else {"tools": tools, "output": {"schema": asked.schema}}


def _object(given: object) -> dict[str, Any]:
    """Return arguments as a provider sends them: an object."""
    found = given if isinstance(given, dict) else {"value": given}
    return dict(json.loads(json.dumps(found, default=float)))


class Talks:
    """The agents of one provider, on a Host of their own."""

    def __init__(self, folder: Path, api: str, server: ModelServer, stack: ExitStack) -> None:
        folder.mkdir()
        database = folder / "shop.db"
        with closing(sqlite3.connect(database)) as connection, connection:
            connection.execute("CREATE TABLE orders (order_number text PRIMARY KEY, status text, due text)")
            rows = [(f"{number:06}", "sent", "2026-11-20") for number in range(0, 1_000_000, 1000)]
            connection.executemany("INSERT INTO orders VALUES (?, ?, ?)", rows)
        model = {
            "api": api,
            "model": "m",
            "base_url": server.url + PROVIDERS[api],
            "allow_private_addresses": True,
            "prices": {"input": "3", "output": "15"},
            **({} if api == "ollama" else {"key_secret": "model_key"}),
        }
        settings = {
            "models": {"main": model, "claude": model},
            "sessions": {"talks": {}},
            "databases": {"main": {"dsn": f"sqlite:{database}"}},
        }
        self.host: Host = stack.enter_context(host_in(folder, settings, sources=Sources(wait_scale=0)))
        write_agents(folder)
        self._paths = {name: ROOT / "nodes" / "agents" / f"{name}.vsp" for name in WORKED}
        self._paths |= {name: folder / f"{name}.vsp" for name in OWN}
        self._agents: dict[tuple[str, str], Agent] = {}

    def agent(self, name: str, engine: str) -> Agent:
        if (name, engine) not in self._agents:
            self._agents[name, engine] = Agent(vesper.load(self._paths[name], host=self.host, engine=engine))
        return self._agents[name, engine]

    def talk(self, name: str, engine: str, number: int) -> list[str]:
        """Have a conversation, and return its executions."""
        agent = self.agent(name, engine)
        if name == "guide_v1":
            talk = agent.conversation("talks", str(number))
            streams = [talk.ask(f"Question {at} of {number}?") for at in range(MESSAGES)]
            return [talk.keep(stream).trace_id for stream in streams]
        cases = agent.node._compiled.cases
        inputs: dict[str, Any] = dict(cases[0].inputs) if cases else {"question": f"Question {number}?"}
        if number % 3 == 0:
            return [agent.stream(inputs).outcome().trace_id]
        return [agent(inputs).trace_id]


def problem_of_case(trace: Trace) -> str | None:
    """Write the run as a case, and return what fails when it runs on each engine."""
    compiled = compiled_of(trace.definition)
    (case,) = read_cases(compiled, SourceFile("recorded.yaml", case_text(trace)))
    for name, engine in PAIR.items():
        try:
            outcome = run_case(engine.load(compiled), case).outcome
        except UnexpectedRequest as problem:
            return f"case on {name}: {problem}"
        if not meets(case, outcome):
            return f"case on {name}: ends as {outcome.kind}"
    return None


def run(folder: Path, count: int, seed: int) -> dict[str, Any]:
    """Have conversations, replay them, and return the counts."""
    outcomes: Counter[str] = Counter()
    effects: Counter[str] = Counter()
    differing: list[str] = []
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        patch.setenv("VESPER_SECRET_MODEL_KEY", KEY)
        server = stack.enter_context(ModelServer())
        talks = {api: Talks(folder / api, api, server, stack) for api in PROVIDERS}
        first = next(iter(talks.values())).agent(WORKED[0], next(iter(PAIR)))
        server.behaviour = behaviour(ModelAnswers(first.node._compiled.node), seed)
        names, done = (*WORKED, *OWN), []
        for number in range(count):
            api = list(PROVIDERS)[number % len(PROVIDERS)]
            engine = list(PAIR)[number // len(PROVIDERS) % len(PAIR)]
            name = names[number // (len(PROVIDERS) * len(PAIR)) % len(names)]
            done += [(talks[api].host, execution) for execution in talks[api].talk(name, engine, number)]
        before = len(server.got), server.connections
        for host, execution in done:
            trace = trace_of_execution(host.journal, execution)
            outcomes[trace.outcome.kind if trace.outcome is not None else "unfinished"] += 1
            effects.update(each.effect for each in trace.exchanges)
            told = same_on_every_engine(trace) or problem_of_case(trace)
            if told is not None:
                differing.append(f"{trace.node_id} {execution}: {told}")
        after = len(server.got), server.connections
    return {
        "conversations": count,
        "runs": len(done),
        "outcomes": dict(sorted(outcomes.items())),
        "effects": dict(sorted(effects.items())),
        "requests_to_models": before[0],
        "requests_by_replay": sum(after) - sum(before),
        "differing": differing,
    }


def is_right(found: dict[str, Any]) -> bool:
    is_quiet = found["requests_by_replay"] == 0 and found["requests_to_models"] >= found["effects"][MODEL_CALL] > 0
    return is_quiet and not found["differing"] and found["outcomes"].get("returned", 0) > 0


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    arguments.add_argument("--conversations", type=int, default=CONVERSATIONS)
    arguments.add_argument("--seed", type=int, default=1)
    given = arguments.parse_args()
    logging.getLogger("vesper.host").setLevel(logging.ERROR)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        found = run(Path(name), given.conversations, given.seed)
    right = is_right(found)
    proof = {
        "source_hash": whole_hash(), "engine_hash": engine_hash(), "seed": given.seed, **found, "is_right": right,
        "seconds": round(time.monotonic() - began, 1),
    }  # fmt: skip
    print(json.dumps(proof, indent=2))
    if right and given.conversations >= CONVERSATIONS:
        write_json(PROOFS / f"{NAME}.json", proof)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
