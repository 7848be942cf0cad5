"""Files of tables: Parquet, Arrow, CSV and JSON lines, read and written part by part. Needs pyarrow.

Columns of CSV are read as texts, and lines of JSON as they are: what they stand for is told by the types of the inputs,
by the engine, so that no number is rounded and a cell that does not fit is the affair of its row alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vesper.batch.errors import BatchError
from vesper.batch.table import Form
from vesper.spec.values import scalar_text

if TYPE_CHECKING:
    import pyarrow

FORMATS = ("parquet", "arrow", "csv", "jsonl")
_FORMS: dict[str, Form] = {"parquet": "typed", "arrow": "typed", "csv": "spelled", "jsonl": "json"}
_LINES = "line"
_ROWS_A_BATCH = 65_536
_NEEDED = "files of tables are read and written by pyarrow, which is not installed: pip install 'vesper[batch]'"


def arrow() -> Any:
    """pyarrow."""
    try:
        import pyarrow
    except ImportError:
        raise BatchError(_NEEDED) from None
    return pyarrow


def format_of(path: Path) -> str:
    """What a file is, by the end of its name."""
    name = path.suffix.removeprefix(".").lower()
    found = {"feather": "arrow", "ipc": "arrow", "ndjson": "jsonl"}.get(name, name)
    if found not in FORMATS:
        raise BatchError(f"{path}: a table is a file that ends in .{', .'.join(FORMATS)}")
    return found


@dataclass(frozen=True, slots=True)
class Source:
    """A file that is read from its beginning, part by part."""

    path: Path
    form: Form
    rows: int | None
    """How many there are, where the file says so."""
    parts: Callable[[int, int], Iterator[pyarrow.Table]]
    """So many rows left out, tables of so many rows."""


def open_source(path: Path) -> Source:
    """Look at a file of a table."""
    arrow()
    kind = format_of(path)
    try:
        rows, batches = {"parquet": _parquet, "arrow": _arrow, "csv": _csv, "jsonl": _jsonl}[kind](path)
    except (OSError, ValueError) as error:
        raise BatchError(f"{path}: {error}") from None

    def parts(left_out: int, size: int) -> Iterator[pyarrow.Table]:
        try:
            yield from _in_parts(batches(), left_out, size)
        except (OSError, ValueError) as error:
            raise BatchError(f"{path}: {error}") from None

    return Source(path, _FORMS[kind], rows, parts)


def _in_parts(batches: Iterator[pyarrow.RecordBatch], left_out: int, size: int) -> Iterator[pyarrow.Table]:
    table = arrow().Table
    gathered: list[pyarrow.RecordBatch] = []
    rows = 0
    for batch in batches:
        skipped = min(left_out, batch.num_rows)
        left_out -= skipped
        batch = batch.slice(skipped)
        while rows + batch.num_rows >= size:
            gathered.append(batch.slice(0, size - rows))
            batch = batch.slice(size - rows)
            yield table.from_batches(gathered)
            gathered, rows = [], 0
        if batch.num_rows:
            gathered.append(batch)
            rows += batch.num_rows
    if gathered:
        yield table.from_batches(gathered)


Batches = Callable[[], Iterator["pyarrow.RecordBatch"]]


def _parquet(path: Path) -> tuple[int | None, Batches]:
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        rows: int = file.metadata.num_rows

    def batches() -> Iterator[pyarrow.RecordBatch]:
        with parquet.ParquetFile(path) as file:
            yield from file.iter_batches(_ROWS_A_BATCH)

    return rows, batches


def _arrow(path: Path) -> tuple[int | None, Batches]:
    from pyarrow import ipc, memory_map

    def is_file() -> bool:
        with path.open("rb") as file:
            return file.read(6) == b"ARROW1"

    def batches() -> Iterator[pyarrow.RecordBatch]:
        with memory_map(str(path)) as source:
            if is_file():
                with ipc.open_file(source) as reader:
                    for place in range(reader.num_record_batches):
                        yield reader.get_batch(place)
            else:
                with ipc.open_stream(source) as reader:
                    yield from reader

    is_file()
    return None, batches


def _csv(path: Path) -> tuple[int | None, Batches]:
    from pyarrow import csv, string

    def opened(names: list[str]) -> Any:
        # An empty cell is one that is not given; "" is the empty text.
        convert = csv.ConvertOptions(
            column_types={name: string() for name in names},
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )
        return csv.open_csv(path, parse_options=csv.ParseOptions(newlines_in_values=True), convert_options=convert)

    with opened([]) as reader:
        names: list[str] = reader.schema.names

    def batches() -> Iterator[pyarrow.RecordBatch]:
        with opened(names) as reader:
            yield from reader

    return None, batches


def _jsonl(path: Path) -> tuple[int | None, Batches]:
    pa = arrow()
    schema = pa.schema([(_LINES, pa.string())])

    def batches() -> Iterator[pyarrow.RecordBatch]:
        with path.open(encoding="utf-8", newline="\n") as file:
            lines: list[str] = []
            for line in file:
                if line.strip():
                    lines.append(line.rstrip("\r\n"))
                if len(lines) == _ROWS_A_BATCH:
                    yield pa.record_batch([pa.array(lines, pa.string())], schema=schema)
                    lines = []
            if lines:
                yield pa.record_batch([pa.array(lines, pa.string())], schema=schema)

    with path.open("rb"):
        return None, batches


# -- writing --------------------------------------------------------------------------------------


def write_part(path: Path, table: pyarrow.Table, kind: str) -> None:
    """A part of an answer as a file, there whole or not at all."""
    pa = arrow()
    temporary = path.with_name(f".{path.name}.new")
    try:
        if kind == "parquet":
            from pyarrow import parquet

            parquet.write_table(table, temporary)
        elif kind == "arrow":
            with pa.OSFile(str(temporary), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
                writer.write_table(table)
        elif kind == "csv":
            from pyarrow import csv

            csv.write_csv(flat(table), temporary)
        else:
            with temporary.open("w", encoding="utf-8", newline="\n") as file:
                for row in table.to_pylist():
                    file.write(json.dumps(_form(row), ensure_ascii=False, separators=(",", ":")) + "\n")
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def join_parts(parts: list[Path], out: Path, kind: str) -> None:
    """The parts of an answer as one file, there whole or not at all."""
    pa = arrow()
    temporary = out.with_name(f".{out.name}.new")
    try:
        if kind in ("csv", "jsonl"):
            with temporary.open("wb") as file:
                for number, part in enumerate(parts):
                    with part.open("rb") as given:
                        if kind == "csv" and number > 0:
                            given.readline()  # the names, which the first part has
                        while block := given.read(1 << 20):
                            file.write(block)
        elif kind == "parquet":
            from pyarrow import parquet

            with parquet.ParquetWriter(temporary, parquet.read_schema(parts[0])) as writer:
                for part in parts:
                    writer.write_table(parquet.read_table(part))
        else:
            with pa.memory_map(str(parts[0])) as first:
                schema = pa.ipc.open_file(first).schema
            with pa.OSFile(str(temporary), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
                for part in parts:
                    with pa.memory_map(str(part)) as given:
                        writer.write_table(pa.ipc.open_file(given).read_all())
        temporary.replace(out)
    except BaseException:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def flat(table: pyarrow.Table) -> pyarrow.Table:
    """With a column for each part of a record: `error.code`; scalars that CSV has no form for as their texts."""
    pa = arrow()
    while any(pa.types.is_struct(field.type) for field in table.schema):
        table = table.flatten()
    for place, field in enumerate(table.schema):
        spelled = pa.types.is_temporal(field.type) or pa.types.is_binary(field.type)
        if spelled:
            values = table.column(place).to_pylist()
            texts = [None if value is None else scalar_text(value) for value in values]
            table = table.set_column(place, field.name, pa.array(texts, pa.string()))
    return table


def _form(value: Any) -> Any:
    """A value as JSON has it."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            text = scalar_text(value)
            return value if text not in ("NaN", "Infinity", "-Infinity") else text
        case dict():
            return {name: _form(each) for name, each in value.items()}
        case list():
            return [_form(each) for each in value]
        case tuple():
            return [_form(each) for each in value]
        case _:
            return scalar_text(value)
