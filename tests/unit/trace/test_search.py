"""Recorded runs are found newest first, page by page, from the journal and from the store of traces."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.journal_file import run_statement
from tests.support.journalled import Place, a_place, node_text
from vesper.cli.traces.open_traces import traces_of
from vesper.host.host import Host
from vesper.host.run_context import run_context
from vesper.trace import search as module
from vesper.trace.library import Traces
from vesper.trace.model import TraceError
from vesper.trace.search import Cursor, Result, RunQuery, node_ids_of, search


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    monkeypatch.chdir(tmp_path)
    with a_place(tmp_path, "sqlite:journal.db") as found:
        yield found


def runs(place: Place, count: int, text: str = node_text()) -> list[str]:
    with Host(place.config) as host:
        return [place._run(host, text, "ann", "10.00", "python") for _ in range(count)]


def every_id(traces: Traces, query: RunQuery, limit: int) -> list[str]:
    """Follow the pages to the end."""
    found: list[str] = []
    for _ in range(100):
        page = search(traces, query, limit)
        found += [each.execution for each in page.runs]
        if page.next is None:
            return found
        query = replace(query, before=Cursor.read(str(page.next)))
    raise AssertionError("the pages do not end")


@pytest.mark.parametrize("window", [2_000, 3])
def test_pages_hold_each_run_of_both_sources_once_newest_first(
    place: Place, monkeypatch: pytest.MonkeyPatch, window: int
) -> None:
    monkeypatch.setattr(module, "_MAX_WINDOW_IDS", window)
    first = runs(place, 5)
    with traces_of(place.config) as traces:
        kept = traces.find(first[2])
        # Two traces between the executions: one of another id, one that replaces its execution.
        traces.store.add(replace(kept, trace_id="kept-1", started_us=kept.started_us))
        traces.store.add(traces.find(first[4]))
        second = runs(place, 4)
        for limit in (1, 2, 3, 50):
            found = every_id(traces, RunQuery(), limit)
            assert [each for each in found if each != "kept-1"] == [*reversed(second), *reversed(first)]
            assert found.count("kept-1") == 1
            assert abs(found.index("kept-1") - found.index(first[2])) == 1
        newest = {each.execution: each.is_stored for each in search(traces, RunQuery(), 50).runs}
        assert newest[first[4]]
        assert not newest[first[3]]


def test_filters_select_by_node_result_time_key_and_id(place: Place) -> None:
    with run_context(actor="ann", key="order-17"):
        (keyed,) = runs(place, 1)
    place.failures = ["effect_failed"]
    (failed,) = runs(place, 1)
    time.sleep(0.01)  # the filters of time below lie between these two
    (other,) = runs(place, 1, node_text("refund_v2"))
    doubtful = place.in_doubt(node_text())
    left = place.left(node_text())
    with traces_of(place.config) as traces:

        def found(**filters: object) -> list[str]:
            return [each.execution for each in search(traces, RunQuery(**filters), 50).runs]  # type: ignore[arg-type]

        assert found(result=Result.FAILED) == [failed]
        assert search(traces, RunQuery(prefix=failed), 1).runs[0].code == "declined"
        assert found(result=Result.SUCCESS) == [other, keyed]
        assert found(result=Result.IN_DOUBT) == [doubtful]
        assert found(result=Result.RUNNING) == [left]
        assert node_ids_of(traces, "refund") == ("refund_v2",)
        assert found(nodes=("refund_v2",)) == [other]
        assert found(nodes=("refund_v2",), result=Result.IN_DOUBT) == []
        assert found(key="order-17") == [keyed]
        assert found(prefix=failed[:18]) == [failed]
        at_us = next(each.started_us for each in search(traces, RunQuery(), 50).runs if each.execution == other)
        assert found(until_us=at_us - 1_000) == [failed, keyed]
        assert found(since_us=at_us - 1_000) == [left, doubtful, other]
        traces.store.add(replace(traces.find(other), trace_id="01-beef"))
        assert found(prefix="01-b", nodes=("charge_v1", "refund_v2")) == ["01-beef"]
        run_statement(place.folder / "journal.db", "UPDATE vesper_commits SET hashes = zeroblob(length(hashes))")
        assert search(traces, RunQuery(prefix=failed), 5).unread == 1
        with pytest.raises(TraceError, match="begins no id"):
            found(prefix="../etc")


def test_a_filter_that_matches_little_stops_and_goes_on_behind(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    (rare,) = runs(place, 1, node_text("rare_v1"))
    (failed,) = [runs(place, 1)[0] for place.failures in [["effect_failed"]]]
    runs(place, 6)
    monkeypatch.setattr(module, "MAX_READ_RUNS", 3)
    with traces_of(place.config) as traces:
        page = search(traces, RunQuery(result=Result.FAILED), 10)
        assert (page.runs, page.read) == ((), 3)
        assert page.searched_us is not None
        assert page.next is not None
        assert every_id(traces, RunQuery(result=Result.FAILED), 10) == [failed]
        # Few of the newest runs are of this node: the journal's index of nodes finds it at once.
        monkeypatch.setattr(module, "_PROBED_RUNS", 2)
        assert [each.execution for each in search(traces, RunQuery(nodes=("rare_v1",)), 10).runs] == [rare]


def test_a_cursor_of_another_form_is_refused() -> None:
    for text in ("", "x", "~~~", "01a1~1~", "01a1~x~y", "'~~"):
        with pytest.raises(TraceError, match="not complete"):
            Cursor.read(text)
    for cursor in (Cursor(), Cursor("01a1-7", None), Cursor(None, (5, "kept-1")), Cursor("01", (5, "a~b"))):
        assert Cursor.read(str(cursor)) == cursor
