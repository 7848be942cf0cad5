"""The page of a node: evidence over time, paths, contracts, epochs, settings, history."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.dashboard import client_of, context_for
from tests.unit.migration.support.remote_answers import FEE, MINUTE_US, NOON_US, ODD, Told
from vesper.compiler import compile_file
from vesper.config.settings import default_config
from vesper.dashboard.app import whole_site
from vesper.dashboard.pages.node import node as node_page
from vesper.dashboard.pages.node.contracts import read_contracts
from vesper.dashboard.pages.node.node import NodePage, read_node_page
from vesper.dashboard.problem import NotFound
from vesper.dashboard.stores import Stores
from vesper.journal.entry import Entry, Kind, Stored
from vesper.journal.journal import Journal, Recorded, Status, Summary
from vesper.migration.control.modes import Mode
from vesper.migration.control.state import EngineFaulted, Kill
from vesper.migration.router.orders import resume
from vesper.migration.stores.configured import OpenStore
from vesper.migration.stores.store import Line, NodeKey

SITE = whole_site(("vesper.dashboard.pages.fleet", "vesper.dashboard.pages.node"))
TEXT = """\
node_id: fee_v1
type: function
intent: Derive a fee

inputs:
  amount: {type: decimal, constraints: [positive]}

outputs:
  success: {fee: decimal}

contracts:
  preconditions:
    - amount < 1000
  postconditions:
    - fee >= 0

flow:
  - operation: return
    success: {fee: amount * 0.1}
"""


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Told]:
    monkeypatch.delenv("VESPER_NODES", raising=False)
    (tmp_path / "nodes").mkdir()
    (tmp_path / "nodes" / "fee_v1.vsp").write_text(TEXT, encoding="utf-8")
    (tmp_path / "nodes" / "fee_v2.vsp").write_text("node_id: fee_v2\n", encoding="utf-8")
    found = Told(tmp_path)
    yield found
    found.store.close()


def read(told: Told, folder: Path, node: str = FEE.node, **query: str) -> NodePage:
    stores = Stores(default_config(folder))
    try:
        return read_node_page(context_for(stores, query, told.now_us, node=node))
    finally:
        stores.close()


def test_evidence_paths_and_facts(told: Told, tmp_path: Path) -> None:
    told.batch(runs=300)
    told.diverge()
    found = read(told, tmp_path)
    node = found.routed
    assert node is not None
    assert (node.mode, node.epoch, node.held) == (Mode.CANARY_DIRECT, FEE.epoch, "")
    facts = {each.name: each.text for each in node.facts}
    assert facts["evidence"].startswith("300 distinct runs that agree, 1 divergence, of 301 comparisons")
    (path,) = node.paths
    assert (path.letter, path.agreed, path.is_proven) == ("A", 0, False)
    assert path.need == "225 more on path A; 1 open divergence to close"
    assert path.words == "charge: ok; returned"
    assert node.series is not None
    assert [each.clean for each in node.series.points] == [300, 300, 300]
    assert [(each.after, each.reason) for each in node.series.changes] == [(Mode.CANARY_DIRECT, "evidence")]
    assert "Confidence of fee_v1" in node.plot()
    assert found.needs[0].link == "/divergences?node=fee_v1"
    assert found.file_note.startswith("conditions of paths are not shown: ")


def test_history_has_person_and_reason_and_pages(told: Told, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told.batch(FEE, Kill("bob", "odd answers"), runs=1)
    resume(
        OpenStore(told.store, default_config(tmp_path).migration_settings(), True), FEE, "ann", "mended", told.now_us
    )
    monkeypatch.setattr(node_page, "HISTORY_ROWS", 3)
    found = read(told, tmp_path)
    assert found.routed is not None
    first, second, third = found.routed.history
    assert (first.who, second.who, third.who) == ("ann", "ann", "bob")
    assert first.texts[0] == "python_only → shadow_direct  resume, by ann: mended"
    assert third.texts[0].startswith("shadow_direct → python_only  kill, by bob: odd answers")
    assert found.routed.paging.next == "?page=2"
    older = read(told, tmp_path, page="2").routed
    assert older is not None
    assert [each.who for each in older.history] == ["bob"]


def test_a_damaged_history_is_named_and_shown(told: Told, tmp_path: Path) -> None:
    told.batch(FEE, EngineFaulted("it broke"), runs=1)
    line = Line(told.store.history(FEE)[-1].number + 1, '{"kind": "changed"}', "x")
    told.store.transact(FEE, lambda transaction: transaction.append(line))
    found = read(told, tmp_path).routed
    assert found is not None
    assert found.damage is not None
    assert (found.series, found.history[0].texts) == (None, ['{"kind": "changed"}'])
    assert "does not know" in found.series_note


def test_epochs_and_versions(told: Told, tmp_path: Path) -> None:
    old = NodeKey(FEE.node, "0" * 32)
    told.batch(old, runs=3)
    told.batch(runs=2)
    told.batch(NodeKey("fee_v10", "1" * 32), runs=1)
    found = read(told, tmp_path)
    assert found.versions == ["fee_v2", "fee_v10"]
    assert found.routed is not None
    assert [(each.epoch, each.agreed, each.is_shown) for each in found.routed.epochs] == [
        (FEE.epoch, 2, True), (old.epoch, 3, False),
    ]  # fmt: skip
    other = read(told, tmp_path, epoch=old.epoch).routed
    assert other is not None
    assert other.epoch == old.epoch
    with pytest.raises(NotFound):
        read(told, tmp_path, epoch="2" * 32)


def test_a_node_of_a_file_alone_and_one_of_the_store_alone(told: Told, tmp_path: Path) -> None:
    found = read(told, tmp_path)
    assert (found.file, found.routed, found.file_note) == ("nodes/fee_v1.vsp", None, "")
    told.batch(NodeKey("far_v1", "a" * 32), runs=1)
    far = read(told, tmp_path, "far_v1")
    assert (far.file, far.contracts) == (None, None)
    assert "no file" in far.file_note
    faulty = read(told, tmp_path, "fee_v2")
    assert "`vesper check nodes/fee_v2.vsp` shows them" in faulty.file_note
    with pytest.raises(NotFound):
        read(told, tmp_path, "none_v1")


class BrokenRuns:
    """A journal with runs of the node, of which some broke its precondition."""

    def __init__(self, semantic_hash: str) -> None:
        broken: dict[str, object] = {"outcome": "contract_broken", "phase": "precondition", "index": 0, "values": {}}
        kind = "contract_broken"
        one = Summary("r1", FEE.node, semantic_hash, Status.ENDED, kind, 0, 0, "", 1, "python", False, False)
        self._runs: dict[str, tuple[Summary, dict[str, object] | None]] = {
            "r1": (one, broken),
            "r2": (replace(one, execution="r2", semantic_hash="other"), broken),
            "r3": (replace(one, execution="r3", outcome="returned"), {"outcome": "returned", "value": {}}),
            "r4": (replace(one, execution="r4"), None),
        }

    def find(self, *, node: str | None = None, limit: int = 0, status: Status | None = None) -> Sequence[Summary]:
        return [] if status is not None else [summary for summary, _ in self._runs.values()]

    def read(self, execution: str) -> Recorded:
        summary, body = self._runs[execution]
        return Recorded(summary, [Stored(Entry(Kind.END, body=body or {}), 0, "", "", is_erased=body is None)])


def test_broken_clauses_are_counted_for_this_definition(told: Told, tmp_path: Path) -> None:
    compiled, _ = compile_file(tmp_path / "nodes" / "fee_v1.vsp")
    assert compiled is not None
    journal = BrokenRuns(compiled.semantic_hash)

    class WithRuns(Stores):
        @property
        def journal(self) -> Journal:
            return journal  # type: ignore[return-value]  # the page only searches and reads

    stores = WithRuns(default_config(tmp_path))
    found = read_contracts(stores, compiled)
    stores.close()
    assert [(each.phase, each.text, each.input, each.broken) for each in found.clauses] == [
        ("constraint", "amount > 0", "amount", 0),
        ("precondition", "amount < 1000", None, 1),
        ("postcondition", "fee >= 0", None, 0),
    ]
    assert found.clauses[1].line == 13
    assert found.note == (
        "counted in the newest 4 runs of the journal; 1 run broke a clause of another definition; "
        "1 run with a broken contract could not be read"
    )


def test_settings_that_apply(told: Told, tmp_path: Path) -> None:
    (tmp_path / "vesper.toml").write_text("", encoding="utf-8")
    settings = {each.name: each.text for each in read(told, tmp_path).settings}
    assert settings["max_mode"] == "no limit"
    assert settings["approvals"] == "none: evidence alone promotes"
    assert settings["canary"].startswith("5.0 %")


def test_the_page_and_its_json(told: Told, tmp_path: Path) -> None:
    told.batch(runs=300)
    told.diverge(fingerprint=ODD)
    told.batch(FEE, Kill("<b>bob</b>", "<i>odd</i>"))
    with client_of(tmp_path, SITE) as client:
        page = client.get("/nodes/fee_v1").text
        found = client.get("/api/nodes/fee_v1").json()
        missing = client.get("/nodes/%3Cb%3E_v1")
    assert "<b>bob" not in page
    assert "&lt;b&gt;bob&lt;/b&gt;" in page
    assert " style=" not in page
    assert "<svg" in page
    assert found["routed"]["mode"] == "python_only"
    assert [each["reason"] for each in found["routed"]["series"]["changes"]] == ["evidence", "kill"]
    assert missing.status_code == 404
    assert "<b>_v1" not in missing.text


def test_the_last_point_is_of_the_last_write(told: Told, tmp_path: Path) -> None:
    told.batch(runs=50)
    told.now_us = NOON_US + 600 * MINUTE_US
    node = read(told, tmp_path).routed
    assert node is not None
    assert node.series is not None
    assert [each.at_us for each in node.series.points] == [NOON_US], "nothing was recorded since"
