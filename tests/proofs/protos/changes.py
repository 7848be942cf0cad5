"""`make check-buf`: changes of a copy of schemas/proto that `buf` has to refuse or to accept.

    python -m tests.proofs.protos.changes BUF

A check that accepts everything would be silent; each planted change says what the check is worth.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

PROTOS = Path(__file__).parents[3] / "schemas" / "proto"
KERNEL = "vesper/kernel/v1/kernel.proto"
LOG = "vesper/kernel/log/v1/log.proto"
PROCESS = "vesper/kernel/v1/process.proto"
RELEASED = "released.binpb"


@dataclass(frozen=True)
class Change:
    """One text of a file replaced; the rule that has to refuse it, or none."""

    what: str
    file: str
    old: str
    new: str
    rule: str = ""
    command: tuple[str, ...] = ("breaking", "--against", RELEASED)


LINT = ("lint",)
CHANGES = (
    Change("nothing", KERNEL, "message CleanupRequest {}", "message CleanupRequest {}"),
    Change("a new member", KERNEL, "message CleanupRequest {}", "message CleanupRequest {\n  string pid = 1;\n}"),
    Change("a new value", PROCESS, "  PRIORITY_IDLE = 5;", "  PRIORITY_IDLE = 5;\n  PRIORITY_BATCH = 6;"),
    Change("a removed member", PROCESS, "  int64 created_us = 10;\n", "", "created_us"),
    Change("another number", PROCESS, "string worker = 16;", "string worker = 19;", "worker"),
    Change("another type", PROCESS, "int64 changed_us = 12;", "string changed_us = 12;", "changed type"),
    Change("another name", PROCESS, "string worker = 16;", "string holder = 16;", "changed name"),
    Change("a removed value", PROCESS, "  PRIORITY_IDLE = 5;\n", "", "enum value"),
    Change("a removed RPC", KERNEL, "  rpc Cleanup(CleanupRequest) returns (CleanupResponse);\n", "", "Cleanup"),
    Change(
        "another answer",
        KERNEL,
        "rpc GetProcess(GetProcessRequest) returns (GetProcessResponse)",
        "rpc GetProcess(GetProcessRequest) returns (Process)",
        "GetProcess",
    ),
    Change(
        "a stream",
        KERNEL,
        "rpc Cleanup(CleanupRequest) returns (CleanupResponse)",
        "rpc Cleanup(CleanupRequest) returns (stream CleanupResponse)",
        "streaming",
    ),
    Change("a member of the log", LOG, "SubmitRequest submit = 3;", "SubmitRequest submit = 39;", "submit"),
    Change("another package", LOG, "package vesper.kernel.log.v1;", "package vesper.kernel.log.v2;", "log"),
    Change("a member in capitals", KERNEL, "bool draining = 10;", "bool Draining = 10;", "lower_snake_case", LINT),
    Change("an unnamed zero", PROCESS, "PRIORITY_UNSPECIFIED = 0", "PRIORITY_NONE = 0", "_UNSPECIFIED", LINT),
)


def judge(buf: str, change: Change, folder: Path) -> str:
    """Return what is wrong with the check of a change; nothing where it is right."""
    copy = folder / "proto"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(PROTOS, copy)
    path = copy / change.file
    text = path.read_text(encoding="utf-8")
    if text.count(change.old) != 1:
        return f"{change.what}: {change.file} has {change.old!r} {text.count(change.old)} times"
    path.write_text(text.replace(change.old, change.new), encoding="utf-8")
    done = subprocess.run([buf, *change.command], cwd=copy, capture_output=True, text=True, timeout=120, check=False)
    printed = done.stdout + done.stderr
    if not change.rule:
        return f"{change.what} is refused: {printed}" if done.returncode else ""
    if not done.returncode:
        return f"{change.what} is accepted"
    return "" if change.rule in printed else f"{change.what} is refused for another reason: {printed}"


def main(arguments: list[str]) -> int:
    (buf,) = arguments
    with tempfile.TemporaryDirectory() as folder:
        problems = [each for change in CHANGES if (each := judge(buf, change, Path(folder)))]
    for each in problems:
        print(f"error: {each}", file=sys.stderr)
    if problems:
        return 1
    refused = sum(1 for change in CHANGES if change.rule)
    print(f"{refused} breaking or misnamed changes of a copy are refused, {len(CHANGES) - refused} are accepted")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
