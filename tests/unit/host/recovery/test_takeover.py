"""What a run keeps when somebody else takes it over: its grants where it has begun, its audit, its answers, its time;
and that every run can be ended."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import pytest

import vesper
from tests.support.journal_file import run_statement
from tests.unit.host.custom_world import Died, World, acting, dies, host_of, settings
from tests.unit.host.small import host_in, node_from
from vesper.effects.performer import Ask, EffectFailed
from vesper.engines.outcome import Denied, Returned
from vesper.engines.registry import ENGINES
from vesper.host.host import Host
from vesper.host.prepared import definition_of
from vesper.journal.entry import Entry, Kind
from vesper.journal.journal import Beginning, NotTaken, Status, open_journal
from vesper.migration.shadow.journal_replay import follow
from vesper.testing import Sources

DETAILED = "  audit_level: detailed\n"


def left(tmp_path: Path, world: World, *names: str, **more: str) -> None:
    """A run that another machine began, and whose process is gone."""
    with pytest.raises(Died):
        acting(tmp_path, host_of(settings(tmp_path), world, "another machine", 0.01), *names, **more)(
            event_id="e", text="t"
        )
    time.sleep(0.03)
    world.does.clear()


def kinds(host: Host, execution: str) -> list[str]:
    return [f"{each.entry.kind} {each.entry.path}".strip() for each in host.journal.read(execution).entries]


def test_a_run_whose_grants_shrank_goes_on_to_the_step_that_lacks_one(tmp_path: Path) -> None:
    world = World(second=dies)
    left(tmp_path, world, "first", "second", "third", effect_class="txn")
    less = [{"nodes": ["acting"], "allow": ["effect.call.first", "effect.call.second"]}]
    with host_of(settings(tmp_path, grants=less), world) as host:
        (found,) = host.recover()
        assert isinstance(found.outcome, Denied)
        assert found.outcome.capability == "effect.call.third"
        assert world.asked == ["first", "second", "second"], "what it may still do is done"
        outcome = acting(tmp_path, host, "first", "second", "third")(event_id="new", text="t")
        assert outcome.error is not None
        assert outcome.error.kind == "denied"
        assert len(world.asked) == 3, "a new run is denied before it begins"


def test_a_step_that_may_have_happened_is_in_doubt_and_not_denied(tmp_path: Path) -> None:
    world = World(second=dies)
    left(tmp_path, world, "first", "second", effect_class="txn")
    less = [{"nodes": ["acting"], "allow": ["effect.call.first"]}]
    with host_of(settings(tmp_path, grants=less), world) as host:
        (found,) = host.recover()
        assert found.outcome is None
        assert "`effect.call.second` was taken away since" in found.why
        assert host.journal.read(found.execution).summary.status is Status.IN_DOUBT


def test_the_time_of_a_run_does_not_undo_what_may_have_happened(tmp_path: Path) -> None:
    """Taken over at a step that was sent, with no time left: it is finished, not said to have never been tried."""
    world = World(second=dies)
    left(tmp_path, world, "first", "second", effect_class="txn", performance="{timeout_seconds: 1}")
    hours = count(0, 3_600_000_000_000)  # each look at the clock is an hour after the last one
    sources = Sources(monotonic_ns=lambda: next(hours))
    with host_of(settings(tmp_path), world, sources=sources) as host:
        (found,) = host.recover()
        assert isinstance(found.outcome, Returned)


@pytest.mark.parametrize("engine", list(ENGINES))
def test_the_audit_of_a_run_tells_all_that_it_did_once(tmp_path: Path, engine: str) -> None:
    world = World(second=dies)
    left(tmp_path, world, "first", "second", security=DETAILED, engine=engine)
    with host_of(settings(tmp_path), world) as host:
        (found,) = host.recover()
        assert found.outcome is None
        host.journal.resolve(found.execution, "second", "seen", None, "kim", "it is in the ledger")
        (found,) = host.recover()
        assert isinstance(found.outcome, Returned)
        lines = [(each["action"], each["fields"]) for each in host.journal.audit_events()]
        told = [(action, fields.get("step"), fields["result"], fields.get("said_by")) for action, fields in lines]  # type: ignore[attr-defined, index]
        assert told == [
            ("custom", "first", "success", None),
            ("custom", "second", "success", "kim"),
            ("acting", None, "success", None),
        ]
        assert host.recover() == []


def test_the_audit_has_its_own_clock(tmp_path: Path) -> None:
    with host_of(settings(tmp_path), World()) as host:
        before = time.time_ns() // 1000
        acting(tmp_path, host, "first", security=DETAILED)(event_id="e", text="t", now="1999-01-01T00:00:00Z")
        times = [each["at_us"] for each in host.journal.audit_events()]
        assert len(times) == 2
        assert all(isinstance(at, int) and at >= before for at in times)


@pytest.mark.parametrize("level", ["basic", "detailed"])
@pytest.mark.parametrize("how", ["returned", "denied", "limit_hit", "engine_fault"])
def test_every_end_is_audited_once(tmp_path: Path, level: str, how: str) -> None:
    def broken(ask: Ask) -> object:
        raise ValueError("a bug")

    world = World(**({"first": broken} if how == "engine_fault" else {}))
    grants = [{"nodes": ["acting"], "allow": [] if how == "denied" else ["effect.*"]}]
    with host_of(settings(tmp_path, grants=grants), world) as host:
        performance = "{memory_limit_mb: 1}" if how == "limit_hit" else ""
        node = acting(tmp_path, host, "first", security=f"  audit_level: {level}\n", performance=performance)
        outcome = node(event_id="e", text="t" * (2 << 20) if how == "limit_hit" else "t")
        assert (outcome.error.kind if outcome.error else "returned") == how
        ends = [each for each in host.journal.audit_events() if each["action"] == "acting"]
        assert [each["fields"]["outcome"] for each in ends] == [how]  # type: ignore[index]


def test_an_audit_that_is_too_large_is_cut_and_the_run_ends(tmp_path: Path) -> None:
    journal = {"dsn": f"sqlite:{tmp_path / 'journal.db'}", "max_body": "40 KiB"}
    world = World(first=lambda _: "x" * 30_000)
    with host_of(settings(tmp_path, journal=journal), world) as host:
        outcome = acting(tmp_path, host, "first", security=DETAILED)(event_id="e", text="t" * 30_000)
        assert outcome.ok
        effect, end = host.journal.audit_events()
        assert "arguments" in effect["fields"]  # type: ignore[operator]
        assert set(end["fields"]) == {"result", "outcome", "left_out"}  # type: ignore[call-overload]


# -- answers that the journal does not take --------------------------------------------------------


@pytest.mark.parametrize("engine", list(ENGINES))
def test_an_answer_that_is_too_large_is_a_failure_of_the_step(tmp_path: Path, engine: str) -> None:
    journal = {"dsn": f"sqlite:{tmp_path / 'journal.db'}", "max_body": "20 KiB"}
    world = World(first=lambda _: "x" * 30_000)
    with host_of(settings(tmp_path, journal=journal), world) as host:
        node = acting(tmp_path, host, "first", engine=engine)
        outcome = node(event_id="e", text="t")
        assert outcome.error is not None
        assert outcome.error.code == "bad_response"
        assert kinds(host, outcome.trace_id) == ["START", "INTENT first", "FAILED first", "END"]
        entries = [each.entry for each in host.journal.read(outcome.trace_id).entries]
        assert "raise `max_body`" in str(entries[2].body["message"])
        assert entries[2].body["may_have_happened"] is True
        for other in ENGINES.values():
            assert follow(other.load(node._compiled), entries).difference is None


def test_an_outcome_that_is_too_large_is_a_limit_and_the_run_ends(tmp_path: Path) -> None:
    """A run that could not be ended would be taken over and repeated for ever."""
    journal = {"dsn": f"sqlite:{tmp_path / 'journal.db'}", "max_body": "20 KiB"}
    world = World()
    config = settings(tmp_path, journal=journal, grants=[{"nodes": ["echo"], "allow": ["effect.*"]}])
    path = tmp_path / "echo_v1.vsp"
    path.write_text(
        "node_id: echo_v1\ntype: event_handler\nintent: Say it several times\n"
        "inputs:\n  event_id: string\n  text: string\noutputs:\n  success:\n    all: string\n"
        "flow:\n  - {step: act, operation: custom, name: act, returns: string}\n"
        "  - operation: return\n    success: {all: text + text + text}\n"
        "security:\n  capabilities_required: [effect.call.act]\n  audit_level: basic\n",
        encoding="utf-8",
    )
    with host_of(config, world) as host:
        outcome = vesper.load(path, host=host)(event_id="e", text="t" * 10_000)
        assert outcome.error is not None
        assert (outcome.error.kind, outcome.error.code) == ("limit_hit", "max_body")
        assert "`max_body` of [journal]" in outcome.error.message
        assert host.journal.read(outcome.trace_id).summary.status is Status.ENDED
        (line,) = host.journal.audit_events()
        assert line["fields"] == {"result": "limit max_body", "outcome": "limit_hit"}


def test_what_happened_is_written_before_a_limit_stops_the_run(tmp_path: Path) -> None:
    world = World(first=lambda _: "x" * (2 << 20))
    with host_of(settings(tmp_path), world) as host:
        outcome = acting(tmp_path, host, "first", "second", performance="{memory_limit_mb: 1}")(event_id="e", text="t")
        assert outcome.error is not None
        assert outcome.error.code == "memory_limit_mb"
        assert kinds(host, outcome.trace_id) == ["START", "INTENT first", "RESULT first", "END"]


def test_a_request_that_was_too_late_is_followed_by_the_other_engine(tmp_path: Path) -> None:
    def slow(_: Ask) -> object:
        time.sleep(1.1)
        return "done"

    with host_of(settings(tmp_path), World(first=slow)) as host:
        node = acting(tmp_path, host, "first", "second", performance="{timeout_seconds: 1}")
        outcome = node(event_id="e", text="t")
        assert outcome.error is not None
        assert outcome.error.code == "timeout_seconds"
        entries = [each.entry for each in host.journal.read(outcome.trace_id).entries]
        assert entries[-2].kind is Kind.FAILED
        for other in ENGINES.values():
            assert follow(other.load(node._compiled), entries).difference is None


def test_a_request_that_differs_can_be_resolved(tmp_path: Path) -> None:
    """The journal has another request at the path: nothing is sent, and somebody may say what came of it."""
    world = World()
    with host_of(settings(tmp_path), world, "another machine", 0.01) as other:
        compiled = acting(tmp_path, other, "first", effect_class="txn")._compiled
        begun = Beginning(
            "0" * 32, definition_of(compiled), {"event_id": "e", "text": "t"}, datetime.now(UTC), "python"
        )
        run = other.journal.begin(begun)
        body = {"fixed": {"name": "first"}, "arguments": {}}
        run.append(Entry(Kind.INTENT, "first", "custom", "txn", None, "another digest", body, 1))
        run.commit()
    time.sleep(0.03)
    with host_of(settings(tmp_path), world) as host:
        (summary,) = host.journal.find()
        (found,) = host.recover()
        assert found.outcome is None
        assert world.asked == []
        host.journal.resolve(summary.execution, "first", "seen", None, "kim", "looked")
        (found,) = host.recover()
        assert isinstance(found.outcome, Returned)
        assert found.outcome.value == {"last": "seen"}
        assert world.asked == []


# -- whose run it is -------------------------------------------------------------------------------


def test_nobody_takes_over_what_this_process_is_running(tmp_path: Path) -> None:
    """The machine slept and the lease is over: the run is still ours, on this Host and on another of the process."""
    tried: list[object] = []

    def second(_: Ask) -> object:
        time.sleep(0.03)
        (summary,) = first_host.journal.find()
        for host in (first_host, second_host):
            tried.extend(host.recover())
            with pytest.raises(NotTaken, match="this process is running it"):
                host.resume(summary.execution)
        return "done"

    config = settings(tmp_path)
    world = World(second=second)
    with host_of(config, world, "me", 0.01) as first_host, host_of(config, world, "me", 0.01) as second_host:
        assert acting(tmp_path, first_host, "first", "second")(event_id="e", text="t").ok
        assert tried == []
        assert world.asked == ["first", "second"]


def test_a_run_that_cannot_be_finished_is_in_nobodys_way(tmp_path: Path) -> None:
    world = World(first=dies)
    left(tmp_path, world, "first", effect_class="txn")
    world.does["first"] = dies
    left(tmp_path, world, "first", effect_class="txn")
    with host_of(settings(tmp_path), world) as host:
        sick, well = (each.execution for each in host.journal.unfinished())
        first = "(SELECT min(place) FROM vesper_commits)"  # of the run that began first
        run_statement(tmp_path / "journal.db", f"UPDATE vesper_commits SET lines = x'5b' WHERE place = {first}")  # noqa: S608
        found = {each.execution: each for each in host.recover(limit=2)}
        assert isinstance(found[well].outcome, Returned)
        assert found[sick].outcome is None
        assert found[sick].why.startswith("JournalError: ")
        assert host.recover() == [], "it is tried again, but not at once"


def test_a_node_that_cannot_be_loaded_is_not_taken(tmp_path: Path) -> None:
    world = World(first=dies)
    left(tmp_path, world, "first", effect_class="txn")
    with host_of(settings(tmp_path), world) as host:
        (found,) = host.recover("warp")
        assert "there is no engine `warp` here" in found.why
        assert "HANDOFF" not in kinds(host, found.execution)


def test_a_caller_who_is_left_without_an_outcome_is_told_where_to_look(tmp_path: Path) -> None:
    file, aside = tmp_path / "journal.db", tmp_path / "aside.db"

    def lose_journal(_: Ask) -> object:
        file.rename(aside)
        return "done"

    with host_of(settings(tmp_path), World(first=lose_journal)) as host:
        with pytest.raises(vesper.JournalError, match="deleted or replaced the journal") as caught:
            acting(tmp_path, host, "first", effect_class="txn")(event_id="e", text="t")
        aside.rename(file)
        (summary,) = host.journal.find()
        assert summary.execution in caught.value.__notes__[0]
        assert summary.status is Status.RUNNING


def test_inputs_that_are_no_values_are_bad_inputs(tmp_path: Path) -> None:
    world = World()
    with host_of(settings(tmp_path), world) as host:
        node = acting(tmp_path, host, "first")
        endless: list[object] = []
        endless.append(endless)
        for wrong in (object(), endless, {1, "a"}):
            outcome = node(event_id="e", text=wrong)
            assert outcome.error is not None
            assert (outcome.error.kind, outcome.error.code) == ("failed", "bad_input")
        assert world.asked == []
        assert host.journal.find() == []


PROVIDED = """
node_id: provided_v1
type: event_handler
intent: Ask a provider that wants a credential
inputs:
  event_id: string
outputs:
  success: {status: string}
flow:
  - step: sent
    operation: external_api_call
    provider: shop
    method: POST
    endpoint: /orders
    effect: keyed
    expect: {status: string}
    on_error:
      any: {value: "{status: 'failed'}"}
  - operation: return
    success: {status: sent.status}
security:
  capabilities_required: [network.http_client.shop]
"""


@pytest.mark.parametrize("engine", list(ENGINES))
def test_a_run_is_not_taken_over_by_who_lacks_its_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    """What may have been sent is not taken for what failed, because a secret is not where it is finished."""
    monkeypatch.delenv("VESPER_SECRET_SHOP_KEY", raising=False)
    shop = {"base_url": "https://shop.example", "auth": {"value": "Bearer {secret:shop_key}"}}
    settings = {"providers": {"shop": shop}}
    dsn = f"sqlite:{tmp_path / 'journal.db'}"

    class Shop(World):
        def perform(self, ask: Ask) -> object:
            self.asked.append(ask.path)
            raise Died

    world = Shop()
    journal = open_journal(dsn, owner="another machine", lease_seconds=0.01)
    with pytest.raises(Died):
        node_from(
            PROVIDED, tmp_path, host_in(tmp_path, settings, journal=journal, performers={"http_request": world}), engine
        )(event_id="e")
    time.sleep(0.03)
    with host_in(tmp_path, settings) as host:
        (found,) = host.recover()
        assert found.outcome is None
        assert "a secret that is needed cannot be had here: there is no secret `shop_key`" in found.why
        assert kinds(host, found.execution) == ["START", "INTENT sent"]


@pytest.mark.parametrize(
    "code, may_have_happened", [("unavailable", True), ("timeout", True), ("effect_failed", False)]
)
def test_a_repeat_that_is_not_answered_says_nothing_about_the_first(
    tmp_path: Path, code: str, may_have_happened: bool
) -> None:
    def fails(_ask: Ask) -> object:
        raise EffectFailed(code, "not now")

    world = World(first=dies)
    left(tmp_path, world, "first", effect_class="txn")
    world.does["first"] = fails
    with host_of(settings(tmp_path), world) as host:
        (found,) = host.recover()
        entries = [each.entry for each in host.journal.read(found.execution).entries]
    (failed,) = [each for each in entries if each.kind is Kind.FAILED]
    assert (failed.body["code"], failed.body["may_have_happened"]) == (code, may_have_happened)
