"""The context of a run: what the journal and the audit have of a caller, deadlines, and keys in one process."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import vesper
from tests.support.waiting import eventually
from tests.unit.host.custom_world import World, acting, host_of, settings
from tests.unit.host.small import node_from
from vesper.effects.performer import Ask, EffectFailed
from vesper.host import keyed_runs
from vesper.host.host import Host
from vesper.host.run_context import RunContext, current_context
from vesper.journal.entry import Kind
from vesper.journal.journal import JournalError, Status

TRACE = f"00-{'a' * 32}-{'b' * 16}-01"
BODY = b'{"event_id": "e1", "text": "t"}'
OTHER = b'{"event_id": "e1", "text": "u"}'
VALUES = """
node_id: values_v1
type: event_handler
intent: Give every kind of value, or end otherwise
inputs:
  event_id: string
  text: string
types:
  Line:
    fields: {name: string, price: decimal}
outputs:
  success:
    got: string
    d: decimal
    f: float
    n: integer
    when: timestamp
    lines: array<Line>
    some: optional<integer>
    tags: set<string>
  error:
    error_code: enum[refused]
    amount: decimal
contracts:
  postconditions:
    - got != "broken"
flow:
  - {step: act, operation: custom, name: act, effect: unsafe, request: {text: text}, returns: string}
  - operation: raise
    when: act == "declared"
    error: {error_code: refused, amount: "1.50"}
  - operation: return
    success:
      got: act
      d: "1.50"
      f: 0.1 AS float
      n: "7"
      when: now()
      lines: "[{name: 'a', price: 2.0}]"
      some: "NULL"
      tags: "to_set(['b', 'a'])"
security:
  capabilities_required: [effect.call.act]
"""


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def host(tmp_path: Path, world: World) -> Iterator[Host]:
    with host_of(settings(tmp_path, grants=[{"nodes": ["*"], "allow": ["*"]}]), world) as found:
        yield found


@pytest.fixture(params=["python", "interp"])
def node(request: pytest.FixtureRequest, tmp_path: Path, host: Host) -> vesper.Node:
    return acting(tmp_path, host, "act", engine=request.param)


def execution_of(report: Any) -> str:
    assert report.execution is not None
    return str(report.execution)


def noted(found: list[Any], value: object) -> str:
    found.append(value)
    return "done"


# -- the context ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "part",
    [
        {"actor": ""}, {"tenant": "a\nb"}, {"key": "k" * 256}, {"key": 7}, {"deadline": float("nan")},
        {"traceparent": "00-abc"}, {"traceparent": f"00-{'0' * 32}-{'b' * 16}-01"},
    ],
)  # fmt: skip
def test_an_invalid_part_is_refused(part: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"`{next(iter(part))}` of a run context"):
        vesper.run_context(**part)


def test_the_journal_has_the_caller(node: vesper.Node, host: Host) -> None:
    caller: dict[str, Any] = {
        "actor": "ada",
        "via": "issuer",
        "tenant": "acme",
        "key": "17",
        "traceparent": TRACE,
        "tracestate": "a=b",
    }
    with vesper.run_context(**caller) as report:
        node.run_json(BODY)
    assert host.journal.read(execution_of(report)).entries[0].entry.body["context"] == caller
    assert RunContext.from_record(caller).to_record() == caller
    assert current_context() is None


def test_audit_lines_have_the_caller(tmp_path: Path, host: Host) -> None:
    node = acting(tmp_path, host, "act", security="  audit_level: detailed\n")
    with vesper.run_context(actor="ada", tenant="acme", key="17"):
        node.run_json(BODY)
    node.run_json(BODY)
    lines = list(host.journal.audit_events())
    assert [(line.get("actor"), line.get("tenant"), line.get("key")) for line in lines] == [
        *[("ada", "acme", "17")] * 2,
        *[(None, None, None)] * 2,
    ]


def test_a_run_inside_an_effect_has_the_caller_and_neither_key_nor_report(
    node: vesper.Node, world: World, host: Host
) -> None:
    contexts: list[RunContext | None] = []
    world.does["act"] = lambda _: noted(contexts, current_context())
    with vesper.run_context(actor="ada", key="17") as report:
        node.run_json(BODY)
    (inside,) = contexts
    assert inside is not None
    assert (inside.actor, inside.key) == ("ada", None)
    assert inside.report is not report


def test_a_recovered_run_has_its_caller(tmp_path: Path, world: World) -> None:
    first = host_of(settings(tmp_path), world, owner="gone", lease=0.2)

    def fail(ask: Ask) -> object:
        raise KeyboardInterrupt

    world.does["act"] = fail
    node = acting(tmp_path, first, "act", effect_class="keyed\n    key: event_id", security="  audit_level: basic\n")
    with vesper.run_context(actor="ada", key="17"), pytest.raises(KeyboardInterrupt):
        node.run_json(BODY)
    contexts: list[RunContext | None] = []
    world.does["act"] = lambda _: noted(contexts, current_context())
    with host_of(settings(tmp_path), world) as second:
        eventually(lambda: bool(second.recover()))
        assert [each and each.actor for each in contexts] == ["ada"]
        assert [line["actor"] for line in second.journal.audit_events()] == ["ada"]


# -- deadlines ------------------------------------------------------------------------------------


def test_nothing_is_performed_after_the_deadline(node: vesper.Node, world: World) -> None:
    with vesper.run_context(deadline=time.monotonic() - 1):
        outcome = node(event_id="e", text="t")
    assert outcome.error is not None
    assert (outcome.error.kind, outcome.error.code) == ("limit_hit", "deadline")
    assert "the caller's time was over" in outcome.error.message
    assert world.asked == []


def test_the_deadline_bounds_attempts(node: vesper.Node, world: World) -> None:
    timeouts: list[float | None] = []
    world.does["act"] = lambda ask: noted(timeouts, ask.timeout)
    with vesper.run_context(deadline=time.monotonic() + 1000):
        node.run_json(BODY)
    assert timeouts[0] is not None
    assert 900 < timeouts[0] <= 1000


# -- keys -----------------------------------------------------------------------------------------


def test_a_repeat_returns_the_outcome_of_the_first(node: vesper.Node, world: World) -> None:
    with vesper.run_context(actor="ada", key="17") as first:
        answer = node.run_json(BODY)
    with vesper.run_context(actor="ada", key="17") as second:
        assert node.run_json(BODY) == answer
    assert (first.is_repeat, second.is_repeat) == (False, True)
    assert first.execution == second.execution
    assert world.asked == ["act"]


def _raise(code: str) -> object:
    raise EffectFailed(code, "the reason")


@pytest.mark.parametrize("engine", ["python", "interp"])
@pytest.mark.parametrize(
    "act, kind",
    [
        (lambda _: "text", "returned"),
        (lambda _: "declared", "declared_error"),
        (lambda _: "broken", "contract_broken"),
        (lambda _: _raise("unavailable"), "failed"),
        (lambda _: 7, "failed"),
    ],
)
def test_every_kind_of_outcome_is_repeated(
    tmp_path: Path, host: Host, world: World, engine: str, act: Callable[[Ask], object], kind: str
) -> None:
    world.does["act"] = act
    node = node_from(VALUES, tmp_path, host, engine)
    answers, outcomes = [], []
    for _ in range(2):
        with vesper.run_context(key="17"):
            answers.append(node.run_json(BODY))
            outcomes.append(node(event_id="e1", text="t"))
    assert f'"kind":"{kind}"'.encode() in answers[0]
    assert answers[0] == answers[1]
    assert outcomes[0].error == outcomes[1].error
    assert world.asked == ["act"]


def test_other_inputs_are_refused(node: vesper.Node, world: World) -> None:
    with vesper.run_context(key="17") as report:
        node.run_json(BODY)
    with vesper.run_context(key="17"), pytest.raises(vesper.KeyReused, match="with other inputs") as reused:
        node.run_json(OTHER)
    assert reused.value.execution == report.execution
    assert world.asked == ["act"]


def test_refused_inputs_take_no_key(node: vesper.Node, world: World) -> None:
    with vesper.run_context(key="17"):
        assert b"bad_input" in node.run_json(b'{"event_id": 1}')
        assert not node(event_id="e", text=7).ok
        node.run_json(BODY)
    assert world.asked == ["act"]


def test_callers_do_not_share_keys(node: vesper.Node, world: World) -> None:
    callers: tuple[dict[str, Any], ...] = (
        {"actor": "ada"}, {"actor": "bob"}, {"actor": "ada", "tenant": "acme"}, {"tenant": "other"}, {},
    )  # fmt: skip
    executions = set()
    for caller in callers:
        with vesper.run_context(key="17", **caller) as report:
            node.run_json(BODY)
        assert not report.is_repeat
        executions.add(execution_of(report))
    assert len(executions) == len(world.asked) == len(callers)


def test_a_changed_node_repeats_what_it_answered_before(tmp_path: Path, host: Host, world: World) -> None:
    with vesper.run_context(key="17"):
        answer = acting(tmp_path, host, "act").run_json(BODY)
    world.does["act"] = lambda _: 7
    changed = acting(tmp_path, host, "act", returns="integer")
    with vesper.run_context(key="17") as report:
        assert changed.run_json(BODY) == answer
        assert changed(event_id="e1", text="t").unwrap() == {"last": "act"}
    assert report.is_repeat


class Held:
    """A run that waits inside its effect until it is released."""

    def __init__(self, node: vesper.Node, world: World, **context: Any) -> None:
        self._may_go = threading.Event()
        self._is_inside = threading.Event()
        world.does["act"] = self._act
        self._thread = threading.Thread(target=self._run, args=(node, context))
        self._thread.start()
        assert self._is_inside.wait(30)

    def _run(self, node: vesper.Node, context: dict[str, Any]) -> None:
        with vesper.run_context(**context):
            self.answer = node.run_json(BODY)

    def _act(self, ask: Ask) -> object:
        self._is_inside.set()
        assert self._may_go.wait(30)
        return "done"

    def release(self) -> None:
        self._may_go.set()
        self._thread.join(30)


def test_a_repeat_waits_for_the_run(node: vesper.Node, world: World) -> None:
    held = Held(node, world, key="17")
    answers: list[bytes] = []

    def repeat() -> None:
        with vesper.run_context(key="17", deadline=time.monotonic() + 30):
            answers.append(node.run_json(BODY))

    threads = [threading.Thread(target=repeat) for _ in range(3)]
    for thread in threads:
        thread.start()
    with vesper.run_context(key="17"), pytest.raises(vesper.KeyReused):  # known at once
        node.run_json(OTHER)
    held.release()
    for thread in threads:
        thread.join(30)
    assert answers == [held.answer] * 3
    assert world.asked == ["act"]


def test_the_deadline_ends_the_wait(node: vesper.Node, world: World) -> None:
    held = Held(node, world, key="17")
    for seconds in (-1.0, 0.05):
        with (
            vesper.run_context(key="17", deadline=time.monotonic() + seconds),
            pytest.raises(vesper.KeyRunning, match="has not ended: repeat the call later"),
        ):
            node.run_json(BODY)
    held.release()
    with vesper.run_context(key="17"):
        assert node.run_json(BODY) == held.answer


def test_waiters_are_bounded(node: vesper.Node, world: World, host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyed_runs, "MAX_WAITERS", 0)
    monkeypatch.setattr(host, "_key_waiters", keyed_runs.Waiters())
    held = Held(node, world, key="17")
    with vesper.run_context(key="17"), pytest.raises(vesper.KeyRunning, match="0 callers wait"):
        node.run_json(BODY)
    held.release()


def test_coroutines_repeat_too(node: vesper.Node, world: World) -> None:
    async def run() -> list[tuple[Any, bool]]:
        async def one() -> tuple[Any, bool]:
            with vesper.run_context(key="17") as report:
                outcome = await node.arun(event_id="e1", text="t")
            return outcome.unwrap(), report.is_repeat

        return [await one(), *await asyncio.gather(*(one() for _ in range(5)))]

    assert asyncio.run(run()) == [({"last": "act"}, False), *[({"last": "act"}, True)] * 5]
    assert world.asked == ["act"]


def test_coroutines_that_begin_together_run_once(node: vesper.Node, world: World) -> None:
    def act(ask: Ask) -> object:
        time.sleep(0.05)
        return "done"

    world.does["act"] = act

    async def run() -> list[Any]:
        async def one() -> Any:
            with vesper.run_context(key="17"):
                return (await node.arun(event_id="e1", text="t")).unwrap()

        return await asyncio.gather(*(one() for _ in range(8)))

    assert asyncio.run(run()) == [{"last": "done"}] * 8
    assert world.asked == ["act"]


def test_a_lost_race_is_a_repeat(
    node: vesper.Node, world: World, host: Host, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The key is free when the run begins, and taken at its first commit."""
    with vesper.run_context(key="17"):
        answer = node.run_json(BODY)
    caplog.clear()
    monkeypatch.setattr("vesper.host.host.claim", lambda _journal, context, *_: context.to_record())
    with vesper.run_context(key="17") as report:
        assert node.run_json(BODY) == answer
    assert report.is_repeat
    assert world.asked == ["act"]
    assert caplog.records == []
    assert len(host.journal.find()) == 1


def test_a_run_that_this_process_left_is_finished_by_its_repeat(node: vesper.Node, world: World) -> None:
    def fail(ask: Ask) -> object:
        raise KeyboardInterrupt

    world.does["act"] = fail
    with vesper.run_context(key="17"), pytest.raises(KeyboardInterrupt):
        node.run_json(BODY)
    world.does["act"] = lambda _: "done"
    with vesper.run_context(key="17"), pytest.raises(vesper.InDoubt):  # the effect is `unsafe`
        node.run_json(BODY)


def test_a_run_in_doubt_stays_so_until_it_is_resolved(node: vesper.Node, world: World, host: Host) -> None:
    test_a_run_that_this_process_left_is_finished_by_its_repeat(node, world)
    with vesper.run_context(key="17"), pytest.raises(vesper.InDoubt) as doubt:
        node.run_json(BODY)
    host.journal.resolve(doubt.value.execution, "act", "found", None, "ada", "looked")
    with vesper.run_context(key="17") as report:
        assert b'"last":"found"' in node.run_json(BODY)
    assert report.execution == doubt.value.execution
    assert world.asked == ["act"]


def test_an_erased_run_has_no_outcome(tmp_path: Path, host: Host) -> None:
    node = acting(tmp_path, host, "act", security="  sensitive_data: [text]\n")
    with vesper.run_context(key="17") as report:
        node.run_json(BODY)
    host.journal.erase(execution_of(report))
    with vesper.run_context(key="17"), pytest.raises(vesper.KeyReused, match="was erased"):
        node.run_json(BODY)


def test_a_broken_journal_is_an_error_and_no_repeat(node: vesper.Node, host: Host, tmp_path: Path) -> None:
    with vesper.run_context(key="17") as report:
        node.run_json(BODY)
    recorded = host.journal.read(execution_of(report))
    assert recorded.summary.status is Status.ENDED
    assert recorded.entries[-1].entry.kind is Kind.END
    for name in ("journal.db", "journal.db-wal", "journal.db-shm"):
        (tmp_path / name).unlink(missing_ok=True)
    host.journal.close()
    (tmp_path / "journal.db").write_bytes(b"no database" * 100)
    with vesper.run_context(key="17"), pytest.raises(JournalError):
        node.run_json(BODY)
