"""1,000 random runs and what the journal stored of them.

`python tests/unit/journal/golden/written.py` writes the golden. It was written by the journal in Python, the first
implementation, with the sources of `vesper.testing`. It is never rewritten: a change of what is stored is a new format,
which gets a new number and new files. The
tables themselves have their golden in `v2.sqlite.sql`.
"""

from __future__ import annotations

import dataclasses
import random
import sys
import tempfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from hashlib import sha256
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[3]))

from tests.support.journal_file import run_statements  # noqa: E402
from tests.unit.journal.golden.make import BODY  # noqa: E402
from tests.unit.journal.golden.render import AUDIT, MASTER  # noqa: E402
from tests.unit.journal.helpers import DEFINITION, NOW  # noqa: E402
from vesper.journal.entry import AuditEvent, Definition, Entry, Kind  # noqa: E402
from vesper.journal.journal import Beginning, Journal, KeyRing, Run, Status, open_journal  # noqa: E402
from vesper.journal.typed_json import encode  # noqa: E402
from vesper.testing import fixed_sources  # noqa: E402

GOLDEN = HERE / "v1.written.txt"
RUNS = 200
OTHER = Definition("ef" * 32, "ship", "nodes/ship.vsp", "id: ship\n# ä\n", b"\x00\xff", (DEFINITION,))
_TABLES = {
    "executions": """SELECT id, execution, node_id, semantic_hash, status, outcome, owner, fence, lease_until_us,
        started_us, updated_us, engine, is_joined, is_sensitive, is_synced, head_seq, head_hash
        FROM vesper_executions ORDER BY id""",
    "commits": "SELECT place, lines, hashes FROM vesper_commits ORDER BY place",
    "definitions": "SELECT * FROM vesper_definitions ORDER BY rowid",
    "blobs": "SELECT name, size, is_compressed, data FROM vesper_blobs ORDER BY name",
    "blob_uses": "SELECT run, name FROM vesper_blob_uses ORDER BY run, name",
    "keys": "SELECT run, master, wrapped FROM vesper_keys ORDER BY run",
    "audit": "SELECT seq, line, hash FROM vesper_audit ORDER BY seq",
    "audit_head": "SELECT one, count, hash FROM vesper_audit_head",
}
_KINDS = [kind for kind in Kind if kind not in (Kind.START, Kind.END)]
_PIECES = ("", "a", '"', "\\", "\n", "\x01", "\x7f", "é", "\u2028", "😀", "$", "charge[2]#1", "/")


@dataclass(frozen=True, slots=True)
class Scenario:
    """Settings of one journal."""

    name: str
    is_sensitive: bool = False
    master: bytes | None = None
    audit: bytes | None = None
    max_inline: int = 1 << 20


SCENARIOS = (
    Scenario("plain"),
    Scenario("blobs", max_inline=150, audit=AUDIT),
    Scenario("sealed", is_sensitive=True),
    Scenario("sealed under a master key", is_sensitive=True, master=MASTER, audit=AUDIT),
    # Names of sealed blobs, and so lines and hashes, depend on how a library compresses: its entries are compared.
    Scenario("sealed blobs", is_sensitive=True, master=MASTER, max_inline=150),
)


def stored(scenario: Scenario, path: Path) -> Iterator[str]:
    """Write the runs of a scenario; yield a line for each table and run."""
    keys = KeyRing(scenario.master, audit=scenario.audit)
    sources = fixed_sources(NOW, SCENARIOS.index(scenario))
    journal = open_journal(
        f"sqlite:{path}", owner="golden:1:1:000000000000", keys=keys, max_inline=scenario.max_inline, sources=sources
    )
    draw = random.Random(scenario.name)
    for number in range(RUNS):
        _write_run(journal, f"run-{number:03} é", scenario, draw)
    if scenario.name == "sealed blobs":
        yield from _entries(journal, scenario)
        journal.close()
        return
    journal.close()
    rows = dict(zip(_TABLES, run_statements(path, *((sql, ()) for sql in _TABLES.values())), strict=True))
    rows["blobs"] = [
        (name, size, zlib.decompress(data) if is_compressed else data)  # type: ignore[arg-type]
        for name, size, is_compressed, data in rows["blobs"]
    ]
    for table, found in rows.items():
        yield f"{scenario.name}: {table}, {len(found)} rows, {_digest(found)}"
    for row in rows["executions"]:
        lines = [each for each in rows["commits"] if int(str(each[0])) >> 31 == row[0]]
        yield f"{scenario.name}: {row[1]}, {len(lines)} commits, {_digest([row, *lines])[:16]}"


def _entries(journal: Journal, scenario: Scenario) -> Iterator[str]:
    for execution in journal.executions():
        entries = [dataclasses.asdict(each.entry) for each in journal.read(execution).entries]
        yield f"{scenario.name}: {execution}, {len(entries)} entries, {sha256(encode(entries)).hexdigest()[:16]}"


def _digest(rows: list[tuple[object, ...]]) -> str:
    return sha256(repr(rows).encode()).hexdigest()


def _write_run(journal: Journal, execution: str, scenario: Scenario, draw: random.Random) -> None:
    beginning = Beginning(
        execution=execution,
        definition=(DEFINITION, OTHER)[draw.randrange(2)],
        inputs=_body(draw),
        now=NOW + timedelta(microseconds=draw.randrange(1 << 40)),
        engine=("python", "interp", "jit")[draw.randrange(3)],
        is_sensitive=scenario.is_sensitive,
        writes=draw.randrange(2) == 0,
        is_joined=draw.randrange(4) == 0,
    )
    run = journal.begin(beginning)
    for _ in range(draw.randrange(8)):
        _write_step(run, draw)
    match draw.randrange(4):
        case 0:
            run.commit()
        case 1:
            run.append(Entry(Kind.IN_DOUBT, _text(draw), body={"why": _text(draw)}, at_us=5))
            run.commit(Status.IN_DOUBT)
        case _:
            run.append(Entry(Kind.END, body=_body(draw), at_us=draw.randrange(1 << 50)))
            run.commit(Status.ENDED, ("returned", "failed")[draw.randrange(2)])
    if draw.randrange(50) == 0:
        journal.audit([AuditEvent(3, "", "", "basic", "granted", {}) for _ in range(draw.randrange(3))])


def _write_step(run: Run, draw: random.Random) -> None:
    key = None if draw.randrange(2) else _text(draw)
    path, effect = _text(draw), ("custom", "external_api_call")[draw.randrange(2)]
    match draw.randrange(5):
        case 0:
            request = {"fixed": {"name": _text(draw)}, "arguments": _body(draw)}
            run.intend(Entry(Kind.INTENT, path, effect, "keyed", key, "", request, draw.randrange(1 << 50)))
        case 1:
            fields = {"amount": Decimal(draw.randrange(1000)) / 100, "text": _text(draw)}
            run.audit(AuditEvent(draw.randrange(1 << 50), run.execution, "pay", "basic", effect, fields))
        case 2:
            run.commit()
        case _:
            digest = run.digest(effect, "unsafe", {}, _body(draw), key)
            kind = _KINDS[draw.randrange(len(_KINDS))]
            run.append(Entry(kind, path, effect, "unsafe", key, digest, _body(draw), draw.randrange(1 << 50)))


def _body(draw: random.Random) -> Mapping[str, object]:
    names = sorted(BODY)
    body = {}
    for _ in range(draw.randrange(4)):
        # Drawn in this order by the golden: the value after the name.
        name = names[draw.randrange(len(names))]
        body[name] = BODY[names[draw.randrange(len(names))]]
    return {**body, _text(draw): _text(draw) * draw.randrange(60)}


def _text(draw: random.Random) -> str:
    return "".join(_PIECES[draw.randrange(len(_PIECES))] for _ in range(draw.randrange(4)))


def written() -> str:
    with tempfile.TemporaryDirectory() as folder:
        lines = [line for each in SCENARIOS for line in stored(each, Path(folder) / f"{each.name}.db")]
    return "\n".join(lines) + "\n"


def main() -> int:
    if GOLDEN.exists():
        print(f"{GOLDEN} exists, and is never rewritten")
        return 1
    GOLDEN.write_text(written(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
