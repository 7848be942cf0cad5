"""Tabs of a node: the flow with evidence, the source with linked lines, the profile."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.dashboard import client_of, context_for
from tests.support.nodes import PAYMENT_DECISION, compiled, compiled_anew
from tests.unit.migration.support.remote_answers import Told
from vesper.compiler.generated import module_text
from vesper.config.settings import default_config
from vesper.dashboard.app import whole_site
from vesper.dashboard.page import BadRequest, NotFound, Unavailable
from vesper.dashboard.pages.flow import profile
from vesper.dashboard.pages.flow.drawing import read_flow
from vesper.dashboard.pages.flow.profile import read_profile
from vesper.dashboard.pages.flow.source import python_lines, read_source
from vesper.dashboard.problem import Refused, TooMany
from vesper.dashboard.stores import Stores
from vesper.engines.direct_engine import DirectEngine
from vesper.engines.outcome import Returned
from vesper.migration.compare.comparator import Comparator
from vesper.migration.compare.paths import PathNote
from vesper.migration.compare.transcript import Transcript
from vesper.migration.router.epoch import epoch_of
from vesper.migration.stores import sqlite_store
from vesper.migration.stores.reservoir import Reservoir
from vesper.migration.stores.store import NodeKey

SOURCE = """\
node_id: fee_v1
type: function
intent: A fee on large amounts
inputs:
  amount: decimal
outputs:
  success:
    fee: decimal
flow:
  - operation: return
    when: amount > 100
    success: {fee: amount * 0.02}
  - step: "low"
    operation: compute
    value: amount * 0.01        # <script>alert(1)</script>
  - operation: return
    success: {fee: low}
testing:
  test_cases:
    - {name: "small", inputs: {amount: 50}, expect: {fee: 0.50}}
"""
SITE = whole_site(["vesper.dashboard.pages.flow"])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sqlite_store, "is_volatile", lambda _path: None)
    monkeypatch.delenv("VESPER_NODES", raising=False)
    (tmp_path / "nodes").mkdir()
    (tmp_path / "nodes" / "fee_v1.vsp").write_text(SOURCE)
    return tmp_path


@pytest.fixture
def stores(folder: Path) -> Iterator[Stores]:
    found = Stores(default_config(folder))
    yield found
    found.close()


def note_of(folder: Path, amount: int) -> tuple[NodeKey, PathNote]:
    node = compiled_anew(folder / "nodes" / "fee_v1.vsp")
    key = NodeKey("fee_v1", epoch_of(node, Comparator(node, ()).version))
    path = DirectEngine().load(node).call_pathed({"amount": amount}, bytes(16)).path
    return key, PathNote(path, (), "returned")


@pytest.fixture
def evidence(folder: Path) -> NodeKey:
    """Runs on both paths, and a divergence on the larger one."""
    told = Told(folder)
    key, small = note_of(folder, 50)
    _, large = note_of(folder, 500)
    told.batch(key, runs=30, note=small)
    told.batch(key, runs=10, note=large)
    kept = Reservoir(key, False)
    kept.offer(small.name, 1, Transcript({"amount": 50}, None, (), Returned({"fee": 1})))
    kept.flush(told.store, told.now_us)
    told.diverge(key, note=large)
    told.store.close()
    return key


def test_flow_shows_evidence_by_path(stores: Stores, evidence: NodeKey) -> None:
    found = read_flow(context_for(stores, node="fee_v1"))
    assert (found.note, found.epoch, found.statements) == (None, evidence.epoch[:12], 4)
    assert found.states == {"diverged": 2, "unproven": 2}
    first, second = found.paths
    assert (first.letter, first.traffic, first.is_proven, first.words + first.others) == (
        "A",
        30,
        False,
        ("returned", "amount > 100: no"),
    )
    assert first.lacks > 0
    assert second.divergences == ("0dd0dd0dd0dd0dd0",)
    assert "taken" not in found.svg
    assert "◐" in found.svg
    assert "✗" in found.svg


def test_a_path_is_highlighted_with_an_execution(stores: Stores, evidence: NodeKey) -> None:
    found = read_flow(context_for(stores, {"path": "A"}, node="fee_v1"))
    assert found.selected == "A"
    assert [each.is_selected for each in found.paths] == [True, False]
    assert found.exemplar is not None
    assert (found.exemplar.inputs, found.exemplar.outcome) == ((("amount", "50"),), "returned {fee: 1}")
    taken = re.findall(r'<g class="box (\w+)[^"]* taken"', found.svg)
    assert taken == ["condition", "compute", "return"]
    assert read_flow(context_for(stores, {"path": "B"}, node="fee_v1")).exemplar is None
    with pytest.raises(NotFound, match="no path Z"):
        read_flow(context_for(stores, {"path": "Z"}, node="fee_v1"))


def test_evidence_of_another_epoch_is_not_drawn(folder: Path, stores: Stores, evidence: NodeKey) -> None:
    path = folder / "nodes" / "fee_v1.vsp"
    path.write_text(SOURCE.replace("amount > 100", "amount > 1000"))
    found = read_flow(context_for(stores, node="fee_v1"))
    assert "another epoch" in (found.note or "")
    assert found.paths == ()
    assert "unseen" not in found.svg
    path.write_text("node_id: fee_v1\nflow: 1\n")
    with pytest.raises(Unavailable, match="its file has errors"):
        read_flow(context_for(stores, node="fee_v1"))
    with pytest.raises(NotFound):
        read_flow(context_for(stores, node="absent_v1"))


def test_source_lines_are_linked_both_ways(stores: Stores) -> None:
    found = read_source(context_for(stores, node="fee_v1"))
    source = {each.number: each for each in found.source}
    python = {each.number: each for each in found.python}
    low = source[13]  # `- step: "low"`
    assert low.other
    for line in low.other:
        assert python[line].other == (13,) or python[line].other == (15,)
    assert source[14].other == low.other  # a line of the same step
    assert source[1].other == ()
    assert (
        "".join(text for _, text in source[15].parts) == "    value: amount * 0.01        # <script>alert(1)</script>"
    )
    assert ("comment", "# <script>alert(1)</script>") in source[15].parts
    assert ("key", "value") in source[15].parts
    assert ("number", "0.01") in source[15].parts
    kinds = {kind for each in found.python for kind, _ in each.parts}
    assert kinds == {"", "comment", "string", "number", "keyword"}


def test_lines_of_generated_python_belong_to_lines_of_the_node() -> None:
    node = compiled(PAYMENT_DECISION)
    text = module_text(node)
    found, lines = python_lines(text), node.source.text.splitlines()
    for number, line in enumerate(text.splitlines(), 1):
        named = re.fullmatch(r" *# step (\w+), line ([0-9]+)", line)
        if named:
            assert found[number] == int(named[2])
            assert f"step: {named[1]}" in lines[found[number] - 1]
    assert all(1 <= each <= len(lines) for each in found.values())


def test_profile_runs_only_when_asked_and_one_at_a_time(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profile, "MAX_SECONDS", 60.0)  # on a busy machine too
    found = read_profile(context_for(stores, node="fee_v1"))
    assert (found.subject, found.steps, found.cases, found.recorded) == ("case small", (), ("small",), ())
    timed = read_profile(context_for(stores, {"run": "1"}, node="fee_v1"))
    assert [each.name for each in timed.steps][1:-1] == ["return_1", "low", "return"]
    assert timed.engines == ("python", "jit")
    assert timed.total is not None
    assert max(share for each in timed.steps for share in each.shares.values()) == 1
    with pytest.raises(BadRequest, match="no case other"):  # a case comes before a run
        read_profile(context_for(stores, {"run": "1", "case": "other", "trace": "x"}, node="fee_v1"))
    with profile._running, pytest.raises(TooMany):
        read_profile(context_for(stores, {"run": "1"}, node="fee_v1"))
    assert not profile._running.locked()


def test_profile_takes_no_file_for_a_run(stores: Stores, folder: Path) -> None:
    for file in (folder / "absent", folder / "nodes" / "fee_v1.vsp"):
        with pytest.raises(NotFound, match="is not an id of a run"):
            read_profile(context_for(stores, {"run": "1", "trace": str(file)}, node="fee_v1"))


def test_profile_does_not_run_a_file_that_others_can_write(stores: Stores, folder: Path) -> None:
    (folder / "nodes" / "fee_v1.vsp").chmod(0o666)
    assert read_profile(context_for(stores, node="fee_v1")).cases == ("small",)
    with pytest.raises(Refused, match="is not trusted"):
        read_profile(context_for(stores, {"run": "1"}, node="fee_v1"))


def test_profile_ends_in_time(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profile, "MAX_SECONDS", -1.0)
    with pytest.raises(Unavailable, match="takes too long"):
        read_profile(context_for(stores, {"run": "1"}, node="fee_v1"))


def test_pages_are_served_and_escape_the_source(folder: Path, evidence: NodeKey) -> None:
    with client_of(folder, SITE) as client:
        for tab in ("flow", "source", "profile", "flow?path=B"):
            answer = client.get(f"/nodes/fee_v1/{tab}")
            assert answer.status_code == 200, answer.text
            assert "<script>alert" not in answer.text
            assert " style=" not in answer.text
        assert client.get("/api/nodes/fee_v1/flow").json()["paths"][0]["letter"] == "A"
        source = client.get("/nodes/fee_v1/source").text
        assert 'id="L13"' in source
        assert 'href="#P' in source
        for kind, start in (("source", "node_id"), ("python", "# AUTO"), ("ir", "{"), ("flow", "<svg")):
            answer = client.get(f"/nodes/fee_v1/download/{kind}")
            assert answer.text.startswith(start)
            assert "attachment" in answer.headers["content-disposition"]
        assert client.get("/nodes/fee_v1/download/secrets").status_code == 404
        assert client.get("/nodes/absent_v1/flow").status_code == 404
