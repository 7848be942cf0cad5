"""Run a file through a node into a file, in parts, so that an interrupted job can continue.

While the job lasts there is a folder beside the output: the finished parts, and `state.json`. A part is written before
the state names it, and a part that the state does not name is written again. At the end the parts become one file, and
the folder is deleted.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vesper.batch.errors import BatchError
from vesper.batch.files import Source, format_of, join_parts, open_source, write_part
from vesper.storage.file_access import make_private_folder

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_A_PART = 262_144
"""Rows in memory at a time, and the most that an interruption repeats."""

_VERSION = 1
_CLAIM_ATTEMPTS = 5
_CLAIM_WAIT_SECONDS = 0.02
_OWN_FILES = re.compile(r"state\.(json|new)|[0-9]{6}\.[a-z]+|\.[0-9]{6}\.[a-z]+\.new", re.ASCII)
"""The files that a job writes into its folder. A restart empties it, so it must contain nothing else."""


@dataclass(slots=True)
class Progress:
    """The progress of a job."""

    rows: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    """By kind and code: `failed bad_input`."""
    share: float = 0.0
    """The share of the file that was read, from 0 to 1."""
    resumed: int = 0
    """Rows that an earlier run finished."""


@dataclass(frozen=True, slots=True)
class Job:
    """The parameters of a job; a continued job must have the same."""

    source: Path
    out: Path
    node: str
    semantic_hash: str
    options: dict[str, Any]
    start: str
    """The start of every row. A continued job keeps its first start."""
    run: Callable[[Source, pa.Table, str], pa.Table]
    error_column: str = "error"
    rows_a_part: int = ROWS_A_PART

    @property
    def folder(self) -> Path:
        return self.out.with_name(f"{self.out.name}.parts")

    def do(self, is_resumed: bool, tell: Callable[[Progress], None]) -> Progress:
        """Run the job, or the rest of it."""
        kind = format_of(self.out)
        source = open_source(self.source)
        if self.out.is_dir():
            raise BatchError(f"{self.out} is a folder: name a file to write")
        with claim(self.folder, self.out):
            state = self._begun(is_resumed)
            try:
                return self._done(source, state, kind, tell)
            except BatchError:
                if not state["done"]:  # there is nothing to continue
                    shutil.rmtree(self.folder, ignore_errors=True)
                raise

    def _done(self, source: Source, state: dict[str, Any], kind: str, tell: Callable[[Progress], None]) -> Progress:
        progress = Progress()
        for done in state["done"]:
            progress.rows += done["rows"]
            progress.errors.update(done["errors"])
        progress.resumed = progress.rows
        progress.share = progress.rows / source.rows if source.rows else 0.0
        tell(progress)
        for table in source.parts(progress.rows, self.rows_a_part):
            answer = self.run(source, table, state["start"])
            write_part(self._part(len(state["done"]), kind), answer, kind)
            errors = count_errors(answer.column(self.error_column))
            progress.rows += table.num_rows
            progress.errors.update(errors)
            progress.share = progress.rows / source.rows if source.rows else source.read.share
            state["done"].append({"rows": table.num_rows, "errors": dict(errors)})
            state["share"] = progress.share
            self._write(state)
            tell(progress)
        progress.share = 1.0
        tell(progress)
        join_parts([self._part(number, kind) for number in range(len(state["done"]))], self.out, kind)
        shutil.rmtree(self.folder)
        return progress

    def _part(self, number: int, kind: str) -> Path:
        return self.folder / f"{number:06}.{kind}"

    def _parameters(self) -> dict[str, Any]:
        """Return the parameters that must be unchanged when a job continues."""
        status = self.source.stat()
        return {
            "version": _VERSION,
            "source": str(self.source.resolve()),
            "size": status.st_size,
            "changed": status.st_mtime_ns,
            "node": self.node,
            "semantic_hash": self.semantic_hash,
            "rows_a_part": self.rows_a_part,
            "options": hashlib.sha256(json.dumps(self.options, sort_keys=True).encode()).hexdigest(),
        }

    def _begun(self, is_resumed: bool) -> dict[str, Any]:
        path = self.folder / "state.json"
        same = self._parameters()
        if is_resumed and path.exists():
            state = read_state(path)
            if other := differences(state["of"], same):
                raise BatchError(
                    f"{self.folder} is of another job ({', '.join(other)}): leave --resume away to begin anew, or run "
                    "that job to its end"
                )
            kind = format_of(self.out)
            lost = next((n for n in range(len(state["done"])) if not self._part(n, kind).is_file()), None)
            if lost is not None:
                raise BatchError(f"{self._part(lost, kind)} is gone: leave --resume away to begin anew")
            return state
        there = list(self.folder.iterdir())
        foreign = next((each.name for each in there if not _OWN_FILES.fullmatch(each.name)), None)
        if foreign is not None:
            raise BatchError(
                f"{self.folder} is where the parts of {self.out.name} would stand, and `{foreign}` in it is of no "
                "batch: move it away, or write to another file"
            )
        for each in there:
            each.unlink()
        state = {"of": same, "start": self.start, "done": []}
        self._write(state)
        return state

    def _write(self, state: dict[str, Any]) -> None:
        path = self.folder / "state.json"
        temporary = path.with_suffix(".new")
        temporary.write_text(json.dumps(state), encoding="utf-8")
        temporary.replace(path)


@contextmanager
def claim(folder: Path, out: Path) -> Iterator[None]:
    """Lock the folder of the job that writes `out`, because a restart empties it."""
    make_private_folder(folder)
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for _ in range(_CLAIM_ATTEMPTS):  # `is_held` holds a folder for an instant
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(_CLAIM_WAIT_SECONDS)
        else:
            raise BatchError(f"another process is writing {out}: let it come to its end, or stop it")
        yield
    finally:
        os.close(handle)


def read_state(path: Path) -> dict[str, Any]:
    """Read `state.json`. It may have been edited: an invalid state is refused before anything runs."""
    try:
        state: Any = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise BatchError(f"{path} is damaged ({error}): leave --resume away to begin anew") from None
    match state:
        case {"of": dict(), "start": str(), "done": [*done]} if all(map(_is_done, done)):
            found: dict[str, Any] = state
            return found
        case _:
            raise BatchError(f"{path} is damaged: leave --resume away to begin anew")


def differences(of: Mapping[str, object], now: Mapping[str, object]) -> list[str]:
    """Return the words for changed parameters, because of which a job cannot continue."""
    return list(dict.fromkeys(_WORDS.get(name, name) for name, value in now.items() if of.get(name) != value))


def is_held(folder: Path) -> bool:
    """Return whether a process works on the job of a folder."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


_WORDS = {
    "source": "it reads another file",
    "size": "the file that it reads has changed",
    "changed": "the file that it reads has changed",
    "node": "it runs another node",
    "semantic_hash": "the node has changed",
    "options": "its options differ",
    "inputs": "the files that it reads have changed",
    "format": "it writes another format",
    "sizes": "it has parts of another size",
}


def _is_done(part: object) -> bool:
    match part:
        case {"rows": int(), "errors": dict(errors)}:
            return all(type(count) is int for count in errors.values())
        case _:
            return False


def count_errors(column: pa.ChunkedArray) -> Counter[str]:
    """Return how many rows have an error, by its kind and code."""
    if column.null_count == len(column):
        return Counter()
    from pyarrow import compute  # not imported by pyarrow itself

    named = compute.binary_join_element_wise(
        compute.struct_field(column, "kind"), compute.struct_field(column, "code"), " "
    )
    counted = compute.value_counts(compute.drop_null(named)).to_pylist()
    return Counter({each["values"]: each["counts"] for each in counted})
