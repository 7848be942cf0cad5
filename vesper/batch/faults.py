"""Rows of a file that cannot be read: a column of messages beside the columns of cells.

The engine does not see them. They are taken out before a table runs, and put back as rows with an error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

FAULTS = "\x00faults"
"""Name of the column; no input has such a name."""
KIND, CODE = "failed", "malformed_row"


def fault_field(lib: Any) -> pa.Field:
    """Return the column: the message of a row that cannot be read, else null."""
    return lib.field(FAULTS, lib.string())


def run_readable(table: Any, error_column: str, run: Callable[[Any], Any]) -> Any:
    """Run the rows that could be read, and return the answer with an error in each of the others."""
    if FAULTS not in table.column_names:
        return run(table)
    faults, cells = table.column(FAULTS), table.drop_columns([FAULTS])
    if faults.null_count == len(faults):
        return run(cells)
    import pyarrow as pa

    answer = _run_others(cells, faults, run)
    at = answer.schema.get_field_index(error_column)
    errors = [
        error if message is None else {"kind": KIND, "code": CODE, "where": None, "message": message}
        for error, message in zip(answer.column(at).to_pylist(), faults.to_pylist(), strict=True)
    ]
    field = answer.schema.field(at)
    return answer.set_column(at, field, pa.array(errors, field.type))


def _run_others(cells: pa.Table, faults: pa.ChunkedArray, run: Callable[[Any], Any]) -> Any:
    """Run the rows without a fault; the answer has a row of nulls for each of the others."""
    import pyarrow as pa
    from pyarrow import compute  # not imported by pyarrow itself

    is_readable = compute.is_null(faults)
    answer = run(cells.filter(is_readable))
    count = iter(range(answer.num_rows))
    order = pa.array([next(count) if each else None for each in is_readable.to_pylist()], pa.int64())
    return answer.take(order)
