"""CSV files as record batches. Needs pyarrow, which reads the well-formed records.

A record that cannot be read is a row too: its cells are null, and the column of faults has the reason and the line. The
reader continues at the next line. Records are separated here, because an open quote would swallow all later ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from vesper.batch.faults import FAULTS, fault_field

if TYPE_CHECKING:
    import pyarrow as pa

BLOCK_BYTES = 8 << 20
MAX_RECORD_BYTES = 16 << 20
"""Maximum size of a record; a longer one is a fault, and it is never in memory as a whole."""
_BOM = b"\xef\xbb\xbf"
_QUOTED = rb'"(?:[^"]|"")*+"'
_CELL = rb"(?:" + _QUOTED + rb'|[^",\r\n][^,\r\n]*+|)'
_END = rb"(?:\r\n|\n|\r)"
_RECORD = re.compile(_CELL + rb"(?:," + _CELL + rb")*+" + _END)
_RECORDS = re.compile(rb"(?:" + _CELL + rb"(?:," + _CELL + rb")*+" + _END + rb")*+")
_CELLS = re.compile(rb"(?:^|,)" + _CELL)
_UNFINISHED = re.compile(rb"(?:" + _CELL + rb',)*+(?:"(?:[^"]|"")*+"?|[^",\r\n][^,\r\n]*+|)')
_LINE_END = re.compile(rb"\r\n|\n|\r")


@dataclass(slots=True)
class _Text:
    """A file as it is read: the text not yet separated into records, and the line on which it begins."""

    file: BinaryIO
    rest: bytes = b""
    line: int = 1
    is_ended: bool = False
    read: int = 0

    def more(self) -> bool:
        """Read another block; False at the end of the file, where the last line gets its end."""
        if self.is_ended:
            return False
        block = self.file.read(BLOCK_BYTES)
        while block.endswith(b"\r") and (next_ := self.file.read(1)):  # `\r\n` stays whole
            block += next_
        self.read += len(block)
        self.is_ended = not block
        if self.is_ended and self.rest and not self.rest.endswith((b"\n", b"\r")):
            self.rest += b"\n"
            return True
        self.rest += block
        return bool(block)

    def take(self, end: int) -> bytes:
        """Return the text up to an offset, and continue after it."""
        taken, self.rest = self.rest[:end], self.rest[end:]
        self.line += _count_lines(taken)
        return taken


class CsvReader:
    """Reads one file from its beginning."""

    def __init__(self, path: Path, lib: Any) -> None:
        self._path = path
        self._lib = lib
        with path.open("rb") as file:
            self.names = self._header(_Text(file))
        self.schema: pa.Schema = lib.schema([*((name, lib.string()) for name in self.names), fault_field(lib)])

    def _header(self, text: _Text) -> list[str]:
        """Read the names of the columns, and leave the text after them."""
        from pyarrow import csv

        text.more()
        text.rest = text.rest.removeprefix(_BOM)
        while True:
            blank = re.match(rb"[\r\n]*", text.rest)
            text.take(0 if blank is None else blank.end())
            found = _RECORD.match(text.rest)
            if found is not None:
                names: list[str] = csv.read_csv(self._lib.BufferReader(text.take(found.end()))).schema.names
                return names
            if len(text.rest) > MAX_RECORD_BYTES or not text.more():
                if not text.rest.strip():
                    raise ValueError("the file is empty: its first line has the names of the columns")
                raise ValueError(f"line {text.line}, with the names of the columns, has no end or broken quotes")

    def batches(self, progress: Any) -> Iterator[pa.RecordBatch]:
        """Yield the rows after the header; `progress.at` is the number of bytes that were read."""
        with self._path.open("rb") as file:
            text = _Text(file)
            self._header(text)
            while text.rest or text.more():
                for batch in self._separate_records(text):
                    progress.at = text.read
                    yield batch

    def _separate_records(self, text: _Text) -> Iterator[pa.RecordBatch]:
        """Yield the records of the text as far as they can be separated, and read more where needed."""
        end = _whole_records(text.rest)
        if end:
            line = text.line
            yield from self._records(text.take(end), line)
            return
        problem = self._problem(text)
        if problem is not None:
            line = text.line
            self._skip_line(text)
            yield self._batch(None, [(0, f"line {line} {problem}")], 1)

    def _problem(self, text: _Text) -> str | None:
        """Return the problem of the record at which separation stopped; None after more text was read."""
        found = _UNFINISHED.match(text.rest)
        is_unfinished = found is not None and found.end() == len(text.rest)
        if not is_unfinished:
            return "has text after the end of a quoted cell"
        if len(text.rest) > MAX_RECORD_BYTES:
            first = _LINE_END.search(text.rest, 0, MAX_RECORD_BYTES)
            return "has a quoted cell without an end" if first else f"is longer than {MAX_RECORD_BYTES:,} bytes"
        if text.more():
            return None
        return "has a quoted cell without an end"

    def _skip_line(self, text: _Text) -> None:
        """Continue after the end of this line."""
        while (found := _LINE_END.search(text.rest)) is None:
            text.rest = b""
            if not text.more():
                return
        text.take(found.end())

    # -- records ----------------------------------------------------------------------------------

    def _records(self, records: bytes, line: int) -> Iterator[pa.RecordBatch]:
        """Yield separated records. One with another number of cells, or that is no text, is a fault."""
        table = self._parse_records(records) if len(records) <= MAX_RECORD_BYTES else None
        if table is not None:
            for batch in table.to_batches():
                yield self._batch(batch, [], batch.num_rows)
            return
        good: list[bytes] = []
        faults: list[tuple[int, str]] = []
        rows = 0
        for found in _RECORD.finditer(records):
            record = found[0]
            if record.strip(b"\r\n"):
                problem = self._record_problem(record)
                if problem is None:
                    good.append(record)
                else:
                    faults.append((rows, f"line {line} {problem}"))
                rows += 1
            line += _count_lines(record)
        table = self._parse_records(b"".join(good)) if good else None
        if good and table is None:
            raise ValueError(f"the records before line {line} cannot be read")
        yield self._batch(None if table is None else table.combine_chunks(), faults, rows)

    def _record_problem(self, record: bytes) -> str | None:
        if len(record) > MAX_RECORD_BYTES:
            return f"is longer than {MAX_RECORD_BYTES:,} bytes"
        cells = record.count(b",") + 1 if b'"' not in record else len(_CELLS.findall(record.rstrip(b"\r\n")))
        if cells != len(self.names):
            return f"has {cells} cell{'' if cells == 1 else 's'}, and the header {len(self.names)}"
        try:
            record.decode("utf-8")
        except UnicodeDecodeError as error:
            return f"is not UTF-8: {error.reason} at byte {error.start + 1}"
        return None

    def _parse_records(self, records: bytes) -> pa.Table | None:
        """Return records as a table of texts; None where one of them does not fit."""
        from pyarrow import csv

        # An empty cell is a missing value; "" is the empty text.
        convert = csv.ConvertOptions(
            column_types=dict.fromkeys(self.names, self._lib.string()),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )
        read = csv.ReadOptions(column_names=self.names, block_size=len(records) + 1)
        parse = csv.ParseOptions(newlines_in_values=True)
        if not records.strip(b"\r\n"):
            return self.schema.remove(self.schema.get_field_index(FAULTS)).empty_table()
        try:
            return csv.read_csv(
                self._lib.BufferReader(records), read_options=read, parse_options=parse, convert_options=convert
            )
        except self._lib.ArrowInvalid:
            return None

    def _batch(
        self, table: pa.Table | pa.RecordBatch | None, faults: list[tuple[int, str]], rows: int
    ) -> pa.RecordBatch:
        """Return a batch with the column of faults; the rows of faults are null in all others."""
        lib = self._lib
        if not faults:
            assert table is not None, "rows without faults have cells"
            return lib.RecordBatch.from_arrays([*table.columns, lib.nulls(rows, lib.string())], schema=self.schema)
        at = dict(faults)
        messages = lib.array([at.get(row) for row in range(rows)], lib.string())
        if table is None:
            columns = [lib.nulls(rows, lib.string()) for _ in self.names]
        else:
            places = iter(range(rows - len(faults)))
            order = lib.array([None if row in at else next(places) for row in range(rows)], lib.int64())
            columns = [_combine_chunks(column).take(order) for column in table.columns]
        return lib.RecordBatch.from_arrays([*columns, messages], schema=self.schema)


def _combine_chunks(column: Any) -> Any:
    return column.combine_chunks() if hasattr(column, "chunks") else column


def _whole_records(text: bytes) -> int:
    """Return the end of the last record that is complete and well-formed with all before it."""
    if b'"' in text:
        found = _RECORDS.match(text)
        return 0 if found is None else found.end()
    return max(text.rfind(b"\n"), text.rfind(b"\r")) + 1


def _count_lines(text: bytes) -> int:
    """Return the number of line ends: `\\r\\n`, `\\n` or `\\r`."""
    return text.count(b"\n") + text.count(b"\r") - text.count(b"\r\n")
