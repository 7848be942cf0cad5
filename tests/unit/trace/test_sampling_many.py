"""Sampled traces of JSON calls, lists and tables."""

from __future__ import annotations

import json
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import vesper as api
from tests.unit.api.given import CLOCK, written
from tests.unit.trace.test_sampling import DECISION, LINES, folder, load, stored, the_sampler
from vesper.api.observed import trace_sampling as sampled
from vesper.api.observed.batch_trace_sampling import draw_places
from vesper.engines.registry import ENGINES
from vesper.replay.rerun import replay
from vesper.trace import drawing
from vesper.trace.armed_breakpoints import Armed
from vesper.trace.model import Trace

__all__ = ["folder"]  # the fixture
DIRECT = [each for each in ENGINES if each != "python"]


def payments(*amounts: object) -> list[dict[str, Any]]:
    return [{**DECISION, "amount": each} for each in amounts]


def table(amounts: list[Any]) -> pa.Table:
    typed = pa.decimal128(12, 2)
    columns = {name: [value] * len(amounts) for name, value in DECISION.items() if name not in ("amount", "balance")}
    balance = pa.array([Decimal(100)] * len(amounts), typed)
    return pa.table({**columns, "amount": pa.array(amounts, typed), "balance": balance})


def amounts_of(traces: list[Trace]) -> list[Decimal]:
    return [Decimal(str(each.inputs["amount"])) for each in traces]


def agrees(traces: list[Trace], engine: str) -> bool:
    return all(each.engines == (engine,) and replay(each).difference is None for each in traces)


# -- JSON text ------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", list(ENGINES))
def test_json_text_that_is_sampled_has_a_trace_that_replays(folder: Path, engine: str) -> None:
    plain = load("payment_decision", "interp").run_json
    node = load("payment_decision", engine, sample="100 %")
    texts = [json.dumps(each).encode() for each in payments("1.50", "0", "much", "2")] + [b"{", b"[]"]
    assert [node.run_json(each) for each in texts] == [plain(each) for each in texts]
    found = stored(folder)
    # Rejected inputs have no execution.
    assert [str(each) for each in amounts_of(found)] == ["1.50", "0", "2"]
    assert [each.outcome.kind for each in found if each.outcome] == ["returned", "contract_broken", "returned"]
    assert agrees(found, engine)


def test_inputs_of_every_form_come_out_of_a_text_as_they_went_in(folder: Path) -> None:
    node = load("order_pricing", "interp", sample="100 %")
    node.run_json(json.dumps({"items": [{**LINES[0], "unit_price": "10.50"}]}).encode())
    (found,) = stored(folder)
    assert found.inputs["items"][0] == {**LINES[0], "unit_price": "10.50"}  # type: ignore[index]  # an array of records
    assert replay(found).difference is None


@pytest.mark.parametrize("engine", list(ENGINES))
def test_the_start_of_a_text_is_in_its_trace(folder: Path, engine: str) -> None:
    Path("vesper.toml").write_text('[traces]\nsample = "100 %"\n', encoding="utf-8")
    node = api.load(written(folder, CLOCK), engine=engine)
    assert b"2026-11-15T12:00:00Z" in node.run_json(b'{"add": 1}', now="2026-11-15T12:00:00Z")
    (found,) = stored(folder)
    assert found.now is not None
    assert found.now.isoformat() == "2026-11-15T12:00:00+00:00"
    assert replay(found).difference is None


# -- lists ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", list(ENGINES))
def test_each_of_many_may_have_a_trace(folder: Path, engine: str) -> None:
    node = load("payment_decision", engine, sample="100 %")
    many = payments(1, 2, 3)
    assert [each["decision"] for each in node.map(many)] == ["approve"] * 3
    many[0]["amount"] = 99
    found = stored(folder)
    assert amounts_of(found) == [1, 2, 3]
    assert agrees(found, engine)
    assert [each.started_us for each in found] == sorted(each.started_us for each in found)


@pytest.mark.parametrize("engine", list(ENGINES))
def test_rows_after_an_exception_have_no_traces(folder: Path, engine: str) -> None:
    node = load("payment_decision", engine, sample="100 %")
    with pytest.raises(api.ContractBroken):
        node.map(payments(1, 0, 3))
    assert amounts_of(stored(folder)) == [1, 0], "the one that broke its contract was run, and the last was not"
    with pytest.raises(api.BadInput):
        node.map(payments(4, "much", 5))
    assert amounts_of(stored(folder)) == [1, 0, 4], "the one that does not fit never began"


# -- tables ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", DIRECT)
def test_rows_of_a_table_have_traces(folder: Path, engine: str) -> None:
    plain = load("payment_decision", "interp")
    node = load("payment_decision", engine, sample="100 %")
    given = table([Decimal("1.50"), None, Decimal("0.00"), Decimal("3.00")])
    answer = node.run_batch(given)
    assert answer.equals(plain.run_batch(given))
    found = stored(folder)
    assert [str(each) for each in amounts_of(found)] == ["1.50", "0.00", "3.00"], "null never began"
    assert agrees(found, engine)


def test_rows_are_sampled_wherever_they_stand(folder: Path) -> None:
    """In a batch of several parts, any rows may be sampled; a stream reports them as it is read."""
    node = load("payment_decision", "interp", sample="100 %", per_second=5)
    rows = 40_000
    reader = table([Decimal(each) for each in range(1, rows + 1)]).to_reader(max_chunksize=10_000)
    answer = node.run_batch(reader, threads=1)
    assert sampled._samplers
    assert next(iter(sampled._samplers.values()))[0].counts.passed == 0, "nothing is read yet"
    assert answer.read_all().num_rows == rows
    sampler = the_sampler()
    found = amounts_of(stored(folder))
    assert sampler.counts.kept == len(found) >= 5
    assert sampler.counts.kept + sampler.counts.passed + sampler.counts.lost == rows
    assert len(set(found)) == len(found)
    assert max(found) > 100, "not the first ones"


# -- which ones -----------------------------------------------------------------------------------


def test_the_sample_size_is_binomial(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(11)
    monkeypatch.setattr(drawing, "random", draw)
    for rows, share in ((10, 0.3), (1000, 0.01), (1_000_000, 0.5), (100_000, 0.999), (5000, 0.0001)):
        found = [drawing.how_many(rows, share) for _ in range(400)]
        mean, spread = sum(found) / 400, (rows * share * (1 - share)) ** 0.5
        assert abs(mean - rows * share) < 4 * spread / 20, (rows, share, mean)
        deviation = (sum((each - rows * share) ** 2 for each in found) / 400) ** 0.5
        assert 0.8 * spread < deviation < 1.2 * spread, (rows, share, deviation)
    assert drawing.how_many(7, 1.0) == 7
    assert drawing.how_many(0, 0.5) == 0
    assert drawing.how_many(10_000, 0.0) == 0


def test_any_of_them_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "random", random.Random(12))
    counts = dict.fromkeys(range(10), 0)
    for _ in range(2000):
        found = drawing.places(10, 3)
        assert found == sorted(set(found))
        for each in found:
            counts[each] += 1
    assert all(500 < each < 700 for each in counts.values()), counts
    assert drawing.places(3, 5) == [0, 1, 2]


def test_a_share_of_a_list_is_a_share(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "random", random.Random(13))
    node = load("payment_decision", "interp", sample="1 %")
    node.map(payments(*range(1, 2001)))
    found = amounts_of(stored(folder))
    assert 5 <= len(found) <= 40
    assert the_sampler().counts.passed == 0


def test_with_breakpoints_every_call_is_checked(folder: Path) -> None:
    node = load("payment_decision", "interp", watch=True)
    armed = Armed(folder)
    armed.add(["input.amount > 10000"])
    node.map(payments(50, 30_000))
    node.run_json(json.dumps(payments(40_000)[0]).encode())
    node.run_batch(table([Decimal(50), Decimal(20_000)]))
    found = stored(folder)
    assert amounts_of(found) == [30_000, 40_000, 20_000]
    assert [each.trace_id for each in armed.captured()] == [each.trace_id for each in found]


def test_checked_calls_are_bounded_by_the_queue(folder: Path) -> None:
    node = load("payment_decision", "interp", watch=True, sample="100 %", per_second=3)
    Armed(folder).add(["input.amount > 10000"])
    assert node._entries is not None
    sampling = node._entries.sampling
    assert sampling is not None
    found = draw_places(sampling, 5000)
    assert len(found) == 1000
    assert sum(is_sampled for _, is_sampled in found) == 3
    assert found == sorted(found)
    assert sampling.sampler.counts.passed == 4997 + 4000


def test_without_sampling_json_and_batch_calls_are_the_plain_methods(folder: Path) -> None:
    Path("vesper.toml").write_text('[traces]\nretention = "7d"\n', encoding="utf-8")
    node = load("payment_decision", "interp")
    assert node._entries is not None
    assert node._entries.sampling is None
    assert node._entries.call_many.__module__ != "vesper.api.observed.batch_trace_sampling"
    assert node.run_json is node._entries.json
    assert isinstance(node.run_json, type(len))
