"""Tables of pyarrow, polars, duckdb and pandas: convert them to Arrow, and answers back."""

from __future__ import annotations

import sys
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vesper.engines.direct_engine import Batches


def as_stream(table: object) -> object:
    """Return an object with the Arrow interface."""
    if _library(table) == "pandas":
        # The index is no column; the answer gets it back.
        return table.reset_index(drop=True)  # type: ignore[attr-defined]  # it is a DataFrame
    if not (hasattr(table, "__arrow_c_stream__") or hasattr(table, "__arrow_c_array__")):
        raise TypeError(
            f"run_batch takes a table that speaks Arrow (of pyarrow, polars, duckdb or pandas, or anything with "
            f"__arrow_c_stream__), not {type(table).__name__}"
        )
    return table


def answer_like(table: object, batches: Batches, keep: Collection[str]) -> Any:
    """Return the answer as a table of the same kind; for a stream a stream that runs rows on demand."""
    try:
        return _to_table(table, batches, keep)
    except Exception:
        raised = batches.raised()
        if raised is not None:
            raise raised from None
        raise


def _to_table(table: object, batches: Batches, keep: Collection[str]) -> Any:
    library, name = _library(table), type(table).__name__
    if library == "pyarrow":
        arrow = sys.modules["pyarrow"]
        reader = arrow.RecordBatchReader.from_stream(batches)
        if isinstance(table, arrow.Table):
            return reader.read_all()
        if isinstance(table, arrow.RecordBatch):
            whole = reader.read_all().combine_chunks()
            return next(iter(whole.to_batches()), None) or arrow.RecordBatch.from_pylist([], schema=whole.schema)
        return reader
    if library == "polars" and name == "DataFrame":
        return sys.modules["polars"].DataFrame(batches)
    if library == "pandas" and name == "DataFrame":
        from vesper.batch.frames import frame_of

        return frame_of(table, batches, keep)
    if library == "duckdb" and name == "DuckDBPyRelation":
        import pyarrow as pa

        answer = pa.RecordBatchReader.from_stream(batches).read_all()  # noqa: F841  # the query below finds it
        # Relations of two connections cannot be combined, and a relation does not expose its connection. A query that
        # starts from it runs there, and finds `answer` in this frame.
        return table.query("vesper_given", "SELECT * FROM answer")  # type: ignore[attr-defined]  # it is a relation
    return batches


def _library(table: object) -> str:
    return type(table).__module__.partition(".")[0].lstrip("_")
