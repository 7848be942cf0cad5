"""Writes the goldens of a format of the journal: `python tests/unit/journal/golden/make.py`.

A golden is what a released Vesper left on somebody's disk, so that it is never rewritten: this refuses to. A new format
gets a new number and new files beside the old ones.
"""

from __future__ import annotations

import sqlite3
import sys
import tempfile
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[2]))

from tests.unit.journal.golden.render import AUDIT, MASTER, VERSION, rendered, sql_path, text_path  # noqa: E402
from tests.unit.journal.helpers import DEFINITION, INPUTS, NOW, begin, begun, end, event  # noqa: E402
from vesper.journal.entry import Entry, Kind  # noqa: E402
from vesper.journal.journal import Beginning, KeyRing, Status, open_journal  # noqa: E402
from vesper.values.json_value import parse_json  # noqa: E402

BODY: dict[str, object] = {
    "nothing": None, "flags": [True, False], "count": -3, "big": 10**30, "rate": 0.1, "zero": -0.0, "huge": 1e300,
    "specials": [float("inf"), float("-inf")], "price": Decimal("10.500"), "text": 'ä"\\\n\u2028😀', "raw": b"\x00\xff",
    "day": date(2026, 2, 28), "moment": datetime(2026, 11, 15, 1, 2, 3, 4, tzinfo=UTC),
    "wait": timedelta(days=-1, microseconds=1), "set": frozenset({3, 1, 2}), "by number": {10: "ten", 9: "nine"},
    "tagged": {"$decimal": "not one"}, "json": parse_json('{"a": [1.50, null]}'), "deep": {"a": [{"b": []}]},
}  # fmt: skip

CONTEXT = {"actor": "ada", "key": "order 17", "tenant": "acme", "traceparent": f"00-{'1' * 32}-{'2' * 16}-01"}


def make(path: Path) -> None:
    keys = KeyRing(MASTER, audit=AUDIT)
    journal = open_journal(f"sqlite:{path}", owner="golden:1:1:000000000000", keys=keys, max_inline=1000)
    run = begin(journal, "plain", inputs={"values": BODY})
    for kind in Kind:
        if kind not in (Kind.START, Kind.END):
            run.append(
                Entry(kind, f"step[2]#{kind}", "custom", "unsafe", "key é", "ab" * 32, BODY, 1_700_000_000_000_001)
            )
    run.append(Entry(Kind.RESULT, "large", body={"value": "large " * 500}, at_us=2))
    run.audit(event("effect", amount=Decimal("1.10")))
    run.commit()
    end(run)
    secret = begin(journal, "secret", is_sensitive=True, inputs={"card": "4111"})
    secret.append(Entry(Kind.INTENT, "pay", "custom", "keyed", "key of Ada", "cd" * 32, {"card": "4111"}, 3))
    secret.append(Entry(Kind.RESULT, "pay", body={"value": "secret " * 500}, at_us=4))
    secret.commit()
    end(secret, "failed")
    end(begun(journal, "erased", is_sensitive=True))
    journal.erase("erased")
    doubtful = begin(journal, "doubtful", writes=False, is_joined=True)
    doubtful.append(Entry(Kind.IN_DOUBT, "charge", "custom", "unsafe", None, "", {"why": "a crash"}, 5))
    doubtful.commit(Status.IN_DOUBT)
    begun(journal, "waiting")
    keyed = begin(journal, "keyed", context=CONTEXT)
    keyed.audit(replace(event("named"), caller=CONTEXT))
    end(keyed)
    for name, is_sensitive in (("queued", False), ("queued secret", True)):
        beginning = Beginning(name, DEFINITION, INPUTS, NOW, "interp", is_sensitive)
        journal.begin_queued(beginning, "mail", "ada", 3, 1_700_000_000_000_000, '{"by":"ada"}', 1)
    journal.signal(None, "settled", "order 17", "41", "once", "ada")
    journal.put_schedule("nightly", 1_700_000_000_000_000, "{}", None)
    journal.audit([event("configured"), event("granted", who="ada")])
    journal.close()


def main() -> int:
    if sql_path(VERSION).exists():
        print(f"{sql_path(VERSION)} exists, and is never rewritten")
        return 1
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "journal.db"
        make(path)
        with sqlite3.connect(path) as connection:
            sql_path(VERSION).write_text("\n".join(connection.iterdump()) + "\n", encoding="utf-8")
        connection.close()
        text_path(VERSION).write_text(rendered(path), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
