"""Rows of files of inputs as cases: CSV, JSON lines, Parquet and Arrow, read in parts.

A function that returns its inputs reads the columns by the types of the node, as a batch does. A row that it refuses is
excluded with its number, and so is one that the file reader cannot split.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from vesper.batch.faults import run_readable
from vesper.batch.files import open_source
from vesper.batch.table import Declared, Wanted, run_table
from vesper.changes.backtest.cases import Case, Excluded
from vesper.compiler import Compiled
from vesper.engines.direct_engine import DirectProgram, outcome_of_raw
from vesper.engines.outcome import Failed, outcome_code
from vesper.engines.registry import ENGINES, FIRST_TIER
from vesper.language.diagnostics.source import SourceFile
from vesper.language.ir import nodes as ir
from vesper.language.ir.encode import encode_and_hash
from vesper.language.ir.recursion import reachable_functions
from vesper.values.numbers import parse_decimal
from vesper.values.types import DECIMAL, MapOf, OptionalOf, Type

_ROWS_A_PART = 16_384
_ERROR = "_error_of_row"


def file_rows(
    path: Path,
    before: Compiled,
    after: Compiled,
    now: datetime,
    limit: int | None = None,
    reached: Callable[[float], None] = lambda _share: None,
) -> Iterator[Case | Excluded]:
    """Yield the rows of a file, the first `limit` of them. Raises `BatchError` for a file without the inputs."""
    reader = _RowReader(before, after)
    source = open_source(path)
    row = 0
    for table in source.parts(0, _ROWS_A_PART):
        part = table if limit is None else table.slice(0, max(0, limit - row))
        for values in reader.read(part, source.form):
            row += 1
            name = f"{path}, row {row:,}"
            yield Excluded(name, values) if isinstance(values, str) else Case(name, values, now)
        reached(row / source.rows if source.rows else source.read.share)
        if limit is not None and row >= limit:
            return


class _RowReader:
    """Reads tables as inputs of either version."""

    def __init__(self, before: Compiled, after: Compiled) -> None:
        inputs = _inputs_of(before.node, after.node)
        self._types = {each.name: each.type for each in inputs}
        compiled = _identity(inputs)
        program = ENGINES[FIRST_TIER].load(compiled)
        assert isinstance(program, DirectProgram)
        self._program = program
        self._declared = Declared(before.node.node_id, tuple(each.outside or each.name for each in inputs), ())

    def read(self, table: Any, form: Any) -> Iterator[dict[str, object] | str]:
        """Yield the inputs of each row, or why it is excluded."""
        wanted = Wanted(decimals="text", error_column=_ERROR, form=form)

        def run(cells: Any) -> Any:
            return run_table(self._program, self._declared, cells, wanted, _explain, None, None)

        answer = run_readable(table, _ERROR, run)
        columns = {name: answer.column(name).to_pylist() for name in self._types}
        for row, error in enumerate(answer.column(_ERROR).to_pylist()):
            if error is not None:
                yield f"row refused: {error['message'] if isinstance(error, Mapping) else error}"
                continue
            values = {name: _value(self._types[name], column[row]) for name, column in columns.items()}
            yield {name: each for name, each in values.items() if each is not None}


def _explain(raw: Any, _given: Any) -> tuple[str, str, str | None, str]:
    outcome = outcome_of_raw(raw)
    code = outcome_code(outcome) or outcome.kind
    problems = outcome.problems if isinstance(outcome, Failed) else ()
    found = problems[0] if problems else None
    return "bad_input", code, None, code if found is None else f"{found.path} {found.kind}"


def _inputs_of(before: ir.Node, after: ir.Node) -> list[ir.Input]:
    """Return the inputs of both versions; those that only the later one has may be missing."""
    names = {each.name for each in before.inputs}
    later = [
        replace(each, type=each.type if isinstance(each.type, OptionalOf) else OptionalOf(each.type), default=None)
        for each in after.inputs
        if each.name not in names and each.name not in after.flagged
    ]
    own = [each for each in before.inputs if each.name not in before.flagged]
    return [replace(each, flag=None) for each in (*own, *later)]


def _identity(inputs: list[ir.Input]) -> Compiled:
    """Return a function that returns its inputs."""
    source = SourceFile("rows", "")
    place = ir.Place(1, 1, 1, 1)
    refs = tuple((each.name, ir.Ref("input", each.name, each.type, place)) for each in inputs)
    node = ir.Node(
        node_id="backtest_rows_v1",
        type="function",
        inputs=tuple(inputs),
        outputs=tuple(ir.Output(each.name, each.type) for each in inputs),
        constants=(),
        constraints=(),
        preconditions=(),
        body=(ir.Return(refs),),
        postconditions=(),
        source=ir.Source(source.path, source.sha256, "Rows of a file of inputs"),
    )
    node = ir.number_expressions(replace(node, functions=reachable_functions(node)))
    written = encode_and_hash(node)
    assert written is not None  # smaller than the node whose inputs these are
    return Compiled(source, node, (), *written)


def _value(type_: Type, value: object) -> object:
    """Convert a value of a column to the form of an input. Decimals were read as text, maps as entries."""
    inner = type_.inner if isinstance(type_, OptionalOf) else type_
    if inner == DECIMAL and isinstance(value, str):
        return parse_decimal(value)
    return dict(value) if isinstance(inner, MapOf) and isinstance(value, list) else value
