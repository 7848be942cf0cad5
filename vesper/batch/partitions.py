"""Partitions: the parts of input files that workers run independently, and how each is read and run.

A Parquet file is divided by row groups, an Arrow file by its batches, JSON lines by bytes. Any other file is one part.
"""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from vesper.batch.errors import BatchError
from vesper.batch.files import (
    FORMATS,
    arrow,
    format_of,
    in_parts,
    line_batches,
    open_source,
    read_line,
    schema_of_lines,
    write_tables,
)
from vesper.batch.job import ROWS_A_PART, count_errors
from vesper.batch.table import Form
from vesper.storage.file_access import open_regular

if TYPE_CHECKING:
    import pyarrow as pa

BYTES_A_PART = 64 << 20
"""Bytes of a part of a file of lines, up to the end of its last line."""
_ROWS_A_BATCH = 65_536

Unit = Literal["file", "row_groups", "batches", "bytes"]
RunRows = Callable[[Form, "pa.Table"], "pa.Table"]
"""Runs the rows of a table in this form."""


@dataclass(frozen=True, slots=True)
class Partition:
    """A part of an input file, and the name of the file with its answer."""

    path: str
    unit: Unit
    begin: int
    end: int
    size: int
    """Its bytes in the file, as far as they are known; for the share of the work that is done."""
    output: str

    def manifest_entry(self) -> dict[str, Any]:
        """Return the part as the manifest has it."""
        part: dict[str, Any] = {} if self.unit == "file" else {self.unit: [self.begin, self.end]}
        return {"path": self.path, **part}


@dataclass(frozen=True, slots=True)
class FinishedPart:
    """The record of a part in the manifest."""

    output: str
    rows: int
    errors: dict[str, int]
    """Rows with an error, by kind and code."""
    sha256: str


def find_inputs(given: Sequence[Path]) -> list[Path]:
    """Return the files of paths, folders and patterns, each once. Hidden files and those with `_` are left out."""
    found: dict[Path, Path] = {}
    for each in given:
        if each.is_dir():
            inside = [path for path in sorted(each.iterdir()) if path.is_file() and path.name[0] not in "._"]
            files = [path for path in inside if path.suffix.removeprefix(".").lower() in FORMATS]
            if not files:
                raise BatchError(f"{each}: no file in this folder ends in .{', .'.join(FORMATS)}")
        elif is_pattern(each):
            files = [Path(path) for path in sorted(glob.glob(str(each), recursive=True))]  # noqa: PTH207  # a text
            if not files:
                raise BatchError(f"{each}: no file has such a name")
        else:
            files = [each]
        for path in files:
            found.setdefault(path.resolve(), path)
    return list(found.values())


def is_pattern(path: Path) -> bool:
    """Return whether a path is a pattern that matches files. The path of an existing file is not one."""
    return glob.has_magic(str(path)) and not path.exists()


def plan_partitions(paths: Sequence[Path], kind: str) -> tuple[list[Partition], Form, pa.Schema]:
    """Return the parts of files, and the form and columns of their tables. All files must have those of the first."""
    parts: list[Partition] = []
    form: Form = "typed"
    schema = None
    for path in paths:
        source = open_source(path)
        if schema is None:
            form, schema = source.form, source.schema
        elif source.form != form or not source.schema.equals(schema):
            raise BatchError(
                f"{path}: its columns are not those of {paths[0]}, and all parts of an answer have the same: "
                f"{_difference(schema, source.schema)}"
            )
        for unit, begin, end, size in _ranges(path):
            parts.append(Partition(str(path.resolve()), unit, begin, end, size, f"part-{len(parts):05}.{kind}"))
    return parts, form, schema


def _difference(first: pa.Schema, second: pa.Schema) -> str:
    for name in dict.fromkeys([*first.names, *second.names]):
        types = [str(each.field(name).type) if name in each.names else "no column" for each in (first, second)]
        if types[0] != types[1]:
            return f"`{name}` is {types[0]} there, and {types[1]} here"
    return "they have another order, or are files of another format"


def _ranges(path: Path) -> Iterator[tuple[Unit, int, int, int]]:
    """Return unit, begin, end and bytes of each part of a file."""
    size = path.stat().st_size
    match format_of(path):
        case "parquet":
            from pyarrow import parquet

            with parquet.ParquetFile(path) as file:
                groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
            yield from _group_members("row_groups", [(each.num_rows, each.total_byte_size) for each in groups])
        case "arrow" if _is_arrow_file(path):
            with arrow().memory_map(str(path)) as given, arrow().ipc.open_file(given) as reader:
                batches = [reader.get_batch(number) for number in range(reader.num_record_batches)]
                yield from _group_members("batches", [(each.num_rows, each.nbytes) for each in batches])
        case "jsonl" if size > BYTES_A_PART:
            for begin in range(0, size, BYTES_A_PART):
                yield "bytes", begin, min(begin + BYTES_A_PART, size), min(BYTES_A_PART, size - begin)
        case _:
            yield "file", 0, 0, size


def _group_members(unit: Unit, members: Sequence[tuple[int, int]]) -> Iterator[tuple[Unit, int, int, int]]:
    """Return ranges of members with up to `ROWS_A_PART` rows, or one larger member."""
    begin = rows = size = 0
    for number, (more_rows, more_bytes) in enumerate(members):
        if rows and rows + more_rows > ROWS_A_PART:
            yield unit, begin, number, size
            begin, rows, size = number, 0, 0
        rows, size = rows + more_rows, size + more_bytes
    yield unit, begin, len(members), size


def _is_arrow_file(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(6) == b"ARROW1"


# -- in a worker ----------------------------------------------------------------------------------


def run_partition(part: Partition, folder: Path, kind: str, error_column: str, run: RunRows) -> FinishedPart:
    """Run a part and write its file. Another attempt at the same part would write an equal file."""
    rows = 0
    errors: dict[str, int] = {}

    def answers() -> Iterator[pa.Table]:
        nonlocal rows
        form, tables = _read(part)
        for table in tables:
            answer = run(form, table)
            rows += table.num_rows
            for name, count in count_errors(answer.column(error_column)).items():
                errors[name] = errors.get(name, 0) + count
            yield answer

    path = folder / part.output
    try:
        write_tables(path, answers(), kind)
        return FinishedPart(part.output, rows, errors, file_hash(path))
    except OSError as error:
        raise BatchError(f"{error.filename or part.path}: {error.strerror or error}") from None
    except ValueError as error:
        raise BatchError(f"{part.path}: {error}") from None


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read(part: Partition) -> tuple[Form, Iterable[pa.Table]]:
    path = Path(part.path)
    if part.unit == "file":
        source = open_source(path)
        return source.form, source.parts(0, ROWS_A_PART)
    os.close(open_regular(path))
    if part.unit == "bytes":
        batches = line_batches(_lines(path, part.begin, part.end), "the line at byte")
        return "json", in_parts(batches, schema_of_lines(), 0, ROWS_A_PART)
    read = _row_groups if part.unit == "row_groups" else _arrow_batches
    return "typed", read(path, part.begin, part.end)


def _row_groups(path: Path, begin: int, end: int) -> Iterator[pa.Table]:
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        batches = file.iter_batches(_ROWS_A_BATCH, row_groups=list(range(begin, end)))
        yield from in_parts(batches, file.schema_arrow, 0, ROWS_A_PART)


def _arrow_batches(path: Path, begin: int, end: int) -> Iterator[pa.Table]:
    with arrow().memory_map(str(path)) as given, arrow().ipc.open_file(given) as reader:
        yield from in_parts(map(reader.get_batch, range(begin, end)), reader.schema, 0, ROWS_A_PART)


def _lines(path: Path, begin: int, end: int) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that begin in a range of bytes, each with its first byte."""
    with path.open("rb") as file:
        if begin:
            file.seek(begin - 1)
            read_line(file)  # the line before, or the rest of it
            begin = file.tell()
        while begin < end and (line := read_line(file)):
            yield begin, line
            begin = file.tell()
