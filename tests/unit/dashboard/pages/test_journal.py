"""The page of the journal: what is in doubt, what a person decides, what is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.dashboard import client_of, context_for
from tests.support.journalled import Place, a_place, invoke, node_text
from vesper.config.settings import Config
from vesper.dashboard.access.caller import Role
from vesper.dashboard.action import Refused
from vesper.dashboard.app import whole_site
from vesper.dashboard.page import BadRequest, Context, NotFound, Unavailable
from vesper.dashboard.pages.journal.actions import recover, resolve_failed, resolve_happened, resolve_undone
from vesper.dashboard.pages.journal.overview import read_overview
from vesper.dashboard.pages.journal.run import read_run
from vesper.dashboard.stores import Stores
from vesper.journal.entry import Kind
from vesper.journal.journal import Status

SITE = whole_site(["vesper.dashboard.pages.journal"])
RESULT = '{"id": "ch_7", "fee": 0.50}'


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    monkeypatch.chdir(tmp_path)
    with a_place(tmp_path, "sqlite:journal.db") as found:
        yield found


def fields(**more: str) -> dict[str, str]:
    return {"step": "charge", "reason": "seen at the bank", **more}


@contextmanager
def a_context(config: Config) -> Iterator[Context]:
    stores = Stores(config)
    try:
        yield context_for(stores)
    finally:
        stores.close()


def at(context: Context, execution: str) -> Context:
    return replace(context, path={"execution": execution})


def test_what_is_in_doubt_comes_with_the_request_its_holder_and_what_to_do(place: Place) -> None:
    execution = place.in_doubt(node_text(), customer="bob")
    place.left(node_text("refund_v1"))
    place.run(node_text())
    with a_context(place.config) as context:
        model = read_overview(context)
    (doubt,) = model.doubts
    assert (doubt.execution, doubt.node, doubt.step, doubt.obstacle) == (execution, "charge_v1", "charge", None)
    assert 'customer: "bob"' in "\n".join(doubt.request)
    assert doubt.effect == "custom (unsafe)"
    assert doubt.is_holder_gone  # the process that asked, not the one that recovered
    assert doubt.why.startswith("it may have been performed")
    assert doubt.gives == "{id: string, fee: decimal, note: optional<string>}"
    assert "timeout" in doubt.codes
    (left,) = model.left
    assert (left.run.node_id, left.is_owner_gone) == ("refund_v1", True)
    assert {each.state: each.runs for each in model.states} == {"in doubt": 1, "running": 1, "ended: returned": 1}
    assert (model.newest, model.is_in_doubt_capped) == (3, False)


def test_a_sensitive_run_is_hidden_as_in_the_command(place: Place) -> None:
    execution = place.in_doubt(node_text(sensitive=True), customer="carol")
    with client_of(place.config, SITE) as client:
        for path in ("/journal", f"/journal/{execution}", "/api/journal", f"/api/journal/{execution}"):
            said = client.get(path)
            assert said.status_code == 200
            assert "carol" not in said.text
            assert "sensitive" in said.text


def test_entries_are_those_of_the_command(place: Place) -> None:
    execution = place.run(node_text(), customer="<script>alert(1)</script>")
    shown = json.loads(invoke("journal", "show", execution, "--format", "json").stdout)
    with client_of(place.config, SITE) as client:
        model = client.get(f"/api/journal/{execution}").json()
        page = client.get(f"/journal/{execution}").text
    assert [(each["seq"], each["kind"], each["path"]) for each in model["entries"]] == [
        (each["seq"], each["kind"], each["path"]) for each in shown["entries"]
    ]
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page


def test_a_result_is_recorded_with_the_person_and_finishes_the_run(place: Place) -> None:
    execution = place.in_doubt(node_text())
    with client_of(place.config, SITE) as client:
        done = client.post(f"/journal/{execution}/happened", data=fields(result=RESULT), follow_redirects=False)
        assert (done.status_code, done.headers["location"]) == (303, f"/journal/{execution}")
        page = client.get(done.headers["location"]).text
    assert "The run ended: returned" in page
    assert "ch_7" in page
    assert place.charged == []
    with place.journal() as journal:
        recorded = journal.read(execution)
        (resolved,) = [each.entry for each in recorded.entries if each.entry.kind is Kind.RESOLVED]
        audited = [each for each in journal.audit_events() if each["action"] == "journal_resolve"]
    assert (resolved.body["by"], resolved.body["why"]) == ("ann", "seen at the bank")
    assert [(each["execution"], each["fields"]["by"]) for each in audited] == [(execution, "ann")]  # type: ignore[index]


def test_a_failure_and_an_undone_effect(place: Place) -> None:
    failed, undone = place.in_doubt(node_text()), place.in_doubt(node_text(), customer="eve")
    with a_context(place.config) as context:
        said = resolve_failed(at(context, failed), fields(code="effect_failed")).message
        assert "declared error: declined" in said
        assert place.charged == []
        assert "The run ended: returned" in resolve_undone(at(context, undone), fields()).message
    assert place.charged == ["eve"]


def test_a_second_tab_is_refused(place: Place) -> None:
    execution = place.in_doubt(node_text())
    with a_context(place.config) as context:
        there = at(context, execution)
        resolve_undone(there, fields())
        for again in (resolve_undone, resolve_happened):
            with pytest.raises(Refused, match="has no step in doubt: it is ended") as refused:
                again(there, fields(result=RESULT))
            assert "another person" in refused.value.remedy
    assert place.charged == ["bob"]


def test_two_tabs_at_the_same_moment(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    execution = place.in_doubt(node_text())
    with a_context(place.config) as context:
        there = at(context, execution)
        stale = context.stores.journal.read(execution)
        resolve_happened(there, fields(result=RESULT))
        monkeypatch.setattr("vesper.dashboard.pages.journal.actions.find_run", lambda _: stale)
        with pytest.raises(Refused, match="is not in doubt: it is ended"):
            resolve_undone(there, fields())
    assert place.charged == []


@pytest.mark.parametrize(
    "what, more, expected",
    [
        (resolve_happened, {"result": "{"}, "is not JSON"),
        (resolve_happened, {"result": '{"id": 7, "fee": 1}'}, "at `id`, is no string"),
        (resolve_failed, {"code": "http_404"}, "cannot fail with this code"),
        (resolve_failed, {"code": "timeot"}, "did you mean `timeout`"),
        (resolve_undone, {"step": "chrge"}, "in doubt: `charge`"),
    ],
)
def test_nothing_is_written_for_an_outcome_that_does_not_fit(
    place: Place, what: object, more: dict[str, str], expected: str
) -> None:
    execution = place.in_doubt(node_text())
    with a_context(place.config) as context:
        with pytest.raises(Refused, match=expected.replace("[", r"\[")):
            what(at(context, execution), fields(**more))  # type: ignore[operator]
        assert context.stores.journal.read(execution).summary.status is Status.IN_DOUBT


def test_without_settings_nothing_is_finished(place: Place) -> None:
    execution = place.in_doubt(node_text())
    with a_context(replace(place.config, path=None)) as context:
        assert read_run(at(context, execution)).obstacle is not None
        with pytest.raises(Refused, match="ends as denied"):
            resolve_undone(at(context, execution), fields())
    assert place.charged == []


def test_recovery_counts_what_came_of_the_runs(place: Place) -> None:
    place.left(node_text("keyed_v1", "keyed"), "kim")
    place.left(node_text("unsafe_v1"), "uli")
    with a_context(place.config) as context:
        assert recover(context, fields()).message == "Recovery: 1 ended, 1 in doubt."
        model = read_overview(context)
        assert (len(model.left), len(model.doubts)) == (0, 1)
        with pytest.raises(Refused, match="no run is unfinished"):
            recover(context, fields())
        (line,) = [each for each in context.stores.journal.audit_events() if each["action"] == "journal_recover"]
    assert line["fields"] == {"by": "ann", "executions": 2, "why": "seen at the bank"}
    assert place.charged == ["kim"]


def test_a_viewer_sees_which_role_is_needed_and_is_refused(place: Place) -> None:
    execution = place.in_doubt(node_text())
    with client_of(place.config, SITE, roles={Role.VIEWER}) as client:
        page = client.get(f"/journal/{execution}").text
        assert "needs the role operator" in page
        assert "/undone" not in page
        assert client.post(f"/journal/{execution}/undone", data=fields()).status_code == 403
    assert place.charged == []


def test_an_execution_that_is_not_there(place: Place) -> None:
    with a_context(place.config) as context, pytest.raises(Unavailable, match="there is no file"):
        read_overview(context)
    execution = place.run(node_text())
    with a_context(place.config) as context:
        for wanted in (execution[:-1], "x", "'; DROP TABLE vesper_executions; --"):
            with pytest.raises(NotFound):
                read_run(at(context, wanted))
        with pytest.raises(BadRequest):
            read_overview(replace(context, query={"page": "0"}))


def test_a_damaged_run_does_not_hide_the_others(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    from vesper.journal.journal import JournalError

    first, second = place.in_doubt(node_text()), place.in_doubt(node_text())
    with a_context(place.config) as context:
        journal = context.stores.journal
        read = type(journal).read

        def damaged(self: object, execution: str) -> object:
            if execution == first:
                raise JournalError(f"the journal of execution {first} is broken at entry 2")
            return read(self, execution)  # type: ignore[arg-type]

        monkeypatch.setattr(type(journal), "read", damaged)
        model = read_overview(context)
    assert [each.execution for each in model.doubts] == [second]
    assert "is broken at entry 2" in model.problems[0]
