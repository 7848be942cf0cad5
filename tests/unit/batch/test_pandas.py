"""Answers of DataFrames: dtypes of the family that came in, every integer and decimal exact."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import vesper
from tests.unit.batch.given import written

MOMENT = datetime(2026, 11, 15, 12, 0, 0, 1, tzinfo=UTC)
PAST_FLOATS = 2**53 + 1

VALUES: dict[str, tuple[str, pa.DataType, list[Any]]] = {
    "integer": ("integer", pa.int64(), [PAST_FLOATS, -PAST_FLOATS, 2**63 - 1]),
    "boolean": ("boolean", pa.bool_(), [True, False, True]),
    "float": ("float", pa.float64(), [0.1, -1.5, 1e300]),
    "string": ("string", pa.string(), ["", "é", "NaN"]),
    "decimal": ("decimal", pa.decimal128(38, 4), [Decimal("9" * 34 + ".9999"), Decimal("0.1000"), Decimal("-1.0000")]),
    "timestamp": ("timestamp", pa.timestamp("us", "UTC"), [MOMENT, MOMENT, datetime(1, 1, 1, tzinfo=UTC)]),
    "date": ("date", pa.date32(), [date(2026, 2, 28), date(9999, 12, 31), date(1, 1, 1)]),
    "duration": ("duration", pa.duration("us"), [timedelta(0), timedelta(microseconds=1), timedelta(days=-3)]),
    "list": ("array<optional<integer>>", pa.list_(pa.int64()), [[PAST_FLOATS, None], [], [1]]),
    "record": (
        "Line",
        pa.struct([("count", pa.int64()), ("price", pa.decimal128(38, 2))]),
        [
            {"count": PAST_FLOATS, "price": Decimal("1.50")},
            {"count": None, "price": Decimal("9" * 36 + ".99")},
            {"count": 1, "price": Decimal("0.00")},
        ],
    ),
}
"""Types by name: as declared, as a column, and three values."""

FAMILIES: dict[str, Callable[[pa.Table], pd.DataFrame]] = {
    "numpy": lambda table: table.to_pandas(),
    "masked": lambda table: table.to_pandas(types_mapper=_masked),
    "pyarrow": lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
}

DTYPES = {
    ("numpy", "integer"): ("int64", "Int64"),
    ("numpy", "boolean"): ("bool", "boolean"),
    ("numpy", "float"): ("float64", "float64"),
    ("numpy", "string"): ("str", "str"),
    ("masked", "integer"): ("Int64", "Int64"),
    ("masked", "boolean"): ("boolean", "boolean"),
    ("masked", "float"): ("Float64", "Float64"),
    ("masked", "string"): ("string", "string"),
}
"""By family and type: the dtype without and with a row that has an error."""
SHARED_DTYPES = {"timestamp": "datetime64[us, UTC]", "duration": "timedelta64[us]"}


def _masked(type_: pa.DataType) -> Any:
    found = {pa.int64(): "Int64", pa.bool_(): "boolean", pa.float64(): "Float64", pa.string(): "string"}.get(type_)
    return None if found is None else pd.api.types.pandas_dtype(found)


def _dtype(family: str, name: str, *, has_error: bool) -> Any:
    if family == "pyarrow":
        return pd.ArrowDtype(VALUES[name][1])
    found = DTYPES.get((family, name))
    text = SHARED_DTYPES.get(name, "object") if found is None else found[has_error]
    return pd.api.types.pandas_dtype(text)


def _node(folder: Path, declared: str) -> vesper.Node:
    """A node that returns `v`, unless `bad` breaks its precondition."""
    return written(
        folder,
        "echo_v1",
        f"""type: function
intent: Return the value of a row that is not bad
types:
  Line: {{fields: {{count: optional<integer>, price: decimal}}}}
inputs:
  v: {{type: "{declared}"}}
  bad: {{type: boolean}}
outputs:
  success: {{w: "{declared}"}}
contracts:
  preconditions: [NOT bad]
flow:
  - {{operation: compute, step: w, value: v}}
  - {{operation: return, success: [w]}}
""",
    )


def _objects(column: Any) -> list[Any]:
    """Return the cells as Python objects, None where there is none."""
    return [_object(each) for each in column.array]


def _object(cell: Any) -> Any:
    if isinstance(cell, (list, dict)):
        return cell
    if pd.isna(cell):
        return None
    if isinstance(cell, pd.Timestamp):
        return cell.to_pydatetime()
    return cell.to_pytimedelta() if isinstance(cell, pd.Timedelta) else cell


@pytest.mark.parametrize("has_error", [False, True])
@pytest.mark.parametrize("is_nullable", [False, True])
@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_column_keeps_its_family_and_every_value(
    tmp_path: Path, family: str, name: str, is_nullable: bool, has_error: bool
) -> None:
    declared, type_, values = VALUES[name]
    if is_nullable:
        declared, values = f"optional<{declared}>", [values[0], values[1], None]
    table = pa.table({"v": pa.array(values, type_), "bad": [False, has_error, False]})
    frame = FAMILIES[family](table)
    if (is_nullable and family == "numpy") or (family != "pyarrow" and name in ("list", "record")):
        frame["v"] = pd.Series(values, dtype=object)  # as a caller writes it: pandas makes floats of integers
    answer = _node(tmp_path, declared).run_batch(frame)
    expected = _dtype(family, name, has_error=has_error or is_nullable)
    assert str(answer["w"].dtype) == str(expected)  # pandas knows UTC by identity, which another test may change
    expected = [values[0], None if has_error else values[1], values[2]]
    assert _objects(answer["w"]) == expected
    assert [each is not None for each in _objects(answer["error"])] == [False, has_error, False]


def test_one_error_row_rounds_no_integer(tmp_path: Path) -> None:
    node = written(
        tmp_path,
        "positive_v1",
        """type: function
intent: Return a positive number
inputs: {n: integer}
outputs: {success: {m: integer}}
contracts: {preconditions: [n > 0]}
flow: [{operation: return, success: {m: n}}]
""",
    )
    for dtype, expected in (("int64", "Int64"), ("Int64", "Int64"), ("int64[pyarrow]", "int64[pyarrow]")):
        frame = pd.DataFrame({"n": pd.array([PAST_FLOATS, -1], dtype=dtype)})
        answer = node.run_batch(frame)
        assert str(answer["m"].dtype) == expected
        assert answer["m"][0] == PAST_FLOATS
        assert answer["m"].isna().tolist() == [False, True]


@pytest.mark.parametrize(
    "dtypes, expected",
    [
        (("int64", "bool"), "Int64"),
        (("Int64", "bool"), "Int64"),
        (("int64", "boolean"), "Int64"),
        (("int64[pyarrow]", "bool"), "int64[pyarrow]"),
        (("Int64", "bool[pyarrow]"), "int64[pyarrow]"),
    ],
)
def test_arrow_decides_in_a_frame_of_several_families(tmp_path: Path, dtypes: tuple[str, str], expected: str) -> None:
    frame = pd.DataFrame({"v": pd.array([1, 2], dtype=dtypes[0]), "bad": pd.array([False, True], dtype=dtypes[1])})
    assert str(_node(tmp_path, "integer").run_batch(frame)["w"].dtype) == expected


def test_a_kept_column_is_the_given_one(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "v": [1, 2],
            "bad": [False, True],
            "kind": pd.Categorical(["x", None]),
            "small": pd.array([1, 2], dtype="int8"),
            "big": pd.array([PAST_FLOATS, None], dtype="Int64"),
        },
        index=["p", "p"],
    )
    answer = _node(tmp_path, "integer").run_batch(frame, keep=iter(["big", "kind", "small"]))
    assert list(answer.columns) == ["big", "kind", "small", "w", "error"]
    pd.testing.assert_frame_equal(answer[["big", "kind", "small"]], frame[["big", "kind", "small"]])


def test_an_empty_frame_has_the_dtypes_of_its_family(tmp_path: Path) -> None:
    frame = pd.DataFrame({"v": pd.array([], dtype="int64"), "bad": pd.array([], dtype="bool")})
    answer = _node(tmp_path, "integer").run_batch(frame)
    assert (len(answer), str(answer["w"].dtype)) == (0, "int64")


@pytest.mark.parametrize("has_error", [False, True])
@pytest.mark.parametrize("name", VALUES)
def test_polars_keeps_every_value(tmp_path: Path, name: str, has_error: bool) -> None:
    declared, type_, values = VALUES[name]
    frame = pl.DataFrame(pa.table({"v": pa.array(values, type_), "bad": [False, has_error, False]}))
    answer = _node(tmp_path, declared).run_batch(frame)
    assert answer["w"].dtype == frame["v"].dtype
    assert answer["w"].to_list() == [values[0], None if has_error else values[1], values[2]]
