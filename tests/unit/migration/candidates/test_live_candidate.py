"""A candidate in a process: what it follows and counts, and that nothing of it reaches the caller."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import vesper
from tests.support.waiting import eventually
from tests.unit.migration.support.names import NAME, Project, amounts, decision, settle
from vesper.compiler import compile_file
from vesper.engines.engine import Limits
from vesper.engines.outcome import Returned
from vesper.migration.candidates.decisions import Order, Refused, give
from vesper.migration.candidates.live_candidate import MAX_FAULTS, LiveCandidate
from vesper.migration.candidates.record import MAX_PAIRS, Decision, decide, read_record, start_pair
from vesper.migration.router.node_state import now_us
from vesper.migration.shadow.recorded_program import transcript_of
from vesper.migration.stores.ledger import verify_history
from vesper.migration.stores.store import name_key


class Here:
    """A project whose name is loaded."""

    def __init__(self, folder: Path, candidate: str, engine: str = "python", settings: str = "") -> None:
        self.project = Project(folder, decision(1), candidate, settings)
        self.routes = self.project.routes()
        self.engine = engine
        self.node = self.load()

    def load(self, **options: Any) -> vesper.Node:
        return vesper.load(NAME, nodes=self.project.nodes, engine=self.engine, routes=self.routes, **options)

    @property
    def live(self) -> LiveCandidate:
        return next(iter(self.routes._candidates.values()))

    def found(self) -> Any:
        return self.project.found(self.routes)

    def decide(self, kind: Any) -> str:
        settle(self.routes)
        text = give(
            self.routes.migration.store,
            self.project.found(self.routes),
            Order(kind, "ann", "for a test", now_us()),
            lambda version: compile_file(self.project.nodes / f"{version}.vsp")[0],
        )
        self.routes.migration.tend()
        return text


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(params=["python", "jit", "auto"])
def here(folder: Path, request: pytest.FixtureRequest) -> Iterator[Here]:
    found = Here(folder, decision(2, middle="2.50"), request.param)
    yield found
    found.routes.close()


@pytest.fixture
def plain(folder: Path) -> Iterator[Here]:
    found = Here(folder, decision(2, middle="2.50"))
    yield found
    found.routes.close()


def test_callers_get_the_lead_and_differences_are_grouped(here: Here) -> None:
    answers = [here.node.call(each)["fee"] for each in amounts(10, 500, 600, 20)]
    assert answers == [Decimal("1.50"), Decimal("2.00"), Decimal("2.00"), Decimal("1.50")]
    assert here.node(amount=Decimal(700)).fee == Decimal("2.00")
    assert here.node.id == f"{NAME}_v1"
    counts = here.found().counts
    assert counts.results == {"agreed": 2, "changed": 3, "unanswered": 0, "limits": 0, "faults": 0}
    (group,) = counts.top_groups()
    assert (group.field, group.count) == ("outputs.fee", 3)
    assert any("amount <= 1000: yes" in each for each in group.lead_path.words)
    assert [each.inputs for each in group.examples] == ["amount = 500", "amount = 600", "amount = 700"]
    assert "fee = 2.00" in group.examples[0].lead
    assert "fee = 2.50" in group.examples[0].candidate


def test_failures_are_the_lead_s_and_compared_by_code(here: Here) -> None:
    assert here.node(amount=Decimal(5000)).error is not None
    counts = here.found().counts
    assert counts.results["agreed"] == 1, counts


def test_a_promoted_candidate_leads_the_next_call(here: Here) -> None:
    kept = here.node.call
    kept(amounts(500)[0])
    assert "fee_of_v2 leads fee_of" in here.decide("promoted")
    eventually(lambda: here.node.id == f"{NAME}_v2")
    assert kept(amounts(500)[0])["fee"] == Decimal("2.50")
    assert here.load().id == f"{NAME}_v2"
    assert here.found().counts.compared == 1  # nothing follows any more
    assert "is withdrawn" in here.decide("withdrawn")
    eventually(lambda: here.node.id == f"{NAME}_v1")
    assert kept(amounts(500)[0])["fee"] == Decimal("2.00")
    here.decide("resumed")
    eventually(lambda: here.live.is_following)
    kept(amounts(500)[0])
    assert here.found().counts.compared == 2


def test_decisions_are_lines_of_a_chained_history(plain: Here) -> None:
    plain.node.call(amounts(500)[0])
    plain.decide("withdrawn")
    lines = plain.routes.migration.store.history(name_key(NAME))
    assert verify_history(lines) is None
    assert '"kind":"candidate_started"' in lines[0].text
    assert all(each in lines[1].text for each in ('"candidate_withdrawn"', '"ann"', '"for a test"', '"changed":1'))


def test_a_decision_twice_is_refused(plain: Here) -> None:
    plain.node.call(amounts(1)[0])
    plain.decide("withdrawn")
    with pytest.raises(Refused, match="is withdrawn already, by ann"):
        plain.decide("withdrawn")


def test_a_decision_for_other_definitions_does_not_apply(plain: Here) -> None:
    plain.node.call(amounts(500)[0])
    plain.decide("promoted")
    (plain.project.nodes / f"{NAME}_v2.vsp").write_text(decision(2, middle="9.00"), encoding="utf-8")
    again = plain.load()
    assert again.id == f"{NAME}_v1"
    again.call(amounts(500)[0])
    found = plain.found()
    assert (found.state, found.counts.compared) == ("following", 1)
    assert found.stale is not None


def test_a_definition_that_was_never_followed_does_not_lead(plain: Here, caplog: pytest.LogCaptureFixture) -> None:
    plain.node.call(amounts(500)[0])
    settle(plain.routes)
    (plain.project.nodes / f"{NAME}_v2.vsp").write_text(decision(2, middle="9.00"), encoding="utf-8")
    store, pair = plain.routes.migration.store, plain.live.pair
    decide(store, NAME, Decision("promoted", pair.id, "ann", "on another machine", now_us()), {})
    plain.routes.migration.tend()
    assert "was changed since the candidate was followed" in caplog.text
    assert plain.node.call(amounts(500)[0])["fee"] == Decimal("2.00")


def test_an_input_that_one_version_declares_sensitive_is_so_in_both(folder: Path) -> None:
    lead = decision(
        1, inputs="  country: string\n", outputs="    place: string\n", returned="{fee: fee, place: \"'x'\"}"
    )
    candidate = decision(
        2, inputs="  country: string\n", outputs="    place: string\n", returned="{fee: fee, place: country}"
    )
    project = Project(folder, lead + "security: {sensitive_data: [country]}\n", candidate)
    routes = project.routes()
    try:
        node = vesper.load(NAME, nodes=project.nodes, engine="python", routes=routes)
        node.call({"amount": Decimal(5), "country": "Utopia"})
        (group,) = project.found(routes).counts.top_groups()
        assert group.field == "outputs.place"
        assert "Utopia" not in repr(group)
    finally:
        routes.close()


def test_other_settings_of_a_pair_count_on(plain: Here) -> None:
    plain.node.call(amounts(500)[0])
    settle(plain.routes)
    settings = replace(plain.project.config.versions[NAME], until=date(2099, 1, 1))
    lead, other = (compile_file(plain.project.nodes / f"{NAME}_v{each}.vsp")[0] for each in (1, 2))
    assert lead is not None
    assert other is not None
    again = plain.routes.candidate(NAME, settings, lead, other)
    assert again is not plain.live
    again.put(transcript_of(amounts(600)[0], None, (), Returned({"fee": Decimal("2.00")})), 0, None)
    assert plain.found().counts.compared == 2


def test_a_pair_that_gave_way_stays_away_until_it_counts(plain: Here) -> None:
    store, mine = plain.routes.migration.store, plain.live.pair
    plain.routes.migration.tend()
    others = [replace(mine, candidate_hash=f"{number:064x}") for number in range(MAX_PAIRS)]
    for each in others:
        start_pair(store, NAME, each, "ann", now_us())
    plain.routes.migration.tend()
    assert [each.pair for each in read_record(store, NAME).pairs] == others
    assert len(store.history(name_key(NAME))) == 1 + MAX_PAIRS
    plain.node.call(amounts(500)[0])
    assert plain.found().counts.compared == 1
    assert read_record(store, NAME).started(mine.id) is not None


def test_a_record_that_cannot_be_read_stops_nothing_else(plain: Here, caplog: pytest.LogCaptureFixture) -> None:
    ran: list[int] = []
    plain.routes.migration.chores.append(lambda: ran.append(1))
    store = plain.routes.migration.store
    store.transact(name_key(NAME), lambda transaction: transaction.put_state('{"format": 2}'))
    before = len(ran)
    for _ in range(3):
        plain.routes.migration.tend()
    assert len(ran) >= before + 3
    assert caplog.text.count("have to wait") == 1
    assert plain.node.call(amounts(500)[0])["fee"] == Decimal("2.00")


def test_a_candidate_with_a_wider_interface_can_lead(folder: Path) -> None:
    candidate = decision(
        2,
        inputs="  country: {type: string, default: DE}",
        outputs="    code: string",
        returned="{fee: fee, code: \"'x'\"}",
    )
    here = Here(folder, candidate)
    try:
        here.node.call(amounts(5)[0])
        assert here.found().counts.results["agreed"] == 1
        assert "leads" in here.decide("promoted")
    finally:
        here.routes.close()


def test_an_interface_that_breaks_callers_is_refused(folder: Path) -> None:
    here = Here(folder, decision(2, inputs="  country: string"))
    try:
        here.node.call(amounts(5)[0])
        counts = here.found().counts
        assert [each.field for each in counts.top_groups()] == ["outcome: returned → inputs refused"]
        with pytest.raises(Refused, match="input `country` added"):
            here.decide("promoted")
    finally:
        here.routes.close()


def test_a_broken_candidate_file_harms_nothing(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    project = Project(folder, decision(1), decision(2).replace("amount <= 100,", "amnt <= 100,"))
    assert vesper.load(NAME, nodes=project.nodes).call(amounts(5)[0])["fee"] == Decimal("1.50")
    assert "cannot be compiled and does not follow" in caplog.text


def test_a_failing_engine_is_a_fault_and_ends_the_following_in_time(plain: Here) -> None:
    class Broken:
        def call_pathed(self, *_: Any, **__: Any) -> Any:
            raise RuntimeError("secret 42")

        start_pathed = call_pathed

    plain.live._comparison._candidate = replace(plain.live._comparison._candidate, program=Broken)  # type: ignore[arg-type]
    for _ in range(MAX_FAULTS + 20):
        assert plain.node.call(amounts(500)[0])["fee"] == Decimal("2.00")
    counts = plain.found().counts
    assert MAX_FAULTS <= counts.results["faults"] <= MAX_FAULTS + 20
    assert counts.fault == "RuntimeError"
    assert not plain.live.is_following


def test_a_candidate_that_hangs_is_abandoned(plain: Here) -> None:
    release = threading.Event()

    class Hanging:
        def start_pathed(self, *_: Any, **__: Any) -> Any:
            release.wait(30)
            raise RuntimeError

    plain.live._comparison._candidate = replace(plain.live._comparison._candidate, program=Hanging)  # type: ignore[arg-type]
    plain.live._bounds = replace(plain.live._bounds, deadline=0.02)
    try:
        assert plain.node.call(amounts(500)[0])["fee"] == Decimal("2.00")
        eventually(lambda: not plain.live.is_following)
    finally:
        release.set()
    assert plain.found().counts.results["faults"] == 1


def test_share_and_end_bound_what_is_followed(folder: Path) -> None:
    here = Here(folder, decision(2), settings='share = "10 %"')
    try:
        for _ in range(400):
            here.node.call(amounts(1)[0])
        assert 10 <= here.found().counts.compared <= 90
        here.live._settings = replace(here.live._settings, until=date(2020, 1, 1))
        here.routes.migration.tend()
        assert not here.live.is_following
    finally:
        here.routes.close()


def test_limits_of_a_caller_hold_and_refused_inputs_are_compared(plain: Here) -> None:
    assert plain.load(limits=Limits(fuel=10**6))(amount=Decimal(5)).fee == Decimal("1.50")
    assert plain.node(amount="no number").error is not None
    assert plain.found().counts.results["agreed"] >= 1


def test_a_batch_is_counted_once(plain: Here) -> None:
    plain.node.call(amounts(500)[0])
    settle(plain.routes)
    live, store = plain.live, plain.routes.migration.store
    before = plain.found().counts
    live._sending = (live._number, before)  # as after a commit whose result the process does not know
    live.sync(store, is_all=True)
    assert plain.found().counts.results == before.results


def test_a_child_of_a_fork_counts_its_own(plain: Here) -> None:
    plain.node.call(amounts(500)[0])
    pid = os.fork()
    if pid == 0:
        try:
            plain.node.call(amounts(10)[0])
            plain.routes.close()
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    counts = plain.found().counts
    assert (counts.results["changed"], counts.results["agreed"]) == (1, 1)


def test_another_version_by_its_id_has_no_candidate(plain: Here) -> None:
    other = vesper.load(f"{NAME}_v2", nodes=plain.project.nodes, engine="python", routes=plain.routes)
    assert other.call(amounts(500)[0])["fee"] == Decimal("2.50")
    assert plain.found().counts.is_empty


def test_a_closed_store_keeps_counts_bounded_and_serves(plain: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    from vesper.migration.stores.store import StoreAway

    def away(*_: Any) -> Any:
        raise StoreAway("away")

    with monkeypatch.context() as patched:
        patched.setattr(plain.routes.migration.store, "read", away)
        assert plain.node.call(amounts(500)[0])["fee"] == Decimal("2.00")
        plain.routes.migration.tend()
    assert plain.found().counts.compared == 1
    assert read_record(plain.routes.migration.store, NAME).decision is None


def test_the_lead_is_not_an_engine_of_the_migration(here: Here) -> None:
    assert here.node.mode == ("shadow_direct" if here.engine == "auto" else None)
