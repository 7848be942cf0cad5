"""Files of tables: Parquet, Arrow, CSV and JSON lines, read and written in parts. Needs pyarrow.

CSV columns are read as texts, and JSON lines unparsed: the engine reads them by the types of the inputs, so that no
number is rounded and a bad cell affects its row alone. A row that cannot be read at all has a message instead
(`vesper.batch.faults`).
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from vesper.batch.csv_records import MAX_RECORD_BYTES, CsvReader
from vesper.batch.errors import BatchError
from vesper.batch.faults import fault_field
from vesper.batch.json_members import cut_out
from vesper.batch.table import Form
from vesper.storage.file_access import open_regular, temporary_beside
from vesper.values.model import scalar_text

if TYPE_CHECKING:
    import pyarrow as pa

FORMATS = ("parquet", "arrow", "csv", "jsonl")
_FORMS: dict[str, Form] = {"parquet": "typed", "arrow": "typed", "csv": "spelled", "jsonl": "json"}
_LINES = "line"
_ROWS_A_BATCH = 65_536
_NEEDED = "files of tables are read and written by pyarrow, which is not installed: pip install 'vesper[batch]'"


def arrow() -> Any:
    """Return pyarrow."""
    try:
        import pyarrow as pa
    except ImportError:
        raise BatchError(_NEEDED) from None
    return pa


def format_of(path: Path) -> str:
    """Return the format of a file, by its suffix."""
    name = path.suffix.removeprefix(".").lower()
    found = {"feather": "arrow", "ipc": "arrow", "ndjson": "jsonl"}.get(name, name)
    if found not in FORMATS:
        raise BatchError(f"{path}: a table is a file that ends in .{', .'.join(FORMATS)}")
    return found


@dataclass(frozen=True, slots=True)
class Source:
    """A file that is read from its beginning, in parts."""

    path: Path
    form: Form
    rows: int | None
    """The number of rows, where the file has it."""
    schema: pa.Schema
    parts: Callable[[int, int], Iterator[pa.Table]]
    """Return tables of so many rows, after skipping some. A file without rows has one empty table."""
    read: Position
    """Return the share of it that was read, where `rows` is unknown."""


@dataclass(slots=True)
class Position:
    """The position of a reader, in bytes or in any unit."""

    end: int
    at: int = 0

    @property
    def share(self) -> float:
        return min(self.at / self.end, 1.0) if self.end else 1.0


def open_source(path: Path) -> Source:
    """Open a file of a table."""
    arrow()
    kind = format_of(path)
    try:
        os.close(open_regular(path))  # the system's own message about the file
        position = Position(path.stat().st_size)
        opens = {"parquet": _parquet, "arrow": _arrow, "csv": _csv, "jsonl": _jsonl}[kind]
        rows, schema, batches = opens(path, position)
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from None

    def parts(left_out: int, size: int) -> Iterator[pa.Table]:
        try:
            yield from in_parts(batches(), schema, left_out, size)
        except (OSError, ValueError) as error:
            raise _unreadable(path, error) from None

    return Source(path, _FORMS[kind], rows, schema, parts, position)


def _unreadable(path: Path, error: OSError | ValueError) -> BatchError:
    said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return BatchError(f"{path}: {said}")


def in_parts(batches: Iterator[pa.RecordBatch], schema: pa.Schema, left_out: int, size: int) -> Iterator[pa.Table]:
    """Return tables of `size` rows after the first `left_out`; at least one, which may be empty."""
    table = arrow().Table
    is_empty = left_out == 0
    gathered: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        is_empty = is_empty and batch.num_rows == 0
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
    elif is_empty:
        yield schema.empty_table()


Batches = Callable[[], Iterator["pa.RecordBatch"]]


def _parquet(path: Path, _position: Position) -> tuple[int | None, pa.Schema, Batches]:
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        rows: int = file.metadata.num_rows
        schema = file.schema_arrow

    def batches() -> Iterator[pa.RecordBatch]:
        with parquet.ParquetFile(path) as file:
            yield from file.iter_batches(_ROWS_A_BATCH)

    return rows, schema, batches


def _arrow(path: Path, position: Position) -> tuple[int | None, pa.Schema, Batches]:
    from pyarrow import ipc, memory_map

    def is_file() -> bool:
        with path.open("rb") as file:
            return file.read(6) == b"ARROW1"

    def batches() -> Iterator[pa.RecordBatch]:
        with memory_map(str(path)) as source:
            if is_file():
                with ipc.open_file(source) as reader:
                    position.end = reader.num_record_batches
                    for place in range(reader.num_record_batches):
                        position.at = place + 1
                        yield reader.get_batch(place)
            else:
                with ipc.open_stream(source) as reader:
                    for batch in reader:
                        position.at = source.tell()
                        yield batch

    with memory_map(str(path)) as source, (ipc.open_file if is_file() else ipc.open_stream)(source) as reader:
        return None, reader.schema, batches


def _csv(path: Path, position: Position) -> tuple[int | None, pa.Schema, Batches]:
    reader = CsvReader(path, arrow())
    return None, reader.schema, lambda: reader.batches(position)


def _jsonl(path: Path, position: Position) -> tuple[int | None, pa.Schema, Batches]:
    def lines() -> Iterator[tuple[int, bytes]]:
        with path.open("rb") as file:
            for number, raw in enumerate(iter(lambda: read_line(file), b""), start=1):
                position.at = file.tell()
                yield number, raw

    return None, schema_of_lines(), lambda: line_batches(lines(), "line")


def schema_of_lines() -> pa.Schema:
    """Return the columns of JSON lines."""
    lib = arrow()
    return lib.schema([(_LINES, lib.string()), fault_field(lib)])


def line_batches(lines: Iterable[tuple[int, bytes]], place: str) -> Iterator[pa.RecordBatch]:
    """Yield numbered lines as batches, without the blank ones; `place` is the word before the number in messages."""
    lib, schema = arrow(), schema_of_lines()

    def batch(rows: list[tuple[str | None, str | None]]) -> pa.RecordBatch:
        columns = zip(*rows, strict=True)
        arrays = [lib.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
        return lib.RecordBatch.from_arrays(arrays, schema=schema)

    rows: list[tuple[str | None, str | None]] = []
    for number, raw in lines:
        if raw.strip():
            rows.append(_text(raw, f"{place} {number}"))
        if len(rows) == _ROWS_A_BATCH:
            yield batch(rows)
            rows = []
    if rows:
        yield batch(rows)


def read_line(file: BinaryIO) -> bytes:
    """Return the next line. Of a line that is too long, only a beginning is returned, which is too long as well."""
    raw = rest = file.readline(MAX_RECORD_BYTES + 1)
    while len(rest) > MAX_RECORD_BYTES and not rest.endswith(b"\n"):
        rest = file.readline(MAX_RECORD_BYTES + 1)
    return raw


def _text(raw: bytes, place: str) -> tuple[str | None, str | None]:
    """Return the text of a line, or why it has none."""
    if len(raw) > MAX_RECORD_BYTES:
        return None, f"{place} is longer than {MAX_RECORD_BYTES:,} bytes"
    try:
        return raw.rstrip(b"\r\n").decode("utf-8"), None
    except UnicodeDecodeError as error:
        return None, f"{place} is not UTF-8: {error.reason} at byte {error.start + 1}"


def split_lines(table: pa.Table, keep: Sequence[str]) -> tuple[pa.Table, pa.Table]:
    """Return JSON lines without the kept members, and those members as columns of texts."""
    lib = arrow()
    lines: list[str | None] = []
    columns: list[list[str | None]] = [[] for _ in keep]
    for line in table.column(_LINES).to_pylist():
        rest, members = (None, [None] * len(keep)) if line is None else cut_out(line, keep)
        lines.append(rest)
        for column, member in zip(columns, members, strict=True):
            column.append(member)
    kept = {name: lib.array(column, lib.string()) for name, column in zip(keep, columns, strict=True)}
    place = table.schema.get_field_index(_LINES)
    return table.set_column(place, _LINES, lib.array(lines, lib.string())), lib.table(kept)


def with_kept(kept: pa.Table, answer: pa.Table) -> pa.Table:
    """Return an answer with the kept columns in front."""
    for name in kept.column_names:
        if name in answer.column_names:
            raise BatchError(f"`{name}` is kept, and is an output or the column of errors: it cannot be both")
    return arrow().table([*kept.columns, *answer.columns], names=[*kept.column_names, *answer.column_names])


# -- writing --------------------------------------------------------------------------------------


def write_part(path: Path, table: pa.Table, kind: str) -> None:
    """Write a part of an answer as a file, atomically."""
    write_tables(path, iter([table]), kind)


def write_tables(path: Path, tables: Iterator[pa.Table], kind: str) -> None:
    """Write tables of one schema, at least one, as a file, atomically."""
    temporary = temporary_beside(path)
    try:
        {"parquet": _to_parquet, "arrow": _to_arrow, "csv": _to_csv, "jsonl": _to_jsonl}[kind](temporary, tables)
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def _to_parquet(path: Path, tables: Iterator[pa.Table]) -> None:
    from pyarrow import parquet

    first = next(tables)
    with parquet.ParquetWriter(path, first.schema) as writer:
        for table in itertools.chain([first], tables):
            writer.write_table(table)


def _to_arrow(path: Path, tables: Iterator[pa.Table]) -> None:
    lib = arrow()
    first = next(tables)
    with lib.OSFile(str(path), "wb") as sink, lib.ipc.new_file(sink, first.schema) as writer:
        for table in itertools.chain([first], tables):
            writer.write_table(table)


def _to_csv(path: Path, tables: Iterator[pa.Table]) -> None:
    from pyarrow import csv

    first = flat(next(tables))
    with csv.CSVWriter(path, first.schema) as writer:
        for table in itertools.chain([first], map(flat, tables)):
            writer.write_table(table)


def _to_jsonl(path: Path, tables: Iterator[pa.Table]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for table in tables:
            row_type = arrow().struct(list(table.schema))
            for row in table.to_pylist():
                file.write(_json(row, row_type) + "\n")


def join_parts(parts: list[Path], out: Path, kind: str) -> None:
    """Write the parts of an answer as one file, atomically."""
    lib = arrow()
    temporary = temporary_beside(out)
    try:
        if kind in ("csv", "jsonl"):
            with temporary.open("wb") as file:
                for number, part in enumerate(parts):
                    with part.open("rb") as given:
                        if kind == "csv" and number > 0:
                            given.readline()  # the header, which the first part has
                        while block := given.read(1 << 20):
                            file.write(block)
        elif kind == "parquet":
            from pyarrow import parquet

            with parquet.ParquetWriter(temporary, parquet.read_schema(parts[0])) as writer:
                for part in parts:
                    writer.write_table(parquet.read_table(part))
        else:
            with lib.memory_map(str(parts[0])) as first:
                schema = lib.ipc.open_file(first).schema
            with lib.OSFile(str(temporary), "wb") as sink, lib.ipc.new_file(sink, schema) as writer:
                for part in parts:
                    with lib.memory_map(str(part)) as given:
                        writer.write_table(lib.ipc.open_file(given).read_all())
        temporary.replace(out)
    except BaseException:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def flat(table: pa.Table) -> pa.Table:
    """Return a table with a column for each part of a record, such as `error.code`.

    Values without a CSV form become their text; lists and maps become JSON.
    """
    lib = arrow()
    while any(lib.types.is_struct(field.type) for field in table.schema):
        table = table.flatten()
    for place, field in enumerate(table.schema):
        if lib.types.is_nested(field.type):
            spelled: Callable[[Any], str] = partial(_json, type_=field.type)
        elif lib.types.is_temporal(field.type) or lib.types.is_binary(field.type):
            spelled = scalar_text
        else:
            continue
        texts = [None if value is None else spelled(value) for value in table.column(place).to_pylist()]
        table = table.set_column(place, field.name, lib.array(texts, lib.string()))
    return table


def _json(value: Any, type_: pa.DataType) -> str:
    return json.dumps(_form(value, type_), ensure_ascii=False, separators=(",", ":"))


def _form(value: Any, type_: pa.DataType) -> Any:
    """Return a value in the form of JSON inputs (docs/spec/values.md).

    A map with texts for keys is an object, any other a list of pairs.
    """
    types = arrow().types
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            text = scalar_text(value)
            return value if text not in ("NaN", "Infinity", "-Infinity") else text
        case dict():
            return {name: _form(each, type_.field(name).type) for name, each in value.items()}
        case list() if types.is_map(type_):
            pairs = [(_form(key, type_.key_type), _form(each, type_.item_type)) for key, each in value]
            return dict(pairs) if types.is_string(type_.key_type) else [list(pair) for pair in pairs]
        case list():
            return [_form(each, type_.value_type) for each in value]
        case _:
            return scalar_text(value)
