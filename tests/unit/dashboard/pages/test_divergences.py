"""Pages of divergences: what they show, what they refuse, what they change."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.support.dashboard import TestClient, client_of, context_for
from tests.support.journalled import compiled_node, node_text
from tests.support.nodes import PAYMENT_DECISION
from tests.unit.migration.support.divergences import INPUTS, KEY, MINUTE, NOON, a_cent_more, fill, node, put, seen
from tests.unit.migration.support.wrong_engine import DoneLie, WrongEngine, recorded
from vesper.compiler import compile_file
from vesper.config.settings import default_config
from vesper.dashboard.access.caller import Caller, Role
from vesper.dashboard.access.guard import Access
from vesper.dashboard.app import make_app, whole_site
from vesper.dashboard.pages.divergences import keeping
from vesper.dashboard.pages.divergences.detail import DivergencePage, read_detail
from vesper.dashboard.pages.divergences.keeping import keep_case, read_case
from vesper.dashboard.pages.divergences.listing import read_list
from vesper.dashboard.pages.divergences.shrinking import ShrinkProgress, jobs_of, read_shrinking, start_shrinking
from vesper.dashboard.problem import BadRequest, NotFound, Refused
from vesper.dashboard.stores import Stores
from vesper.engines.registry import ENGINES, PAIR
from vesper.migration.compare.divergence import Divergence
from vesper.migration.compare.divergence_record import divergence_of
from vesper.migration.compare.reports import Difference, Disagreement, Fault
from vesper.migration.control.state import Diverged, EngineFaulted, Noisy
from vesper.migration.stores.store import Happened, NodeKey, Store
from vesper.verify.differential.verifier import meets
from vesper.verify.inputs.responses import run_case

NODE = KEY.node
SITE = whole_site(("vesper.dashboard.pages.divergences",))
SCRIPT = "<script>alert(1)</script>"
SECRET = "ann@example.com"


@pytest.fixture
def stores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stores]:
    """A project with the node and a store."""
    monkeypatch.delenv("VESPER_NODES", raising=False)
    (tmp_path / "nodes").mkdir()
    shutil.copy(PAYMENT_DECISION, tmp_path / "nodes")
    (tmp_path / ".vesper").mkdir()
    (tmp_path / ".vesper" / "migration.db").touch()
    found = Stores(default_config(tmp_path))
    yield found
    found.close()


@pytest.fixture
def wrong(monkeypatch: pytest.MonkeyPatch) -> Callable[[DoneLie | None], None]:
    """Makes the direct engine lie."""

    def lie(at_end: DoneLie | None) -> None:
        engines = {**PAIR, "interp": WrongEngine(PAIR["interp"], at_end)}
        monkeypatch.setattr("vesper.engines.registry.PAIR", engines)

    return lie


def detail(stores: Stores, fingerprint: str) -> DivergencePage:
    return read_detail(context_for(stores, node=NODE, fingerprint=fingerprint))


def put_request(store: Store) -> str:
    """A divergence in a field of a request, with a hostile value."""
    texts = (
        f'asks for charge (x)\nbody = {{label: "{SCRIPT}"}}\nbody.label = "{SCRIPT}"',
        'asks for charge (x)\nbody = {label: "b"}\nbody.label = "b"',
    )
    difference = Difference("request", "charge: body.label", "asks", "asks", is_effect=True, requests=texts)
    transcript = recorded(ENGINES["python"].load(node()), {**INPUTS, "country": SCRIPT})
    found = divergence_of(Disagreement(difference, None, None, transcript, None), node(), False, NOON)
    put(store, KEY, Happened(Diverged("", found.fingerprint, is_effect=True), found, 0))
    return found.fingerprint


# -- list -----------------------------------------------------------------------------------------


def test_open_ones_of_current_epochs_are_listed_last_seen_first(stores: Stores) -> None:
    store = stores.migration
    first, second = fill(store), put_request(store)
    old, note = seen("150.00", NOON - 90 * MINUTE)
    put(store, NodeKey(NODE, "0" * 32), Happened(Diverged(note.name, old.fingerprint), old, 1))
    now = NOON + 2 * MINUTE
    found = read_list(context_for(stores, now_us=now))
    assert [(each.fingerprint, each.count) for each in found.rows] == [(first, 2), (second, 1)]
    assert found.rows[0].engines == ("python", "direct")
    assert found.states == {"open": 2, "older": 1, "closed": 0, "all": 3}
    assert [each.epoch for each in read_list(context_for(stores, {"state": "older"}, now)).rows] == ["0" * 12]
    assert [each.kind for each in read_list(context_for(stores, {"kind": "request"}, now)).rows] == ["request"]
    assert read_list(context_for(stores, {"node": "payment_decision"}, now)).states["all"] == 3
    assert read_list(context_for(stores, {"node": "other"}, now)).states["all"] == 0
    assert read_list(context_for(stores, {"since": "1h"}, now)).states["all"] == 2
    with pytest.raises(BadRequest):
        read_list(context_for(stores, {"state": "mended"}, now))


def test_a_damaged_divergence_is_reported_and_hides_no_other(stores: Stores) -> None:
    fill(stores.migration)
    stores.migration.transact(KEY, lambda transaction: transaction.put_divergence("0" * 16, '{"format": 2}'))
    found = read_list(context_for(stores))
    assert len(found.rows) == 1
    assert "unreadable divergence of payment_decision_v1" in found.warnings[0]


# -- one ------------------------------------------------------------------------------------------


def test_both_outcomes_inputs_path_and_history_are_shown(stores: Stores) -> None:
    found = detail(stores, fill(stores.migration))
    first, second = found.executions
    (marked,) = [each for each in first.rows if each.is_marked]
    assert (marked.name, marked.leader, marked.follower) == ("fee", "18.86400", "18.87400")
    assert first.first == marked
    assert {each.name: each.text for each in first.inputs}["amount"] == "734.56"
    assert not first.is_journalled
    assert second.at_us - first.at_us == MINUTE
    assert found.path_words[:2] == ("amount <= 1000: yes", "amount <= 100: no")
    assert found.row.fingerprint in found.history[-1].lines[0]
    assert found.todo[0] == "Shrink it to the smallest case."


def test_steps_are_shown_up_to_the_first_difference(stores: Stores, wrong: Callable[[DoneLie | None], None]) -> None:
    fingerprint = fill(stores.migration)
    assert "and agree" in detail(stores, fingerprint).rerun.note
    wrong(a_cent_more)
    found = detail(stores, fingerprint).rerun
    assert found.note == "The engines ran again here and differ."
    *equal, last = found.rows
    assert equal
    assert all(each.leader == each.follower and not each.is_marked for each in equal)
    assert last.is_marked
    assert "fee = 18.86400" in (last.leader or "")
    assert "fee = 18.87400" in (last.follower or "")


def test_requests_and_outcomes_of_both_engines_are_shown(stores: Stores, tmp_path: Path) -> None:
    text = node_text()
    (tmp_path / "nodes" / "charge_v1.vsp").write_text(text)
    compiled = compiled_node(text)
    given = {"event_id": "e", "customer": "cus", "amount": Decimal("10.00")}
    answers = {"known": 15, "charge": {"id": "ch_1", "fee": Decimal("0.1"), "note": None}}
    transcript = recorded(ENGINES["python"].load(compiled), given, datetime(2026, 11, 15, tzinfo=UTC), answers)
    texts = ("asks for charge (custom)\namount = 10.00", "asks for nothing")
    difference = Difference("request", "charge", "asks", "asks", is_effect=True, requests=texts)
    found = divergence_of(Disagreement(difference, None, 7, transcript, None, "01J"), compiled, False, NOON)
    put(stores.migration, NodeKey("charge_v1", "e" * 32), Happened(Diverged("", found.fingerprint), found))
    shown = read_detail(context_for(stores, node="charge_v1", fingerprint=found.fingerprint))
    assert {each.name: each.text for each in shown.executions[0].completions}["known"] == "15"
    assert [each.name for each in shown.rerun.requests] == ["known", "charge"]
    assert 'customer: "cus"' in (shown.rerun.requests[1].leader or "")
    assert not any(each.is_marked for each in (*shown.rerun.requests, *shown.rerun.outcomes))
    with client_of(stores.config, SITE) as client:
        page = client.get(f"/divergences/charge_v1/{found.fingerprint}").text
    assert "Both requests" in page
    assert "Outcomes of the engines that ran again" in page


def test_a_changed_node_is_not_run_again(stores: Stores, tmp_path: Path) -> None:
    fingerprint = fill(stores.migration)
    path = tmp_path / "nodes" / PAYMENT_DECISION.name
    path.write_text(path.read_text().replace("0.50", "0.60", 1))
    found = detail(stores, fingerprint)
    assert "has changed since the divergence" in found.rerun.note
    assert found.path_words == ("returned",)
    with pytest.raises(Refused, match="has changed since the divergence"):
        start_shrinking(context_for(stores, node=NODE, fingerprint=fingerprint), {})


def test_a_file_that_others_can_write_is_neither_run_nor_written(stores: Stores, tmp_path: Path) -> None:
    fingerprint = fill(stores.migration)
    (tmp_path / "nodes" / PAYMENT_DECISION.name).chmod(0o666)
    assert "cannot run again" in (note := detail(stores, fingerprint).rerun.note)
    assert "is not trusted" in note
    context = context_for(stores, node=NODE, fingerprint=fingerprint)
    for refused in (start_shrinking, keep_case):
        with pytest.raises(Refused, match="is not trusted"):
            refused(context, {"reason": "fee"})


def test_the_mode_change_of_differing_effects_is_shown(stores: Stores) -> None:
    found = detail(stores, put_request(stores.migration))
    lines = [line for each in found.history for line in each.lines]
    assert any("latched: effect_mismatch" in line for line in lines)
    assert found.mode == "python_only"
    assert "effect_mismatch" in found.latches[0]
    assert found.executions[0].are_requests
    assert found.todo[-1].startswith("Resume the node")


def test_a_fault_and_noise_are_not_repeated(stores: Stores) -> None:
    store = stores.migration
    fault = divergence_of(Fault("panicked: index 5 of 3"), node(), False, NOON)
    put(store, KEY, Happened(EngineFaulted("panicked"), fault))
    found = detail(stores, fault.fingerprint)
    assert "does not repeat a fault" in found.rerun.note
    assert "engine_fault" in found.history[-1].lines[0]
    noise = Divergence("c" * 16, NODE, "noise", "outputs.fee", "", ("interp", "interp"), first_us=NOON, last_us=NOON)
    put(store, KEY, Happened(Noisy(noise.fingerprint, noise.where), noise))
    assert detail(stores, noise.fingerprint).todo[0].startswith("Find what the engine depends on")
    with pytest.raises(Refused, match="differs from itself"):
        start_shrinking(context_for(stores, node=NODE, fingerprint=noise.fingerprint), {})
    with pytest.raises(NotFound):
        detail(stores, "f" * 16)


def test_a_sensitive_node_shows_no_value(stores: Stores, tmp_path: Path) -> None:
    text = node_text(sensitive=True)
    (tmp_path / "nodes" / "charge_v1.vsp").write_text(text)
    compiled = compiled_node(text)
    given = {"event_id": "e", "customer": SECRET, "amount": Decimal("10.00")}
    answers = {"known": 15, "charge": {"id": f"ch_{SECRET}", "fee": Decimal("0.1"), "note": None}}
    transcript = recorded(ENGINES["python"].load(compiled), given, datetime(2026, 11, 15, tzinfo=UTC), answers)
    report = Disagreement(
        Difference("outcome", "outputs.fee", "returned", "returned"), None, 7, transcript, transcript.outcome, "01J"
    )
    found = divergence_of(report, compiled, True, NOON)
    put(stores.migration, NodeKey("charge_v1", "e" * 32), Happened(Diverged("", found.fingerprint), found))
    with client_of(stores.config, SITE) as client:
        page = client.get(f"/divergences/charge_v1/{found.fingerprint}").text
    assert SECRET not in page
    assert "the node is sensitive, and the journal has them" in page
    assert 'href="/executions/01J/step"' in page
    assert "shrink " + found.fingerprint + " --reveal" in page
    context = context_for(stores, node="charge_v1", fingerprint=found.fingerprint)
    with pytest.raises(Refused, match="no inputs are stored"):
        start_shrinking(context, {})
    with pytest.raises(Refused, match="the node is sensitive"):
        read_case(context)


# -- HTML -----------------------------------------------------------------------------------------


def test_hostile_values_are_escaped(stores: Stores) -> None:
    fingerprint = put_request(stores.migration)
    with client_of(stores.config, SITE) as client:
        for address in (f"/divergences/{NODE}/{fingerprint}", "/divergences?node=%3Cscript%3E"):
            page = client.get(address)
            assert page.status_code == 200
            assert "<script>" not in page.text
        assert "&lt;script&gt;alert(1)" in client.get(f"/divergences/{NODE}/{fingerprint}").text
        listed = client.get("/api/divergences").json()
        assert listed["rows"][0]["where"] == "charge: body.label"


def test_a_viewer_sees_which_role_is_needed(stores: Stores) -> None:
    address = f"/divergences/{NODE}/{fill(stores.migration)}"
    with client_of(stores.config, SITE, roles=(Role.VIEWER,)) as viewer:
        assert "<strong>Close</strong> needs the role operator" in viewer.get(address).text
        assert "needs the role author" in viewer.get(f"{address}/case").text
        for action in ("shrink", "case", "close"):
            assert viewer.post(f"/api{address}/{action}", json={"reason": "a reason"}).status_code == 403


# -- actions --------------------------------------------------------------------------------------


def close(client: TestClient, fingerprint: str) -> tuple[int, str]:
    done = client.post(f"/api/divergences/{NODE}/{fingerprint}/close", json={"reason": "mended in 0.2.1"})
    return done.status_code, str(done.json().get("message") or done.json()["detail"])


def test_closing_has_person_and_reason(stores: Stores) -> None:
    fingerprint = fill(stores.migration)
    with client_of(stores.config, SITE) as client:
        assert close(client, fingerprint) == (200, f"Closed {fingerprint}; none is open")
        assert close(client, fingerprint) == (409, f"{fingerprint} was already closed by ann: mended in 0.2.1")
    found = detail(stores, fingerprint)
    assert (found.row.status, found.row.closed_by, found.closed_why) == ("closed", "ann", "mended in 0.2.1")
    assert found.history[0].lines == (f"divergence {fingerprint} closed, by ann: mended in 0.2.1",)
    assert found.todo == ("Nothing: it opens again if it occurs again.",)


def wait(stores: Stores, fingerprint: str) -> None:
    """Wait for the end of a search."""
    while (job := jobs_of(stores).read(NODE, fingerprint)) is not None and job.is_running:
        time.sleep(0.01)


def test_shrinking_stores_the_smallest_case(stores: Stores, wrong: Callable[[DoneLie | None], None]) -> None:
    fingerprint = fill(stores.migration)
    context = context_for(stores, node=NODE, fingerprint=fingerprint)
    with pytest.raises(NotFound):
        read_shrinking(context)
    for seconds in ("1e9", "000000001" + "9" * 9):
        with pytest.raises(BadRequest):
            start_shrinking(context, {"seconds": seconds})
    wrong(a_cent_more)
    before = stores.migration.versions()[KEY]
    done = start_shrinking(context, {"seconds": "60"})
    wait(stores, fingerprint)
    assert done.location == f"/divergences/{NODE}/{fingerprint}/shrink"
    found = read_shrinking(context)
    assert not found.is_running
    assert "bytes shrunk to" in found.result
    small = detail(stores, fingerprint).small
    assert small is not None
    assert 'amount: {"decimal":"101"}' in small
    assert stores.migration.versions()[KEY] > before


def test_engines_that_agree_end_the_search_with_the_reason(stores: Stores) -> None:
    fingerprint = fill(stores.migration)
    context = context_for(stores, node=NODE, fingerprint=fingerprint)
    start_shrinking(context, {})
    wait(stores, fingerprint)
    assert "they agree: the fault is mended" in read_shrinking(context).problem


def test_one_search_at_a_time_for_a_divergence(stores: Stores) -> None:
    jobs, gate = jobs_of(stores), threading.Event()
    running = ShrinkProgress(NODE, "f" * 16, "ann", time.time_ns() // 1000, 10.0, 0.0)

    def block(_report: object) -> None:
        gate.wait(60)
        raise ZeroDivisionError

    jobs.start(running, block)  # type: ignore[arg-type]  # it never returns a case
    with pytest.raises(Refused, match="is being shrunk"):
        jobs.start(running, block)  # type: ignore[arg-type]  # as above
    app = make_app(stores, Access(Caller("ann")), SITE)
    with TestClient(app, base_url="http://127.0.0.1:8001") as client:
        page = client.get(f"/divergences/{NODE}/{running.fingerprint}/shrink").text
    assert '<meta http-equiv="refresh" content="1">' in page
    gate.set()
    wait(stores, running.fingerprint)
    assert "log of the dashboard" in (jobs.read(NODE, running.fingerprint) or running).problem


def test_a_case_is_shown_as_a_diff_and_then_written(stores: Stores, tmp_path: Path) -> None:
    fingerprint = fill(stores.migration)
    context = context_for(stores, now_us=NOON, node=NODE, fingerprint=fingerprint)
    shown = read_case(context)
    assert shown.path == PAYMENT_DECISION.name
    assert f"+    - name: divergence {fingerprint}" in shown.diff
    assert "+    # Kept by ann on 2026-11-15: (the reason)" in shown.diff
    assert not [line for line in shown.diff.splitlines() if line.startswith("-") and not line.startswith("---")]
    path = tmp_path / "nodes" / PAYMENT_DECISION.name
    before = path.read_text()
    with pytest.raises(Refused, match="since the diff was shown"):
        keep_case(context, {"reason": "fee", "sha256": "0"})
    assert path.read_text() == before
    read = keeping._texts

    def read_then_write(*given: Any) -> tuple[str, str, str]:
        texts = read(*given)
        path.write_text(f"{before}# of another tab\n")
        return texts

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(keeping, "_texts", read_then_write)
        with pytest.raises(Refused, match="since the diff was shown"):
            keep_case(context, {"reason": "fee", "sha256": shown.sha256})
    assert path.read_text() == f"{before}# of another tab\n"
    path.write_text(before)
    keep_case(context, {"reason": "the fee is\nwrong", "sha256": shown.sha256})
    assert "    # Kept by ann on 2026-11-15: the fee is wrong\n" in path.read_text()
    compiled, _ = compile_file(path)
    assert compiled is not None
    case = compiled.cases[-1]
    assert meets(case, run_case(PAIR["python"].load(compiled), case).outcome)
    assert not meets(case, run_case(WrongEngine(PAIR["interp"], a_cent_more).load(compiled), case).outcome)
    with pytest.raises(Refused, match="it is a case of the node already"):
        read_case(context)
