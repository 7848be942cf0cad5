"""A journal as text: the stored bytes of its lines, and what they are read as."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from tests.unit.journal.helpers import Raw
from vesper.journal.audit import verify_audit
from vesper.journal.journal import KeyRing, open_journal
from vesper.journal.typed_json import encode

VERSION = 4
MASTER = bytes(range(32))
AUDIT = b"the key of the golden audit log"
_HERE = Path(__file__).parent


def sql_path(version: int) -> Path:
    return _HERE / f"v{version}.sqlite.sql"


def text_path(version: int) -> Path:
    return _HERE / f"v{version}.txt"


def rendered(path: Path) -> str:
    journal = open_journal(f"sqlite:{path}", keys=KeyRing(MASTER, audit=AUDIT))
    parts = []
    for summary in reversed(journal.find()):
        parts.append(f"== {summary.execution}")
        parts.append(encode(dataclasses.asdict(summary)).decode())
        for stored in journal.read(summary.execution).entries:
            entry = stored.entry
            head = f"{stored.seq} {stored.branch} {entry.kind} {entry.path} {entry.effect} {entry.effect_class}"
            parts.append(f"-- {head} {entry.key} {entry.digest} {entry.at_us} {stored.is_erased} {stored.hash}")
            parts.append(encode(entry.body).decode())
    for due in journal.due():
        parts.append(f"== due {due}")
    parts.append("== definitions")
    parts.append(encode(dataclasses.asdict(journal.definition("ab" * 32))).decode())
    parts.append(f"== audit {journal.audit_head()} {verify_audit(journal)}")
    parts.extend(encode(line).decode() for line in journal.audit_events())
    journal.close()
    parts.append("== stored lines")
    for place, lines, hashes in Raw(f"sqlite:{path}").run(
        "SELECT place, lines, hashes FROM vesper_commits ORDER BY place"
    ):
        parts.append(f"-- {place} {hashes.hex()}")
        parts.append(lines.decode())
    return "\n".join(parts) + "\n"
