"""Times of day and periods through the ways into a node: objects, JSON text, tables, the journal."""

from __future__ import annotations

import copy
import pickle
from datetime import UTC, date, datetime, time
from pathlib import Path

import pytest

import vesper
from vesper.journal.typed_json import decode, encode_text

NODE = """\
node_id: shift_v1
type: function
intent: Move a time and a date
inputs:
  begins: time_of_day
  term: period
  on: date
outputs:
  success:
    ends: time_of_day
    until: date
    terms: array<period>
    longest: optional<period>
flow:
  - operation: return
    success:
      ends: begins + duration('9h')
      until: on + term
      terms: sort([term, period('P1Y'), period('P11M')])
      longest: last(sort([term, period('P1Y')]))
"""


@pytest.fixture(params=["python", "interp"])
def node(request: pytest.FixtureRequest, tmp_path: Path) -> vesper.Node:
    (tmp_path / "shift_v1.vsp").write_text(NODE, encoding="utf-8")
    return vesper.load(tmp_path / "shift_v1.vsp", engine=request.param)


def test_objects_and_texts_are_read_alike(node: vesper.Node) -> None:
    expected = {
        "ends": time(2, 30, 0, 5),
        "until": date(2025, 2, 28),
        "terms": [vesper.Period(11), vesper.Period(12), vesper.Period(13)],
        "longest": vesper.Period(13),
    }
    objects = {"begins": time(17, 30, 0, 5, fold=1), "term": vesper.Period(13), "on": date(2024, 1, 31)}
    texts = {"begins": "17:30:00.000005", "term": "P13M", "on": "2024-01-31"}
    assert node.call(objects) == expected
    assert node.call(texts) == expected


@pytest.mark.parametrize(
    "wrong",
    [{"begins": time(1, tzinfo=UTC)}, {"begins": 90}, {"begins": "24:00:00"}, {"term": 12}, {"term": "P1D"},
     {"term": "P10000Y"}, {"begins": datetime(2024, 1, 1, tzinfo=UTC)}],
)  # fmt: skip
def test_other_objects_are_refused(node: vesper.Node, wrong: dict[str, object]) -> None:
    given = {"begins": time(1), "term": vesper.Period(1), "on": date(2024, 1, 31), **wrong}
    with pytest.raises(vesper.BadInput):
        node.call(given)


def test_json_text_has_their_texts(node: vesper.Node) -> None:
    answer = node.run_json(b'{"begins": "17:30:00", "term": "-P1M", "on": "2024-03-31"}')
    shown = bytes(answer).decode()
    assert '"ends":"02:30:00"' in shown.replace(" ", "")
    assert '"terms":["-P1M","P11M","P1Y"]' in shown.replace(" ", "")


@pytest.mark.parametrize("node", ["interp"], indirect=True)
def test_tables_have_times_and_texts(node: vesper.Node) -> None:
    pa = pytest.importorskip("pyarrow")
    table = pa.table(
        {
            "begins": pa.array([time(8), time(23, 59, 59, 999_999)], pa.time64("us")),
            "term": pa.array(["P1Y", "P1M"]),
            "on": pa.array([date(2024, 2, 29)] * 2),
        }
    )
    rows = node.run_batch(table).to_pylist()
    assert [row["ends"] for row in rows] == [time(17), time(8, 59, 59, 999_999)]
    assert [row["longest"] for row in rows] == ["P1Y", "P1Y"]
    assert rows[0]["until"] == date(2025, 2, 28)


@pytest.mark.parametrize("value", [time(0), time(23, 59, 59, 999_999), vesper.Period(-13), vesper.Period(0)])
def test_the_journal_keeps_them(value: object) -> None:
    assert decode(encode_text(value).encode()) == value
    assert copy.deepcopy(value) == value == pickle.loads(pickle.dumps(value))


def test_a_period_has_whole_months_within_its_limit() -> None:
    assert str(vesper.Period(14)) == "P1Y2M"
    for wrong in (1.5, True, "P1Y"):
        with pytest.raises(TypeError):
            vesper.Period(wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="9,999 years"):
        vesper.Period(9_999 * 12 + 1)
