"""The audit log as a file that can be verified without its journal.

Line 0 describes the file: the number of lines, the hash of the last one and, with a secret for the audit log, a code
over both that requires the secret; it reveals a truncated file. Every line has `previous` and `hash`; the hash is that
of the journal, over the canonical bytes of the event.

JSON Lines hold those bytes unchanged, after `"event":`. CSV is encoded to them again from its columns.
"""

from __future__ import annotations

import csv
import hmac
import io
import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

from vesper.journal.audit import FIRST
from vesper.journal.errors import JournalError
from vesper.journal.journal import Journal
from vesper.journal.moments import moment_json
from vesper.journal.typed_json import MAX_TEXT, decode, encode
from vesper.storage.file_access import open_regular

_FORMAT = 1
_LINE = re.compile(
    rb'\{"seq":(0|[1-9][0-9]{0,17}),"previous":"([0-9a-f]{64}|)","hash":"([0-9a-f]{64})","event":(\{.*\})\}\n',
    re.DOTALL,
)
_HEX = re.compile(r"[0-9a-f]{64}", re.ASCII)
_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,18}", re.ASCII)
_OF_CALLER = (
    "actor", "tenant", "user_id", "transaction_id", "key", "via", "traceparent", "tracestate", "audit_failed",
)  # fmt: skip
"""Members that a line has where the run had them; never empty."""
_FIRST_COLUMNS = ("seq", "time", "at_us", "execution", "node_id", "level", "action", "fields", "previous", "hash")
"""The columns of files that an earlier Vesper made."""
_COLUMNS = (*_FIRST_COLUMNS, *_OF_CALLER)
_OF_EVENT = ("seq", "at_us", "execution", "node_id", "level", "action", "fields")
_TEXTS = ("execution", "node_id", "level", "action")
_MAX_LINE_BYTES = MAX_TEXT + 4_096


# -- writing --------------------------------------------------------------------------------------


def export_audit(journal: Journal, file: BinaryIO, style: str, now_us: int) -> int:
    """Write all present lines of the log and return their number. Lines added meanwhile are left out."""
    count, last = journal.audit_head()
    about = {
        "seq": 0,
        "at_us": now_us,
        "execution": "",
        "node_id": "",
        "level": "",
        "action": "export",
        "fields": {"format": _FORMAT, "lines": count, "is_keyed": journal.audit_key is not None},
    }
    write = _json_line if style == "jsonl" else _csv_line
    if style == "csv":
        file.write(_csv_row(_COLUMNS))
    line = encode(about)
    file.write(write(0, line, _seal(journal.audit_key, line, last), last))
    written, previous = 0, FIRST
    for seq, line, hash_ in journal.audit_rows():
        if seq > count:
            break
        file.write(write(seq, line, previous.hex(), hash_.hex()))
        written, previous = written + 1, hash_
    return written


def _seal(key: bytes | None, line: bytes, last: str) -> str:
    """Return a code that binds line 0 to the last line and requires the secret."""
    return (
        "" if key is None else hmac.digest(key, b"vesper audit export\n" + line + b"\n" + last.encode(), "sha256").hex()
    )


def _json_line(seq: int, line: bytes, previous: str, hash_: str) -> bytes:
    if not line.startswith(b"{") or b"\n" in line:
        raise JournalError(
            f"line {seq} of the audit log is malformed and cannot be exported; `vesper audit verify` shows the damage"
        )
    return b'{"seq":%d,"previous":"%s","hash":"%s","event":%s}\n' % (seq, previous.encode(), hash_.encode(), line)


def _csv_line(seq: int, line: bytes, previous: str, hash_: str) -> bytes:
    event = decode(line)
    match event:
        case {"at_us": int() as at_us, "seq": int(), "fields": dict() as fields} if (
            set(event) - set(_OF_CALLER) == set(_OF_EVENT)
            and all(isinstance(event[name], str) and event[name].isprintable() for name in _TEXTS)
            and all(isinstance(event[name], str) and event[name] for name in set(_OF_CALLER) & set(event))
            and encode(event) == line
        ):
            cells = {
                **{name: str(event[name]) for name in _OF_EVENT},
                **{name: _caller_cell(event.get(name, "")) for name in _OF_CALLER},
                "time": moment_json(at_us),
                "fields": encode(fields).decode(),
                "previous": previous,
                "hash": hash_,
            }
            return _csv_row(tuple(cells[name] for name in _COLUMNS))
    raise JournalError(f"line {seq} of the audit log cannot be written as CSV: export it as jsonl")


def _caller_cell(text: str) -> str:
    """Return a text that a caller may have chosen, as typed JSON if it could break a table."""
    return text if text.isprintable() and not text.startswith('"') else encode(text).decode()


def _csv_row(cells: tuple[str, ...]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue().encode()


# -- reading --------------------------------------------------------------------------------------


class AuditFile:
    """An exported log for `verify_audit`. Trusts nothing in the file."""

    def __init__(self, path: Path, key: bytes | None) -> None:
        self._path = path
        self.audit_key = key

    def audit_head(self) -> tuple[int, str]:
        for seq, line, seal, hash_ in self._lines():
            if seq != 0:
                break
            return self._head(line, seal, hash_), hash_
        raise JournalError("line 0, with the number of lines, is missing: the beginning was cut off")

    def _head(self, line: bytes, seal: str, last: str) -> int:
        event = decode(line)
        fields = event.get("fields") if isinstance(event, dict) else None
        match fields:
            case {"format": int() as format_, "lines": int() as count, "is_keyed": bool() as is_keyed}:
                pass
            case _:
                raise JournalError("line 0 was changed: it has no number of lines")
        if format_ != _FORMAT:
            raise JournalError(f"the file has format {format_}; this Vesper reads format {_FORMAT}")
        if is_keyed and self.audit_key is None:
            raise JournalError(
                "the file was made with the secret of an audit log and requires it: name a vesper.toml with "
                "`audit_key_secret` under [journal] with --config"
            )
        if not hmac.compare_digest(_seal(self.audit_key, line, last), seal):
            why = "" if is_keyed else ", or the file was made without the secret of the settings"
            raise JournalError(f"line 0 was changed: its code does not match the file{why}")
        return count

    def audit_rows(self) -> Iterator[tuple[int, bytes, bytes]]:
        last_seq, last_hash = 0, FIRST.hex()
        for number, (seq, line, previous, hash_) in enumerate(self._lines()):
            if number == 0:
                continue  # line 0 is the head
            if seq == last_seq + 1 and previous != last_hash:
                raise JournalError(
                    f"line {seq} or line {last_seq} was changed: `previous` does not match the hash of line {last_seq}"
                )
            yield seq, line, bytes.fromhex(hash_)
            last_seq, last_hash = seq, hash_

    def _lines(self) -> Iterator[tuple[int, bytes, str, str]]:
        """Yield number, canonical bytes, `previous` and `hash` of each line."""
        try:
            with os.fdopen(open_regular(self._path), "rb") as file:
                start = file.read(4)
                file.seek(0)
                if start.startswith(b"{"):
                    yield from _json_lines(file)
                elif start == b"seq,":
                    yield from _csv_lines(file)
                else:
                    raise JournalError(f"{self._path} is not a file of `vesper audit export`")
        except OSError as error:
            raise JournalError(f"{self._path} cannot be read: {error.strerror or error}") from None


def _physical_lines(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    for number, line in enumerate(iter(lambda: file.readline(_MAX_LINE_BYTES + 1), b""), start=1):
        if len(line) > _MAX_LINE_BYTES:
            raise JournalError(f"row {number} of the file is longer than a line of an audit log can be")
        yield number, line


def _json_lines(file: BinaryIO) -> Iterator[tuple[int, bytes, str, str]]:
    for number, data in _physical_lines(file):
        found = _LINE.fullmatch(data)
        if found is None:
            raise JournalError(f"row {number} of the file was changed or cut off after the export")
        event = found[4]
        if b"\\u" in event:  # standard output escapes characters that act on a terminal
            event = encode(decode(event))
        yield int(found[1]), event, found[2].decode(), found[3].decode()


def _csv_lines(file: BinaryIO) -> Iterator[tuple[int, bytes, str, str]]:
    before = csv.field_size_limit(_MAX_LINE_BYTES)
    try:
        rows = csv.reader((line.decode() for _, line in _physical_lines(file)), strict=True)
        columns: tuple[str, ...] = ()
        for number, cells in enumerate(rows, start=1):
            if number == 1 and tuple(cells) in (_COLUMNS, _FIRST_COLUMNS):
                columns = tuple(cells)
                continue
            if len(cells) != len(columns):
                raise JournalError(f"row {number} of the file was changed or cut off after the export")
            yield _csv_event(number, dict(zip(columns, cells, strict=True)))
    except (csv.Error, UnicodeDecodeError) as error:
        raise JournalError(f"the file was changed after the export: {str(error)[:200]}") from None
    finally:
        csv.field_size_limit(before)


def _csv_event(number: int, cells: Mapping[str, str]) -> tuple[int, bytes, str, str]:
    def refuse(name: str) -> JournalError:
        return JournalError(f"row {number} of the file was changed: `{name}` differs from the export")

    for name in ("seq", "at_us"):
        if not _NUMBER.fullmatch(cells[name]):
            raise refuse(name)
    for name in ("previous", "hash"):
        is_unsealed = name == "previous" and not cells[name]
        if not is_unsealed and not _HEX.fullmatch(cells[name]):
            raise refuse(name)
    at_us = int(cells["at_us"])
    if cells["time"] != moment_json(at_us):
        raise refuse("time")
    try:
        fields = decode(cells["fields"].encode())
        caller = {name: text for name in _OF_CALLER if (text := cells.get(name))}
        caller |= {name: decode(text.encode()) for name, text in caller.items() if text.startswith('"')}
    except (JournalError, UnicodeEncodeError):
        raise refuse("fields") from None
    texts = {name: cells[name] for name in _TEXTS}
    event = {**texts, **caller, "seq": int(cells["seq"]), "at_us": at_us, "fields": fields}
    return int(cells["seq"]), encode(event), cells["previous"], cells["hash"]


def event_json(event: Mapping[str, object]) -> dict[str, object]:
    """Return a line of the log as JSON values."""
    at_us = event.get("at_us")
    at = {"at": moment_json(at_us)} if isinstance(at_us, int) else {}
    found: dict[str, object] = json.loads(encode({**event, **at}))
    return found
