# AUTO-GENERATED - DO NOT EDIT
# types_in_forms_v1, from tests/integration/differential/nodes/types_in_forms_v1.vsp
# semantic hash 79419fcf6882e1ebf137f15de0108471e254aa6264ae26441b4f6f95c66e976f
"""Use the forms of collections, functions and named types with floats, times, bytes and json."""

from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final, TypedDict

from vesper.kernels.array import equal as array_equal
from vesper.kernels.array import first as array_first
from vesper.kernels.array import index_of as array_index_of
from vesper.kernels.array import is_item as array_is_item
from vesper.kernels.array import smallest
from vesper.kernels.array import sort as array_sort
from vesper.kernels.date import add_days as date_add_days
from vesper.kernels.decimal import exact_decimals, exact_entry
from vesper.kernels.duration import sum as duration_sum
from vesper.kernels.float import avg as float_avg
from vesper.kernels.float import sum as float_sum
from vesper.kernels.float import text as float_text
from vesper.kernels.json import Json
from vesper.kernels.map import entries_of, map_of
from vesper.kernels.raised import ContractBroken
from vesper.kernels.regex import matches as regex_matches
from vesper.kernels.runtime.entry import (
    MAX_ENTRIES,
    MAX_TEXT,
    NOT_PLAIN,
    Inputs,
    NotPlain,
    get_entry,
    is_ascii,
    is_text,
    new_objects,
    read_inputs,
    read_value,
    undecorated,
)
from vesper.kernels.runtime.forms import (
    counted_by,
    distinct_by,
    greatest_by,
    grouped_by,
    sorted_by,
)
from vesper.kernels.runtime.source import Source
from vesper.kernels.text import upper as text_upper

D_0: Final = Decimal(0)
D_1_5: Final = Decimal("1.5")


class Reading(TypedDict):
    at: datetime
    day: date
    took: timedelta
    score: float
    raw: bytes
    payload: Json
    note: date | None


class PairsSameRow(TypedDict):
    a: float
    b: str


class Success(TypedDict):
    total: timedelta
    sum: float
    mean: float | None
    latest: Reading | None
    first_day: date | None
    by_score: list[float]
    turned: list[float]
    by_day: dict[date, list[Reading]]
    days_known: dict[date, int]
    kinds: list[Json]
    same: bool
    pairs_same: bool
    found: int | None
    is_in: bool
    longest: timedelta
    kept: list[date]
    shouted: str
    score: Decimal
    order: list[datetime]
    within: bool
    labels: dict[date, str]
    smallest: float | None


@exact_decimals
def types_in_forms_v1(
    readings: list[Reading],
    floats: list[float],
    other: list[float],
    days: list[date],
    holidays: frozenset[date],
    code: str,
    document: Json,
    limit: timedelta | None = None,
) -> Success:
    """Use the forms of collections, functions and named types with floats, times, bytes and
    json."""

    # one pass over readings tests 2 clauses; where one is broken, the first is named
    for item in readings:
        if not (item["score"] >= 0.0 and item["took"] >= timedelta(days=0)):
            # constraint, line 6: score >= 0.0
            if not all(item["score"] >= 0.0 for item in readings):
                raise ContractBroken("constraint", 0, {"readings": readings})

            # constraint, line 10: took >= duration('0s')
            if not all(item["took"] >= timedelta(days=0) for item in readings):
                raise ContractBroken("constraint", 1, {"readings": readings})

    # constraint, line 18: matches(code, "^[a-z]{0,6}$")
    if not regex_matches(code, "^[a-z]{0,6}$"):
        raise ContractBroken("constraint", 2, {"code": code})

    # precondition, line 59: COUNT(readings) <= 20
    if not len(readings) <= 20:
        raise ContractBroken("precondition", 0, {"readings": readings})

    # precondition, line 60: FORALL day IN days SATISFIES day < date('9999-12-31')
    for day in days:
        if not day < date(9999, 12, 31):
            raise ContractBroken("precondition", 1, {"days": days})

    # precondition, line 61: FORALL reading IN readings SATISFIES reading.took < duration('36500d')
    for reading in readings:
        if not reading["took"] < timedelta(days=36500):
            raise ContractBroken("precondition", 2, {"readings": readings})

    # step total, line 64
    total = duration_sum(
        r["took"] for r in readings if not (limit is not None and r["took"] > limit)
    )

    # step longest, line 67
    so_far = timedelta(days=0)
    for r in readings:
        so_far = max(so_far, r["took"])
    longest = so_far

    # step sum, line 72
    sum_ = float_sum(floats)

    # step mean, line 73
    mean = None if len(floats) == 0 else float_avg(floats)

    # step latest, line 74
    latest: Reading | None = greatest_by(lambda r_: r_["at"], readings)

    # step first_day, line 75
    first_day = array_first(array_sort(days, "ascending"))

    # step by_score, line 76
    by_score = sorted_by(lambda f: f, floats, "ascending")

    # step turned, line 77
    turned = sorted_by(lambda f: f, floats, "descending")

    # step by_day, line 78
    by_day: dict[date, list[Reading]] = grouped_by(lambda r_: r_["day"], readings)

    # step days_known, line 79
    days_known = counted_by(lambda day: day, days)

    # step kinds, line 80
    kinds = distinct_by(lambda j: j, [r_["payload"] for r_ in readings])

    # step same, line 81
    same = array_equal(floats, other)

    # step pairs_same, line 82
    pairs_same = array_equal(
        [PairsSameRow(a=f, b=float_text(f)) for f in floats],
        [PairsSameRow(a=f_, b=float_text(f_)) for f_ in floats],
    )

    # step found, line 83
    found = array_index_of(floats, 0.0)

    # step is_in, line 84
    is_in = array_is_item(1.5, floats)

    # step kept, line 85
    kept = [
        date_add_days(day, 1) if by > 0 else day
        for day in days
        if day not in holidays
        for by in [1 if len(days) > 0 else 0]
    ]

    # step shouted, line 86
    shouted = text_upper(code)

    # step score, line 87
    score = D_1_5 if regex_matches(code, "^a") else D_0

    # step order, line 88
    order = [r_["at"] for r_ in sorted(readings, key=lambda r__: r__["at"], reverse=True)]

    # step within, line 89
    within = any(r_["note"] >= r_["day"] for r_ in readings if r_["note"] is not None)

    # step labels, line 90
    labels = map_of([(date(2024, 2, 29), "leap"), (date(2024, 1, 1), "first")])

    # step smallest, line 91
    smallest_ = smallest(floats) if len(floats) > 0 else None

    # postcondition, line 6: score >= 0.0
    if not (latest is None or latest["score"] >= 0.0):
        raise ContractBroken("postcondition", 0, {"latest": latest})

    # postcondition, line 10: took >= duration('0s')
    if not (latest is None or latest["took"] >= timedelta(days=0)):
        raise ContractBroken("postcondition", 1, {"latest": latest})

    # one pass over by_day tests 2 clauses; where one is broken, the first is named
    for _key, item_ in entries_of(by_day):
        if not all(item["score"] >= 0.0 and item["took"] >= timedelta(days=0) for item in item_):
            # postcondition, line 6: score >= 0.0
            if not all(
                all(item_["score"] >= 0.0 for item_ in item) for key, item in entries_of(by_day)
            ):
                raise ContractBroken("postcondition", 2, {"by_day": by_day})

            # postcondition, line 10: took >= duration('0s')
            if not all(
                all(item_["took"] >= timedelta(days=0) for item_ in item)
                for key, item in entries_of(by_day)
            ):
                raise ContractBroken("postcondition", 3, {"by_day": by_day})

    return {
        "total": total,
        "sum": sum_,
        "mean": mean,
        "latest": latest,
        "first_day": first_day,
        "by_score": by_score,
        "turned": turned,
        "by_day": by_day,
        "days_known": days_known,
        "kinds": kinds,
        "same": same,
        "pairs_same": pairs_same,
        "found": found,
        "is_in": is_in,
        "longest": longest,
        "kept": kept,
        "shouted": shouted,
        "score": score,
        "order": order,
        "within": within,
        "labels": labels,
        "smallest": smallest_,
    }


INPUTS: Final = Inputs(
    {
        "readings": "array<{at: timestamp, day: date, took: duration, score: float, raw: bytes, payload: json, note: optional<date>}>",
        "floats": "array<float>",
        "other": "array<float>",
        "days": "array<date>",
        "holidays": "set<date>",
        "code": "string",
        "document": "json",
        "limit": "optional<duration>",
    },
    {},
)
RUN: Final = undecorated(types_in_forms_v1)


def read_reading(given: Any) -> Reading:
    """Read a plain Reading, field by field."""
    if type(given) is not dict:
        raise NotPlain
    for name in given:
        if type(name) is not str:
            raise NotPlain
    if len(given) != 6 + ("note" in given):
        raise NotPlain
    at = given["at"]
    day = given["day"]
    took = given["took"]
    score = given["score"]
    if type(score) is not float:
        raise NotPlain
    raw = given["raw"]
    payload = given["payload"]
    note = get_entry(given, "note")
    return {
        "at": read_value("timestamp", at),
        "day": read_value("date", day),
        "took": read_value("duration", took),
        "score": score,
        "raw": read_value("bytes", raw),
        "payload": read_value("json", payload),
        "note": None if note is None else read_value("date", note),
    }


@exact_entry
def call(inputs: dict[str, Any]) -> Success:
    """Run the node on a caller's own objects; each is checked and converted first."""
    try:
        if type(inputs) is not dict:
            raise NotPlain
        for name in inputs:
            if type(name) is not str:
                raise NotPlain
        if len(inputs) != 7 + ("limit" in inputs):
            raise NotPlain
        readings = inputs["readings"]
        if type(readings) is not list or len(readings) > MAX_ENTRIES:
            raise NotPlain
        readings = [read_reading(item) for item in readings]
        floats = inputs["floats"]
        floats = read_value("array<float>", floats)
        other = inputs["other"]
        other = read_value("array<float>", other)
        days = inputs["days"]
        days = read_value("array<date>", days)
        holidays = inputs["holidays"]
        holidays = read_value("set<date>", holidays)
        code = inputs["code"]
        if type(code) is not str or not (is_ascii(code) or is_text(code)) or len(code) > MAX_TEXT:
            raise NotPlain
        document = inputs["document"]
        document = read_value("json", document)
        limit = get_entry(inputs, "limit")
        limit = None if limit is None else read_value("duration", limit)
    except NOT_PLAIN:
        readings, floats, other, days, holidays, code, document, limit = read_inputs(INPUTS, inputs)
    return new_objects(RUN(readings, floats, other, days, holidays, code, document, limit))


SOURCE: Final = Source(
    "tests/integration/differential/nodes/types_in_forms_v1.vsp",
    lines={
        113: 6, 117: 10, 121: 18, 125: 59, 130: 60, 135: 61, 138: 66, 149: 72, 152: 73, 192: 51,
        199: 86, 211: 90, 214: 91, 218: 6, 222: 10, 231: 6, 238: 10,
    },
    clauses={
        "constraint": [
            "score >= 0.0",
            "took >= duration('0s')",
            'matches(code, "^[a-z]{0,6}$")',
        ],
        "precondition": [
            "COUNT(readings) <= 20",
            "FORALL day IN days SATISFIES day < date('9999-12-31')",
            "FORALL reading IN readings SATISFIES reading.took < duration('36500d')",
        ],
        "postcondition": [
            "score >= 0.0",
            "took >= duration('0s')",
            "score >= 0.0",
            "took >= duration('0s')",
        ],
    },
)  # fmt: skip
