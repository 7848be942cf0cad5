"""`make proof-replay`: ten thousand recorded executions of all nodes with effects replay just as they were.

Every node of `nodes/` with effects is run through a real Host and a real journal, on inputs that are drawn, on either
engine in turn. Who performs its requests answers what is drawn for them, and counts. Then each execution is read from
the journal, made a trace, written as a file and read again, and replayed on every engine: values, order, outcome,
clock and random numbers must be the same byte for byte, and the count must not move. Runs that wait are resumed at the
end of each wait, by a clock that moves there. A hundred executions are payments to a real provider on loopback, which
counts what reaches it.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import tempfile
import time
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT))

from tests.proofs.robustness.proof import PROOFS, engine_hash, whole_hash, write_json  # noqa: E402  # after the path is set
from tests.support.nodes import worked_nodes  # noqa: E402
from tests.support.payments import Shop  # noqa: E402
from vesper.cli.traces.open_traces import traces_of  # noqa: E402
from vesper.compiler import Compiled, compile_file  # noqa: E402
from vesper.config.settings import config_from  # noqa: E402
from vesper.effects.performer import Ask, EffectFailed  # noqa: E402
from vesper.engines.engine import Request  # noqa: E402
from vesper.engines.registry import ENGINES  # noqa: E402
from vesper.host.host import Host  # noqa: E402
from vesper.host.prepared import Ran  # noqa: E402
from vesper.host.waiting import RunWaits  # noqa: E402
from vesper.host.waiting_runs import find_waiting  # noqa: E402
from vesper.replay.rerun import replay  # noqa: E402
from vesper.testing import Sources  # noqa: E402
from vesper.trace.journalled import trace_of_execution  # noqa: E402
from vesper.trace.model import Trace  # noqa: E402
from vesper.values.generated.effects import EFFECTS  # noqa: E402
from vesper.verify.inputs.generator import InputGenerator  # noqa: E402
from vesper.verify.inputs.responses import GeneratedResponses, Responder  # noqa: E402

NAME = "replay"
EXECUTIONS, PAYMENTS = 10_000, 100


class Clock:
    """The clock of the system, moved on by each wait of a run."""

    def __init__(self) -> None:
        self.shift_us = 0

    def now_ns(self) -> int:
        return time.time_ns() + self.shift_us * 1000

    def pass_moment(self, moment_us: int) -> None:
        self.shift_us += max(0, moment_us + 1 - self.now_ns() // 1000)


class Counting:
    """Performs every effect: with what the seed of the execution answers, and counts."""

    def __init__(self) -> None:
        self.performed = 0
        self.respond: Responder | None = None

    def perform(self, ask: Ask) -> object:
        self.performed += 1
        assert self.respond is not None
        fixed = dict(ask.fixed)
        found = self.respond(Request(0, ask.path, ask.effect, ask.effect_class, fixed, ask.arguments, ask.key))
        if found.failure is not None:
            raise EffectFailed(found.failure, "drawn")
        return found.result

    def probe(self, ask: Ask) -> object:
        raise AssertionError("nothing is recovered here")

    def close(self) -> None: ...


def nodes_with_effects() -> list[Compiled]:
    found = [compile_file(path)[0] for path in worked_nodes()]
    return [each for each in found if each is not None and not each.node.is_pure()]


def same_on_every_engine(trace: Trace) -> str | None:
    """What differs, or nothing: the trace as a file, replayed on each engine."""
    carried = Trace.from_bytes(trace.to_bytes())
    if trace.divergence is not None:
        return trace.divergence
    for engine in ENGINES:
        again = replay(carried, engine)
        if again.difference is not None:
            return f"{engine}: {again.difference}"
        alike = replace(
            again.trace, engines=carried.engines, outcome=carried.outcome, is_sensitive=carried.is_sensitive
        )
        if alike.without_times().to_bytes() != carried.without_times().to_bytes():
            return f"{engine}: the trace of the replay is another"
    return None


def resume(host: Host, clock: Clock, waits: RunWaits) -> Ran:
    """Return how a waiting run ends when nothing answers it."""
    while True:
        wait = find_waiting(host.journal, waits.execution)
        assert wait is not None, f"{waits.node_id} was resumed by another"
        assert wait.due_us is not None, f"{waits.node_id} waits without end"
        clock.pass_moment(wait.due_us)
        (found,) = [each for each in host.keep() if each.execution == waits.execution]
        if found.outcome is not None:
            return Ran(found.execution, found.outcome)
        assert found.is_waiting, found.why


def run_nodes(folder: Path, count: int, seed: int) -> dict[str, object]:
    performer = Counting()
    settings = {
        "grants": [{"nodes": ["*"], "allow": ["*"]}],
        "journal": {"dsn": f"sqlite:{folder / 'journal.db'}"},
        "recovery": {"enabled": False},
    }
    nodes = nodes_with_effects()
    outcomes: Counter[str] = Counter()
    effects: Counter[str] = Counter()
    differing: list[str] = []
    executions: list[str] = []
    clock = Clock()
    sources = Sources(now_ns=clock.now_ns, wait_scale=0)
    with Host(config_from(settings, folder), performers=dict.fromkeys(EFFECTS, performer), sources=sources) as host:
        programs = {(each.semantic_hash, name): engine.load(each) for each in nodes for name, engine in ENGINES.items()}
        drawn = [(each, InputGenerator(each.node, seed), GeneratedResponses(each)) for each in nodes]
        tried, resumed = 0, 0
        while len(executions) < count:
            compiled, inputs, responses = drawn[tried % len(drawn)]
            engine = list(ENGINES)[tried // len(drawn) % len(ENGINES)]
            tried += 1
            performer.respond = responses.responder(f"{seed} {tried}")
            prepared = host.prepare(compiled, programs[compiled.semantic_hash, engine], engine)
            prepared = replace(prepared, plans=replace(prepared.plans, writes=False))  # no power is lost here
            try:
                ran = host.run(prepared, inputs.draw(), responses.now(f"{seed} {tried}"))
            except RunWaits as waits:
                ran = resume(host, clock, waits)
                resumed += 1
            if host.knows(ran.execution):
                executions.append(ran.execution)
                outcomes[ran.outcome.kind] += 1
        performed = performer.performed
        performer.respond = None
        for execution in executions:
            trace = trace_of_execution(host.journal, execution)
            effects.update(each.effect for each in trace.exchanges)
            told = same_on_every_engine(trace)
            if told is not None:
                differing.append(f"{trace.node_id} {execution}: {told}")
        performed_by_replay = performer.performed - performed
    return {
        "nodes": len(nodes),
        "executions": len(executions),
        "resumed_after_waits": resumed,
        "outcomes": dict(sorted(outcomes.items())),
        "requests": dict(sorted(effects.items())),
        "performed": performed,
        "performed_by_replay": performed_by_replay,
        "differing": differing,
    }


def run_payments(folder: Path, count: int) -> dict[str, object]:
    """Real payments to a provider that counts."""
    folder.mkdir()
    differing: list[str] = []
    with pytest.MonkeyPatch.context() as monkeypatch, Shop(folder, monkeypatch) as shop:
        done = [shop.pay(list(ENGINES)[number % 2], **_payment(number)) for number in range(count)]
        before = len(shop.stripe.got), shop.stripe.connections
        with traces_of(shop.config) as traces:
            for ran in done:
                told = same_on_every_engine(traces.find(ran.execution))
                if told is not None:
                    differing.append(f"{ran.execution}: {told}")
        reached = len(shop.stripe.got) - before[0] + shop.stripe.connections - before[1]
        charges = shop.stripe.counts()["charges"]
    return {"payments": count, "charges": charges, "requests_by_replay": reached, "differing": differing}


def _payment(number: int) -> dict[str, object]:
    return {"order_id": f"ord_{number:016}", "amount": Decimal(number + 1) / 4, "idempotency_key": f"k-{number}"}


def is_right(found: dict[str, object], payments: dict[str, object]) -> bool:
    return (
        not found["differing"]
        and not payments["differing"]
        and found["performed_by_replay"] == 0
        and payments["requests_by_replay"] == 0
        and payments["charges"] == payments["payments"]
    )


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    arguments.add_argument("--executions", type=int, default=EXECUTIONS)
    arguments.add_argument("--payments", type=int, default=PAYMENTS)
    arguments.add_argument("--seed", type=int, default=1)
    given = arguments.parse_args()
    logging.getLogger("vesper.host").setLevel(logging.ERROR)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        found = run_nodes(Path(name), given.executions, given.seed)
        payments = run_payments(Path(name) / "shop", given.payments)
    right = is_right(found, payments)
    proof = {
        "source_hash": whole_hash(), "engine_hash": engine_hash(), "seed": given.seed, **found,
        "real": payments, "is_right": right, "seconds": round(time.monotonic() - began, 1),
    }  # fmt: skip
    print(json.dumps(proof, indent=2))
    if right and given.executions >= EXECUTIONS:
        write_json(PROOFS / f"{NAME}.json", proof)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
