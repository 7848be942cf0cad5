"""The manifest of a job in partitions: the parameters of the job, and a line for each part that is finished.

Lines are appended, so that a finished part costs one write. A line that was cut off by a crash counts as absent: its
part runs again, into the same file. At the end the manifest is written anew, in the order of the parts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from vesper.batch.errors import BatchError
from vesper.batch.partitions import FinishedPart, Partition
from vesper.storage.file_access import temporary_beside

NAME = "_manifest.jsonl"
"""Readers of folders of tables leave names with `_` out."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """A manifest as it was read."""

    of: dict[str, Any]
    """The parameters of the job, which a continued job must have too."""
    start: str
    finished: dict[str, FinishedPart]
    """By output file."""


def read_manifest(path: Path) -> Manifest:
    """Read a manifest. Raises `BatchError` for one without a valid first line."""
    documents = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            documents.append(json.loads(line))
        except (ValueError, RecursionError):  # as a crash, or another program, left it
            continue
    match documents:
        case [{"of": dict(of), "start": str(start)}, *rest]:
            finished = [found for each in rest if (found := _read_finished(each)) is not None]
            return Manifest(of, start, {each.output: each for each in finished})
        case _:
            raise BatchError(f"{path} is damaged: leave --resume away to begin anew")


def _read_finished(document: object) -> FinishedPart | None:
    match document:
        case {"output": str(output), "rows": int(rows), "errors": dict(errors), "sha256": str(sha256)}:
            if all(type(count) is int for count in errors.values()):
                return FinishedPart(output, rows, errors, sha256)
    return None


def begin_manifest(path: Path, of: Mapping[str, Any], start: str) -> None:
    """Write the manifest of a job without finished parts."""
    _write(path, [{"of": of, "start": start}])


def append_part(path: Path, part: Partition, finished: FinishedPart) -> None:
    """Add a finished part. A line that a crash cut off before it is ended first."""
    with path.open("a+b") as file:
        file.seek(-1, 2)
        separator = b"" if file.read(1) == b"\n" else b"\n"
        file.write(separator + _line(_entry(part, finished)))


def complete_manifest(path: Path, manifest: Manifest, parts: Sequence[Partition]) -> None:
    """Write the manifest of a finished job, whose parts are in order."""
    entries = [_entry(each, manifest.finished[each.output]) for each in parts]
    rows = sum(each.rows for each in manifest.finished.values())
    head = {"of": manifest.of, "start": manifest.start}
    _write(path, [head, *entries, {"complete": True, "parts": len(parts), "rows": rows}])


def _entry(part: Partition, finished: FinishedPart) -> dict[str, Any]:
    return {"input": part.manifest_entry(), **asdict(finished)}


def _write(path: Path, documents: Sequence[Mapping[str, Any]]) -> None:
    temporary = temporary_beside(path)
    temporary.write_bytes(b"".join(map(_line, documents)))
    temporary.replace(path)


def _line(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, ensure_ascii=False).encode() + b"\n"
