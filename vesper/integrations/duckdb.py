"""Nodes as SQL functions of DuckDB: `register(connection, "payment_decision")`. Needs pyarrow.

The function has no fixed types of parameters: DuckDB would cast the arguments to them, and round decimals.
"""

from __future__ import annotations

import os
from datetime import datetime
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
from duckdb.func import FunctionNullHandling, PythonUDFType

from vesper.api.load import load
from vesper.api.node import Node
from vesper.batch.errors import BatchError

if TYPE_CHECKING:
    from vesper.batch.table import Decimals


def register(
    connection: duckdb.DuckDBPyConnection,
    node: Node | str | os.PathLike[str],
    name: str | None = None,
    *,
    nodes: str | os.PathLike[str] | None = None,
    like: duckdb.DuckDBPyRelation | None = None,
    decimals: Decimals = None,
    error_column: str = "error",
    now: datetime | str | None = None,
) -> str:
    """Register a node as a SQL function, and return the name of the function.

    Arguments are the inputs in their declared order; inputs at the end that have a default may be left out. The result
    is a STRUCT of the outputs and an error field, which is NULL for a row with outputs. A NULL argument is a null
    input: the result itself is never NULL.

    `name` is by default the id of the node. Decimal outputs are VARCHAR by default, because DuckDB needs the type of
    the result before the first call. To get DECIMAL columns, pass `like`, a relation with one column for each argument:
    the outputs get the scales that `run_batch` has for these columns. Or pass the scales as `decimals`. `error_column`
    names the field of the error. `now` is required for a node that uses the time of its start.
    """
    found = node if isinstance(node, Node) else load(node, nodes=nodes)
    called = found.id if name is None else name
    function = _Function(found, called, like, decimals, error_column, now)
    connection.create_function(
        called,
        function,
        None,
        function.sql_type(connection),
        type=PythonUDFType.ARROW,
        null_handling=FunctionNullHandling.SPECIAL,
    )
    return called


class _Function:
    """The function that DuckDB calls with the columns of up to 2,048 rows."""

    def __init__(
        self,
        node: Node,
        name: str,
        like: duckdb.DuckDBPyRelation | None,
        decimals: Decimals,
        error_column: str,
        now: datetime | str | None,
    ) -> None:
        if now is None and node._takes_now:
            raise BatchError(f"{name} uses the time of its start: give it to all calls of the function, by now=…")
        self._node = node
        self._name = name
        self._names = [each.outside or each.name for each in node._compiled.node.inputs]
        self._options: dict[str, Any] = {"threads": 1, "error_column": error_column, "now": now}
        if like is None:
            self._options["decimals"] = "text" if decimals is None else decimals
            empty = pa.schema([(each, pa.string()) for each in self._names]).empty_table()
        else:
            self._options["decimals"] = decimals
            empty = self._named(like.limit(0).to_arrow_table().columns)
        self._schema = self._node.run_batch(empty, **self._options).schema
        if self._options["decimals"] is None:
            scales = {each.name: scale for each in self._schema if (scale := _scale(each.type)) is not None}
            self._options["decimals"] = scales
        self._type = pa.struct(list(self._schema))

    def sql_type(self, connection: duckdb.DuckDBPyConnection) -> Any:
        """Return the type of the result, as DuckDB reads it from Arrow."""
        empty = pa.table({"result": pa.array([], self._type)})
        return connection.from_arrow(empty).types[0]

    def __call__(self, *columns: pa.ChunkedArray) -> pa.Array:
        answer = self._node.run_batch(self._named(columns), **self._options)
        if answer.schema != self._schema:
            found = next(each for each in answer.schema if each != self._schema.field(each.name))
            raise BatchError(
                f"{self._name}: with arguments of these types `{found.name}` is {found.type}, and the function was "
                "registered for others: register it with like=, a relation of these columns, or with decimals="
            )
        return pa.StructArray.from_arrays([each.combine_chunks() for each in answer.columns], fields=list(self._type))

    def _named(self, columns: Any) -> pa.Table:
        if len(columns) > len(self._names):
            raise BatchError(
                f"{self._name} has {len(self._names)} arguments ({', '.join(self._names)}), not {len(columns)}"
            )
        return pa.table(list(columns), names=self._names[: len(columns)])


def _scale(type_: pa.DataType) -> int | None:
    """Return the number of digits after the point of the decimals in a type; None where there are none."""
    if pa.types.is_decimal(type_):
        return int(type_.scale)
    inner = (type_.field(place).type for place in range(type_.num_fields))
    return next((scale for each in inner if (scale := _scale(each)) is not None), None)
