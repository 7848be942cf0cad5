"""Traces of journalled executions are made without effects, or refused with a reason.

Reasons are a damaged, sealed or erased journal.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.journal_file import run_statement
from tests.support.journalled import Place, a_place, node_text
from tests.support.payments import Shop, founding_text
from vesper.cli.traces.open_traces import traces_of
from vesper.cli.traces.text import show_json, show_lines
from vesper.engines.outcome import DeclaredError, Failed, Returned
from vesper.engines.registry import ENGINES
from vesper.host.run_context import run_context
from vesper.replay.rerun import replay
from vesper.trace.journalled import trace_of_execution
from vesper.trace.model import Trace, TraceError
from vesper.trace.timeline import timeline


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    monkeypatch.chdir(tmp_path)
    with a_place(tmp_path, "sqlite:journal.db") as found:
        yield found


def found(place: Place, wanted: str, engine: str | None = None) -> Trace:
    with traces_of(place.config) as traces:
        return traces.find(wanted, engine)


@pytest.mark.parametrize("engine", list(ENGINES))
def test_a_trace_is_made_from_the_records_and_performs_nothing(place: Place, engine: str) -> None:
    execution = place.run(node_text(), "ann", engine=engine)
    assert place.charged == ["ann"]
    for other in ENGINES:
        trace = found(place, execution[:18], other)
        assert (trace.trace_id, trace.engines[0], trace.divergence) == (execution, other, None)
        assert isinstance(trace.outcome, Returned)
        assert [each.path for each in trace.exchanges] == ["known", "charge"]
        assert all(each.took_us is not None and each.took_us >= 0 for each in trace.exchanges)
        assert replay(trace, other).difference is None
    assert place.charged == ["ann"]


def test_decisions_of_policies_are_in_it(place: Place) -> None:
    place.failures = ["effect_failed"] * 2
    text = node_text(effect_class="keyed", policy="key: event_id\n    retry: {attempts: 2, on: [effect_failed]}")
    trace = found(place, place.run(text))
    assert isinstance(trace.outcome, DeclaredError)
    charge = trace.exchanges[1]
    assert (charge.failure, charge.message) == ("effect_failed", "not now")
    assert [each.said["decision"] for each in charge.decisions] == ["retry", "give_up"]
    assert [(each.path, each.status, each.code) for each in timeline(trace)] == [
        ("known", "ok", None),
        ("charge", "failed", "effect_failed"),
    ]


def test_an_execution_in_doubt_has_a_trace_without_an_end(place: Place) -> None:
    trace = found(place, place.in_doubt(node_text()))
    assert (trace.outcome, trace.waits_at) == (None, "charge")
    assert [each.path for each in trace.exchanges] == ["known"]
    assert replay(trace).difference is None
    assert place.charged == []


def test_an_unknown_one_gets_a_suggestion(place: Place) -> None:
    execution = place.run(node_text())
    wrong = execution[:-1] + ("0" if execution[-1] != "0" else "1")
    with pytest.raises(TraceError, match=f"did you mean {execution}"):
        found(place, wrong)
    place.run(node_text())
    with pytest.raises(TraceError, match=f"several traces start with `{execution[:2]}`"):
        found(place, execution[:2])


def changed(place: Place, sql: str, *values: object) -> None:
    assert run_statement(place.folder / "journal.db", f"{sql} RETURNING 1", values)


def test_a_journal_that_was_changed_or_cut_gives_no_trace(place: Place) -> None:
    execution = place.run(node_text())
    changed(place, "UPDATE vesper_commits SET lines = CAST(replace(lines, 'ann', 'eve') AS BLOB)")
    with pytest.raises(TraceError, match="is broken at entry"):
        found(place, execution)
    changed(place, "DELETE FROM vesper_commits WHERE place = (SELECT max(place) FROM vesper_commits)")
    with pytest.raises(TraceError, match="has no trace:"):
        found(place, execution)
    assert place.charged == ["ann"]


def test_a_missing_blob_is_reported(place: Place) -> None:
    execution = place.run(node_text(), "x" * 20_000)
    changed(place, "DELETE FROM vesper_blobs")
    with pytest.raises(TraceError, match=r"the body of entry \d is missing: the journal has no blob"):
        found(place, execution)


def test_a_sensitive_one_needs_its_key(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VESPER_SECRET_MASTER", "0123456789abcdef")
    place.settings('key_secret = "master"\n')
    execution = place.run(node_text(sensitive=True), "ann")
    assert found(place, execution).is_sensitive
    monkeypatch.setenv("VESPER_SECRET_MASTER", "another key of 32")
    with pytest.raises(TraceError, match="which is not configured"):
        found(place, execution)
    monkeypatch.setenv("VESPER_SECRET_MASTER", "0123456789abcdef")
    with place.journal() as journal:
        assert journal.erase(execution)
    with pytest.raises(TraceError, match="its key was deleted"):
        found(place, execution)


def test_the_node_may_be_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Shop(tmp_path, monkeypatch, founding_text()) as shop:
        execution = shop.pay().execution
        shop.node.unlink()
        asked = len(shop.stripe.got)
        with traces_of(shop.config) as traces:
            trace = traces.find(execution)
            assert trace.definition.source == founding_text()
            assert all(replay(trace, engine).difference is None for engine in ENGINES)
        assert len(shop.stripe.got) == asked


def test_a_failure_shows_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Shop(tmp_path, monkeypatch) as shop:
        shop.stripe.close()
        ran = shop.pay()
        assert isinstance(ran.outcome, Failed)
        with traces_of(shop.config) as traces:
            assert traces.journal is not None
            trace = trace_of_execution(traces.journal, ran.execution)
        assert [(each.number, each.title, each.code) for each in timeline(trace)] == [
            (1, "validate_request", None),
            (2, "state_transition: pending -> processing", None),
            (3, "call_stripe_api", "unavailable"),
        ]


def test_the_caller_is_in_the_trace(place: Place) -> None:
    with run_context(actor="ada", tenant="acme"):
        execution = place.run(node_text(), "ann")
    trace = found(place, execution)
    assert trace.caller == {"actor": "ada", "tenant": "acme"}
    assert Trace.from_bytes(trace.to_bytes()) == trace
    assert "caller" not in json.loads(found(place, place.run(node_text(), "bob")).to_bytes())["trace"]
    assert "  caller     actor ada, tenant acme" in show_lines(trace, reveals=False)
    assert show_json(trace, reveals=False)["caller"] == trace.caller
