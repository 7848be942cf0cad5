"""Sampled traces of pure nodes: no cost without sampling."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from threading import Thread, current_thread

import pytest

import vesper as api
from tests.support.nodes import ROOT, compiled
from vesper.api.observed import trace_sampling as sampled
from vesper.config.settings import config_from
from vesper.config.traces import TraceSettings
from vesper.engines.registry import ENGINES
from vesper.replay.rerun import replay
from vesper.trace.armed_breakpoints import Armed
from vesper.trace.model import Trace
from vesper.trace.sampling import Sampler
from vesper.trace.snapshot import UncopyableInput, is_fixed, snapshot_of
from vesper.trace.store import TraceStore

NODES = ROOT / "nodes"
DECISION = {"amount": "50", "balance": "100", "currency": "USD", "country": "DE", "user_age_days": 400}
LINES = [{"qty": 2, "unit_price": Decimal("10.50"), "category": "food"}]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty working folder; its samples are stored before the test ends."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("VESPER_CONFIG", raising=False)
    monkeypatch.setattr(sampled, "_samplers", {})
    yield tmp_path
    for each, _ in sampled._samplers.values():
        assert each.wait(20)


def load(name: str, engine: str = "python", **traces: object) -> api.Node:
    if traces:
        lines = [f"{key} = {json.dumps(value)}" for key, value in traces.items()]
        Path("vesper.toml").write_text("\n".join(["[traces]", *lines, ""]), encoding="utf-8")
    return api.load(name, nodes=NODES, engine=engine)


def the_sampler() -> Sampler:
    ((found, _),) = sampled._samplers.values()
    assert found.wait(20)
    return found


def stored(folder: Path) -> list[Trace]:
    """Return all traces of the folder, oldest first."""
    the_sampler()
    store = TraceStore(TraceSettings(folder / ".vesper" / "traces.db"))
    return [store.read(each) for each in store.ids()]


@pytest.mark.parametrize("engine", list(ENGINES))
def test_without_sampling_call_is_the_plain_method(folder: Path, engine: str) -> None:
    Path("vesper.toml").write_text('[traces]\nretention = "7d"\n', encoding="utf-8")
    node = load("payment_decision", engine)
    assert node.call.__module__ != sampled.__name__
    assert node._entries is not None
    assert node._entries.engine_call == node._program.call
    assert node(**DECISION).ok
    assert sampled._samplers == {}


@pytest.mark.parametrize("engine", list(ENGINES))
def test_every_call_that_is_sampled_has_a_trace_that_replays(folder: Path, engine: str) -> None:
    node = load("payment_decision", engine, sample="100 %")
    assert node.call(dict(DECISION))["decision"] == "approve"
    assert node(**DECISION).ok
    assert not node(**{**DECISION, "amount": "0"}).ok
    assert not node(**{**DECISION, "amount": "much"}).ok, "it never began, and has no trace"
    assert node('{"amount": 7, "balance": 100, "currency": "USD", "country": "DE", "user_age_days": 400}').ok
    found = stored(folder)
    assert [None if each.outcome is None else each.outcome.kind for each in found] == [
        "returned", "returned", "contract_broken", "returned",
    ]  # fmt: skip
    for each in found:
        assert each.engines == (engine,)
        assert replay(each).difference is None
        assert each.duration_us is not None
    assert found[3].inputs["amount"] == Decimal(7)


def test_an_execution_that_fails_has_one_trace(folder: Path) -> None:
    """Running the engine again to explain a failure is not a second execution."""
    Path("third_v1.vsp").write_text(
        "node_id: third_v1\ntype: function\nintent: Divide\ninputs: {by: decimal}\n"
        "outputs:\n  success: {out: decimal}\nflow:\n"
        "  - {step: out, operation: compute, value: 1 / by}\n  - {operation: return, success: [out]}\n",
        encoding="utf-8",
    )
    Path("vesper.toml").write_text('[traces]\nsample = "100 %"\n', encoding="utf-8")
    for engine in ENGINES:
        outcome = api.load(Path("third_v1.vsp"), engine=engine)(by=Decimal(0))
        assert outcome.error is not None
        assert outcome.error.code == "division_by_zero"
    found = stored(folder)
    assert [(each.engines[0], each.outcome.kind if each.outcome else "") for each in found] == [
        (engine, "failed") for engine in ENGINES
    ]


def test_later_changes_of_inputs_are_not_in_the_trace(folder: Path) -> None:
    node = load("order_pricing", sample="100 %")
    items = [dict(each) for each in LINES]
    node.call({"items": items})
    items[0]["qty"] = 99
    items.append({"qty": 1, "unit_price": Decimal(1), "category": "toy"})
    (found,) = stored(folder)
    assert found.inputs == {"items": LINES}


def test_there_are_so_many_a_second_at_most_and_the_rest_is_counted(folder: Path) -> None:
    node = load("payment_decision", sample="100 %", per_second=5)
    for _ in range(200):
        node.call(dict(DECISION))
    sampler = the_sampler()
    found = len(stored(folder))
    assert 5 <= found < 200
    assert (sampler.counts.kept, sampler.counts.passed, sampler.counts.lost) == (found, 200 - found, 0)


def test_a_share_is_a_share(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = iter([0.009, 0.5, 0.011, 0.0, 0.99])
    monkeypatch.setattr("vesper.api.observed.trace_sampling.random.random", lambda: next(drawn))
    node = load("payment_decision", sample="1 %")
    for amount in range(1, 6):
        node.call({**DECISION, "amount": amount})
    assert [each.inputs["amount"] for each in stored(folder)] == [1, 4]


def test_on_both_engines_a_trace_says_whether_they_agree(folder: Path) -> None:
    node = load("payment_decision", "auto", sample="100 %")
    node(**DECISION)
    (found,) = stored(folder)
    assert (found.engines, found.divergence) == (("python", "interp"), None)


def test_a_storing_error_is_logged_once_and_reaches_no_caller(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    (folder / ".vesper").write_text("a file where a folder is wanted", encoding="utf-8")
    node = load("payment_decision", sample="100 %")
    for _ in range(3):
        assert node(**DECISION).ok
        the_sampler()
    assert the_sampler().counts.lost == 3
    told = [each for each in caplog.records if each.name == "vesper.traces"]
    assert [each.levelno for each in told] == [logging.WARNING]
    assert "calls of payment_decision_v1 have no traces for the next 60 seconds" in caplog.text


def test_a_breakpoint_of_running_services_catches_nodes_without_effects(folder: Path) -> None:
    node = load("payment_decision", watch=True)
    node.call({**DECISION, "amount": 20_000})
    assert the_sampler().counts.kept == 0
    armed = Armed(folder)
    armed.add(["input.amount > 10000", "contract_violation"])
    ((_, watch),) = sampled._samplers.values()
    assert watch is not None
    watch._next_poll = 0.0
    node.call({**DECISION, "amount": 50})
    node.call({**DECISION, "amount": 30_000})
    node(**{**DECISION, "amount": 0})
    found = stored(folder)
    assert [each.inputs["amount"] for each in found] == [30_000, 0]
    assert [(each.trace_id, each.breakpoint) for each in armed.captured()] == [
        (found[0].trace_id, "input.amount > 10000"), (found[1].trace_id, "contract_violation"),
    ]  # fmt: skip


def test_a_fork_stores_its_own_calls_and_no_others(folder: Path) -> None:
    node = load("payment_decision", sample="100 %")
    node.call(dict(DECISION))
    child = os.fork()
    if not child:  # pragma: no cover  # of another process
        try:
            node.call({**DECISION, "amount": 7})
            the_sampler()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert sorted(int(str(each.inputs["amount"])) for each in stored(folder)) == [7, 50]


def test_nothing_is_lost_between_threads_that_call_and_the_one_that_stores(folder: Path) -> None:
    """Callers take no lock: the storing thread may be about to end when a call is added."""
    node = load("payment_decision", "interp", sample="100 %", per_second=1000)
    calling = [Thread(target=lambda: [node.call(dict(DECISION)) for _ in range(40)]) for _ in range(4)]
    for each in calling:
        each.start()
    for each in calling:
        each.join()
    sampler = the_sampler()
    assert (sampler.counts.kept, sampler.counts.passed, sampler.counts.lost) == (160, 0, 0)


def test_a_call_added_while_the_thread_ends_is_stored(folder: Path) -> None:
    node = load("payment_decision", "interp", sample="100 %", per_second=1000)
    node.call(dict(DECISION))
    sampler = the_sampler()
    if (worker := sampler.worker) is not None:
        worker.join()
    sampler.worker = current_thread()  # a caller that still sees the storing thread starts none
    node.call(dict(DECISION))
    sampler.worker = None
    assert the_sampler().counts.kept == 2


@pytest.mark.parametrize("value", ["0 %", "101 %", "x", "5"])
def test_a_share_that_is_none_is_refused(value: str, tmp_path: Path) -> None:
    with pytest.raises(api.ConfigError, match="a share as a text"):
        config_from({"traces": {"sample": value}}, tmp_path)


def test_a_snapshot_shares_nothing_that_can_change() -> None:
    node = compiled(NODES / "orders" / "order_pricing_v1.vsp").node
    given = {"items": [dict(each) for each in LINES]}
    kept = snapshot_of(node)(given)
    assert kept == given
    assert kept is not given
    assert kept["items"] is not given["items"]
    assert kept["items"][0] is not given["items"][0]
    with pytest.raises(UncopyableInput):
        snapshot_of(node)({"items": [object()]})
    with pytest.raises(UncopyableInput):
        snapshot_of(node)({"items": "text"})
    assert is_fixed(kept)
    assert not is_fixed({"items": [{"qty": object()}]})
    assert not is_fixed({"data": bytearray(b"x")})
