"""Answers as pandas DataFrames, in the dtype family of the given frame and with exact values.

pandas itself makes floats of integers beside nulls, and of the integers inside lists and structs.
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vesper.engines.direct_engine import Batches


def frame_of(given: Any, batches: Batches, keep: Collection[str]) -> Any:
    """Return the answer with the index, the kept columns and the dtype family of the given frame."""
    import pyarrow as pa  # pandas needs it for the Arrow interface

    pandas = sys.modules["pandas"]
    answer = pa.RecordBatchReader.from_stream(batches).read_all()
    family = _family(pandas, given)
    columns = {
        name: given[name] if name in keep else _series(pandas, pa, column, family).set_axis(given.index)
        for name, column in zip(answer.column_names, answer.columns, strict=True)
    }
    return pandas.DataFrame(columns, index=given.index)


def _family(pandas: Any, given: Any) -> str:
    """Return `pyarrow` or `masked` where a column is of that family, in this order, else `numpy`."""
    if any(isinstance(dtype, pandas.ArrowDtype) for dtype in given.dtypes):
        return "pyarrow"
    return "masked" if any(getattr(dtype, "na_value", None) is pandas.NA for dtype in given.dtypes) else "numpy"


def _series(pandas: Any, pa: Any, column: Any, family: str) -> Any:
    if family == "pyarrow":
        return pandas.Series(pandas.arrays.ArrowExtensionArray(column))
    if pa.types.is_nested(column.type):
        return pandas.Series(column.to_pylist(), dtype=object)
    dtypes = {}
    if family == "masked" or column.null_count:
        dtypes = {pa.int64(): pandas.Int64Dtype(), pa.bool_(): pandas.BooleanDtype()}
    if family == "masked":
        dtypes |= {pa.float64(): pandas.Float64Dtype(), pa.string(): pandas.StringDtype()}
    return column.to_pandas(types_mapper=dtypes.get)
