"""Stepping in the page: both engines forwards and backwards, changed, compared, fixed. Nothing is performed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.support.dashboard import TestClient, client_of, context_for
from tests.support.journalled import Place, a_place, compiled_node, invoke, node_text
from vesper.cli.traces.open_traces import traces_of
from vesper.compiler import Compiled
from vesper.dashboard.app import whole_site
from vesper.dashboard.page import Context, NotFound
from vesper.dashboard.pages.stepping import session as stepping
from vesper.dashboard.pages.stepping import sessions as kept
from vesper.dashboard.pages.stepping import view
from vesper.dashboard.problem import TooMany
from vesper.dashboard.stores import Stores
from vesper.engines.engine import Engine, Program
from vesper.engines.registry import ENGINES
from vesper.trace.programs import program_of
from vesper.trace.recorder import record_trace

SITE = ("vesper.dashboard.pages.executions", "vesper.dashboard.pages.stepping")
KEYED = node_text(effect_class="keyed", policy="key: event_id\n    retry: {attempts: 2, on: [effect_failed]}")
PURE = """\
node_id: double_v1
type: function
intent: Double an amount
inputs: {{amount: decimal}}
outputs: {{success: {{result: decimal}}}}
flow:
  - {{step: doubled, operation: compute, value: amount * {factor}}}
  - {{operation: return, success: {{result: doubled}}}}
"""

LOOP = """\
node_id: sum_v1
type: function
intent: Add numbers
inputs: {count: integer}
outputs: {success: {result: integer}}
flow:
  - {step: total, operation: compute, value: "SUM(i FOR i IN range(0, count))"}
  - {operation: return, success: {result: total}}
"""


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Place, TestClient]]:
    """Yield one journal and one client for all tests: making them takes longer than a test."""
    folder = tmp_path_factory.mktemp("runs")
    with a_place(folder, f"sqlite:{folder}/journal.db") as place, client_of(place.config, whole_site(SITE)) as client:
        yield place, client


@pytest.fixture
def place(shared: tuple[Place, TestClient]) -> Place:
    found, _ = shared
    found.charged, found.failures = [], []
    return found


@pytest.fixture
def client(shared: tuple[Place, TestClient]) -> TestClient:
    return shared[1]


@pytest.fixture(scope="module")
def pure(shared: tuple[Place, TestClient]) -> str:
    """Store the trace of a pure run and return its id."""
    compiled, now = compiled_node(PURE.format(factor=2)), datetime.now(UTC)
    trace = record_trace(compiled, program_of(compiled, "python"), "python", "pure-1", {"amount": 21}, now)
    with traces_of(shared[0].config) as traces:
        traces.store.add(trace)
    return trace.trace_id


@dataclass
class Stepper:
    """A session through the API."""

    client: TestClient
    location: str

    @staticmethod
    def start(client: TestClient, execution: str) -> Stepper:
        found = client.post(f"/api/executions/{execution}/step", json={})
        assert found.status_code == 200, found.text
        return Stepper(client, found.json()["location"])

    @property
    def key(self) -> str:
        return self.location.partition("session=")[2]

    def send(self, action: str, **fields: str) -> dict[str, Any]:
        found = self.client.post(f"/api/stepping/{self.key}/{action}", json=fields)
        assert found.status_code == 200, found.text
        state: dict[str, Any] = self.client.get(f"/api{self.location}").json()
        return state

    def move(self, command: str, text: str = "") -> dict[str, Any]:
        return self.send("move", command=command, text=text)


def place_of(state: dict[str, Any]) -> str:
    """Return the location of the leading engine."""
    found = next(each for each in state["position"]["items"] if each["section"] == "Location")
    return str(found["texts"][0])


def test_a_run_is_stepped_forwards_backwards_and_to_breakpoints(place: Place, client: TestClient) -> None:
    execution = place.run(node_text())
    assert "Start stepping" in client.get(f"/executions/{execution}/step").text
    stepper = Stepper.start(client, execution)
    assert place_of(stepper.move("next")).startswith("charge (line")
    assert place_of(stepper.move("back")).startswith("known (line")
    end = stepper.move("end")
    assert (place_of(end), end["position"]["is_at_end"], end["messages"]) == ("end", True, ["the execution has ended"])
    line = next(each["number"] for each in end["position"]["lines"] if "step: charge" in each["text"])
    marked = stepper.move("break", f"{line} if input.amount > 5")
    assert marked["position"]["lines"][line - 1]["breakpoint"] == 1
    stopped = stepper.move("reverse-continue")
    assert place_of(stopped) == f"charge (line {line})"
    assert stopped["position"]["lines"][line - 1]["engines"] == ["python", "interp"]
    assert stopped["messages"] == [f"stopped by `{line} if input.amount > 5`"]
    assert stepper.move("delete", "1")["position"]["points"] == []
    watched = stepper.move("watch", "known + 1")
    assert [each["texts"] for each in watched["position"]["items"] if each["section"] == "Watched"] == [["4", "4"]]
    assert stepper.move("print", "known * 2")["messages"] == ["6"]
    assert stepper.move("continue")["position"]["divergence"] is None
    for wrong in ("quit", "live", "", "break nowhere"):
        assert stepper.move(*wrong.split(" ", 1))["messages"]
    assert place.charged == ["ann"]


def test_the_page_works_by_forms_without_a_script(place: Place, client: TestClient) -> None:
    execution = place.run(node_text())
    started = client.post(f"/executions/{execution}/step", follow_redirects=False)
    assert started.status_code == 303
    address = started.headers["location"]
    key = address.partition("session=")[2]
    moved = client.post(f"/stepping/{key}/move", data={"command": "next"}, follow_redirects=False)
    assert (moved.status_code, moved.headers["location"]) == (303, address)
    page = client.get(f"/executions/{execution}/step").text  # the newest session of the caller
    assert "charge (line" in page
    assert 'aria-current="step"' in page
    assert client.post(f"/stepping/{key}/end", follow_redirects=False).headers["location"] == f"/executions/{execution}"
    assert client.get(address).status_code == 404


def test_an_answer_is_edited_and_the_changed_run_compared(place: Place, client: TestClient) -> None:
    stepper = Stepper.start(client, place.run(node_text()))
    state = stepper.move("end")
    charge = next(each for each in state["editables"] if each["label"] == "2 charge")
    assert charge["change"] == 'response {"fee":"0.10","id":"ch_ann","note":null}'
    same = stepper.send("change", target="2", change=charge["change"])
    assert (same["is_changed"], same["differences"]) == (True, [])
    stepper.send("reset")
    bad = stepper.send("change", target="2", change="response 5")
    assert "gives" in bad["messages"][0]
    assert not bad["is_changed"]
    changed = stepper.send("change", target="2", change='response {"id": "ch_9", "fee": 7}')
    assert changed["is_changed"]
    assert [each["where"] for each in changed["differences"]] == ["charge", "outcome"]
    assert '"ch_9"' in changed["outcome"]
    assert place_of(changed) == "end"
    assert place_of(stepper.move("back")).startswith("return")
    failed = stepper.send("change", target="charge", change="fails effect_failed")
    assert "declined" in failed["outcome"]
    assert len(failed["changes"]) == 1
    assert "there is no fix to propose" in stepper.send("patch")["messages"][0]
    fresh = stepper.send("reset")
    assert (fresh["is_changed"], fresh["changes"], fresh["differences"]) == (False, [], [])
    assert place.charged == ["ann"]


def test_a_rejected_change_keeps_the_run_before(
    place: Place, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    stepper = Stepper.start(client, place.run(node_text()))
    kept = stepper.send("change", target="2", change='response {"id": "ch_9", "fee": 7}')
    with monkeypatch.context() as patched:
        patched.setattr("vesper.dashboard.pages.stepping.session.MAX_VALUES", 0)
        rejected = stepper.send("change", target="2", change='response {"id": "ch_10", "fee": 8}')
    assert "more than a page keeps" in rejected["messages"][0]
    for name in ("changes", "differences", "outcome", "is_changed"):
        assert rejected[name] == kept[name], name
    place.failures = ["effect_failed"] * 2
    stepper = Stepper.start(client, place.run(KEYED))
    waiting = stepper.send("change", target="2", change="retry.attempts 5")
    with monkeypatch.context() as patched:
        patched.setattr("vesper.dashboard.pages.stepping.session.MAX_VALUES", 0)
        rejected = stepper.send("respond", change='response {"id": "ch_9", "fee": 7}')
    assert "more than a page keeps" in rejected["messages"][0]
    assert rejected["pending"] == waiting["pending"]


def test_a_changed_parameter_asks_for_the_answer_and_becomes_a_patch(place: Place, client: TestClient) -> None:
    place.failures = ["effect_failed"] * 2
    execution = place.run(KEYED)
    stepper = Stepper.start(client, execution)
    state = stepper.send("change", target="2", change="retry.attempts 5")
    assert (state["pending"]["path"], state["pending"]["effect"]) == ("charge", "custom")
    assert "give it first" in stepper.send("patch")["messages"][0]
    assert "has no `id`" in stepper.send("respond", change="response {}")["messages"][0]
    answered = stepper.send("respond", change='response {"id": "ch_9", "fee": 7}')
    assert answered["pending"] is None
    assert '"ch_9"' in answered["outcome"]
    fix = stepper.send("patch")["fix"]
    assert (
        "-    retry: {attempts: 2, on: [effect_failed]}\n+    retry: {attempts: 5, on: [effect_failed]}" in fix["diff"]
    )
    assert "all as before" in fix["corpus"]
    assert fix["state"] == "no file of this project declares charge_v1: apply the patch by hand"
    assert "--responses answers.json --set charge.retry.attempts=5 --apply" in fix["command"]
    assert fix["answers"] == '{"charge": {"returns": {"fee":"7","id":"ch_9","note":null}}}'
    answers = place.folder / "answers.json"
    answers.write_text(fix["answers"], encoding="utf-8")
    config = ("--config", str(place.folder / "vesper.toml"))
    again = invoke("replay", execution, *config, "--responses", str(answers), "--set", "charge.retry.attempts=5")
    assert (again.exit_code, "ch_9" in again.output) == (0, True)
    assert place.charged == []


def test_the_page_says_where_the_file_of_the_node_is_another_one(
    place: Place, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = place.folder / "nodes"
    nodes.mkdir()
    monkeypatch.setattr(client.app.state.stores.nodes, "folder", nodes)  # type: ignore[attr-defined]  # a Starlette
    text = KEYED.replace("charge_v1", "filed_v1")
    (nodes / "filed_v1.vsp").write_text(text, encoding="utf-8")
    place.failures = ["effect_failed"] * 2
    execution = place.run(text)
    stepper = Stepper.start(client, execution)
    stepper.send("change", target="2", change="retry.attempts 5")
    stepper.send("respond", change="fails effect_failed")
    state = stepper.send("patch")
    assert state["file_change"] == []
    assert state["fix"]["state"] == f"fits {nodes / 'filed_v1.vsp'}"
    (nodes / "filed_v1.vsp").write_text(text.replace("attempts: 2", "attempts: 4"), encoding="utf-8")
    changed = Stepper.start(client, execution).move("next")["file_change"]
    assert "the replay runs the recorded text" in changed[0]
    assert "  +    retry: {attempts: 4, on: [effect_failed]}" in changed


def test_a_run_in_doubt_stops_at_its_request_until_it_is_answered(place: Place, client: TestClient) -> None:
    stepper = Stepper.start(client, place.in_doubt(node_text()))
    state = stepper.move("end")
    assert state["position"]["unanswered"] == "charge"
    assert "nothing was performed" in state["messages"][0]
    done = stepper.move("answer", '{"id": "ch_1", "fee": 1}')
    assert done["position"]["unanswered"] is None
    assert place_of(stepper.move("end")) == "end"
    assert place.charged == []


class _Faulty:
    """The direct engine with a fault: it runs another factor."""

    name = "interp"

    def load(self, _compiled: Compiled) -> Program:
        return ENGINES["interp"].load(compiled_node(PURE.format(factor=3)))


def test_both_columns_of_a_pure_run_part_where_an_engine_is_wrong(
    pure: str, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    faulty: Engine = _Faulty()
    stepper = Stepper.start(client, pure)
    assert stepper.move("divergence")["messages"][0] == "the engines do not diverge"
    changed = stepper.send("change", target="input.amount", change="4")
    assert changed["outcome"] == "returned {result: 8}"
    monkeypatch.setattr("vesper.dashboard.pages.stepping.session.PAIR", {"python": ENGINES["python"], "interp": faulty})
    stepper = Stepper.start(client, pure)
    state = stepper.move("divergence")
    assert state["position"]["divergence"] == state["position"]["stop"]
    assert "the engines diverge at doubled" in state["messages"][0]
    assert [each["texts"] for each in state["position"]["items"] if each["differs"]] == [["42", "63"]]
    assert 'class="differs"' in client.get(stepper.location).text


def test_a_sensitive_run_keeps_its_values_masked_and_unchanged(place: Place, client: TestClient) -> None:
    stepper = Stepper.start(client, place.run(node_text(sensitive=True), customer="zoe"))
    for command in ("next", "next", "back", "end"):
        stepper.move(command)
        assert "zoe" not in client.get(stepper.location).text
    for command, text in (
        ("print", "customer"),
        ("print", "input.customer == 'zoe'"),
        ("watch", "charge.id"),
        ("break", "step:charge if length(customer) > 2"),
        ("break", "customer == 'zoe'"),
    ):
        assert "could reveal it" in stepper.move(command, text)["messages"][0], (command, text)
    assert stepper.move("print", "amount")["messages"] == ["10.00"]
    for target, change in (("input.customer", "zoe"), ("input.amount", "5"), ("2", "fails effect_failed")):
        state = stepper.send("change", target=target, change=change)
        assert "could reveal its values" in state["messages"][0]
        assert (state["is_changed"], state["editables"]) == (False, [])


def test_a_slow_command_ends_and_leaves_the_session_usable(
    place: Place, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.failures = ["effect_failed"] * 2
    stepper = Stepper.start(client, place.run(KEYED))
    slow = "SUM(i FOR i IN range(0, 1000000))"
    monkeypatch.setattr(stepping, "MAX_POINTS", 1)
    stepper.move("break", f"{slow} < 0")
    assert "1 breakpoints and watches are set" in stepper.move("watch", "known")["messages"][0]
    with monkeypatch.context() as patched:
        patched.setattr(stepping, "SECONDS", 0.0)
        for command, text in (("continue", ""), ("print", slow)):
            assert "stopped after 0 seconds" in stepper.move(command, text)["messages"][0], command
    monkeypatch.setattr(view, "VIEW_SECONDS", 0.0)
    stepper.move("delete", "1")
    watched = stepper.move("watch", slow)["position"]["items"]
    assert [each["texts"] for each in watched if each["section"] == "Watched"] == [["limit_hit", "limit_hit"]]
    stepper.move("delete", "1")
    assert place_of(stepper.move("end")) == "end"
    stepper.send("change", target="2", change="retry.attempts 5")
    stepper.send("respond", change='response {"id": "ch_9", "fee": 7}')
    monkeypatch.setattr(stepping, "SECONDS", 0.0)
    assert "more were left out, because the time was over" in stepper.send("patch")["fix"]["corpus"]


def test_a_changed_run_has_the_time_of_a_page(
    place: Place, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled, now = compiled_node(LOOP), datetime.now(UTC)
    program = program_of(compiled, "interp")
    with traces_of(place.config) as traces:
        for name, count in (("loop-1", 2), ("loop-2", 900_000)):
            traces.store.add(record_trace(compiled, program, "interp", name, {"count": count}, now, most_marks=9))
    stepper = Stepper.start(client, "loop-1")
    monkeypatch.setattr(stepping, "SECONDS", 0.001)
    state = stepper.send("change", target="input.count", change="900000")
    assert "computes longer than 0.001 seconds" in state["messages"][0]
    assert not state["is_changed"]
    refused = client.post("/api/executions/loop-2/step", json={})
    assert (refused.status_code, "computes longer" in refused.json()["detail"]) == (409, True)


def test_sessions_are_few_short_and_of_one_login(pure: str, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    stores = Stores(place.config)
    login, other = "00" * 64, "01" * 32 + "02" * 32
    mine = Context(stores, {}, {}, context_for(stores).caller, csrf=login)
    yours = Context(stores, {}, {}, context_for(stores).caller, csrf=other)
    try:
        trace = stores.traces.find(pure)
        sessions = kept.sessions_of(stores)
        assert sessions is kept.sessions_of(stores)
        monkeypatch.setattr(kept, "MAX_SESSIONS", 2)
        first, second = sessions.begin(mine, trace), sessions.begin(mine, trace)
        with pytest.raises(NotFound, match="no such stepping session of yours"), sessions.use(yours, first.key):
            pass
        with pytest.raises(TooMany, match="2 stepping sessions are open"):
            sessions.begin(yours, trace)
        third = sessions.begin(mine, trace)  # takes the place of the caller's oldest
        with pytest.raises(NotFound), sessions.use(mine, first.key):
            pass
        assert sessions.latest(mine, trace.trace_id) == third.key
        assert sessions.latest(yours, trace.trace_id) is None
        second.used_at -= kept.IDLE_SECONDS + 1
        assert _is_busy_alone(sessions, mine, third)
        monkeypatch.setattr(kept, "WAIT_SECONDS", 0.01)
        with third.lock, pytest.raises(TooMany, match="at work"), sessions.use(mine, third.key):
            pass
        with pytest.raises(NotFound, match="no such"), sessions.use(mine, second.key):
            pass
    finally:
        stores.close()


def _is_busy_alone(sessions: kept.Sessions, context: Context, session: object) -> bool:
    """Return whether a second request of a session waits for the first."""
    order: list[str] = []

    def second() -> None:
        with sessions.use(context, session.key):  # type: ignore[attr-defined]
            order.append("second")

    with sessions.use(context, session.key):  # type: ignore[attr-defined]
        thread = threading.Thread(target=second)
        thread.start()
        thread.join(0.05)
        order.append("first")
    thread.join()
    return order == ["first", "second"]


def test_a_run_that_is_too_large_for_a_page_names_the_command(
    pure: str, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vesper.dashboard.pages.stepping.session.MAX_VALUES", 0)
    refused = client.post(f"/api/executions/{pure}/step", json={})
    assert refused.status_code == 409
    assert f"vesper debug --trace {pure} --comparative" in refused.json()["detail"]
