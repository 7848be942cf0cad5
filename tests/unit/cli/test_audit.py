"""`vesper audit`: what the log says, and that every change of it is seen, in the journal and in an exported file."""

from __future__ import annotations

import csv
import hmac
import json
import re
from collections.abc import Callable, Iterator
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

import pytest

from tests.support.journal_file import run_statement, run_statements
from tests.support.journalled import Place, a_place, invoke, node_text
from tests.support.servers import free_port
from vesper.host.run_context import run_context
from vesper.journal.audit import FIRST, audit_hash
from vesper.journal.entry import AuditEvent

KEY = "a secret of the audit log"
Lines = list[bytes]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VESPER_SECRET_AUDIT_KEY", KEY)
    with a_place(tmp_path, "sqlite:journal.db") as found:
        yield found


@pytest.fixture
def audited(place: Place) -> Place:
    """Six lines: three runs that each charge somebody."""
    for customer in ("ann", "bob", "cyd"):
        place.run(node_text(audit="detailed"), customer)
    return place


# -- list -----------------------------------------------------------------------------------------


def test_the_newest_come_first_with_what_they_say(audited: Place) -> None:
    said = invoke("audit", "list", "--limit", "2").stdout
    assert said.index("\n6 ") < said.index("\n5 ")
    assert 'inputs   {amount: 10.00, customer: "cyd", event_id: "event cyd"}' in said
    assert "success" in said
    assert "bob" not in said
    assert "--limit shows more" in said


def test_a_node_that_no_line_is_of_is_told(audited: Place) -> None:
    done = invoke("audit", "list", "--node", "chrage")
    assert done.exit_code == 1
    assert "the audit log has no line of a node `chrage`; did you mean `charge`" in done.stderr


def test_a_server_that_is_away_is_no_change_of_the_log(place: Place) -> None:
    done = invoke("audit", "verify", "--journal", f"postgresql://127.0.0.1:{free_port()}/nobody")
    assert done.exit_code == 1
    assert "cannot be reached" in done.stderr
    assert "not what was written" not in done.output


def test_a_list_of_some(audited: Place) -> None:
    audited.run(node_text("refund_v2", audit="basic"), "eve")
    for arguments, expected in (
        ([], [7, 6, 5, 4, 3, 2, 1]),
        (["--node", "refund"], [7]),
        (["--node", "charge_v1", "--limit", "2"], [6, 5]),
        (["--since", "1h"], [7, 6, 5, 4, 3, 2, 1]),
        (["--since", "2100-01-01"], []),
    ):
        found = json.loads(invoke("audit", "list", "--format", "json", *arguments).stdout)
        assert [each["seq"] for each in found] == expected, arguments
        assert all(len(each["hash"]) == len(each["previous"]) == 64 for each in found)


def test_a_log_without_lines(place: Place) -> None:
    for arguments in (["list"], ["verify"], ["export"]):
        done = invoke("audit", *arguments)
        assert done.exit_code == 1
        assert "there is no journal at" in done.stderr
    place.run(node_text())
    assert invoke("audit", "list").stdout == "no matching lines\n"
    assert "is intact: 0 lines" in invoke("audit", "verify").stdout
    assert invoke("audit", "export", "-o", "audit.jsonl").exit_code == 0
    assert "is intact: 0 lines" in invoke("audit", "verify", "--file", "audit.jsonl").stdout


def test_a_sensitive_input_is_in_no_line(place: Place) -> None:
    place.run(node_text(sensitive=True, audit="detailed"), "carol")
    assert "carol" not in invoke("audit", "list").stdout
    assert "carol" not in invoke("audit", "export").stdout


# -- verify ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("journal", ["", 'audit_key_secret = "audit_key"\n'], ids=["plain", "keyed"])
def test_a_log_that_is_whole(place: Place, journal: str) -> None:
    place.settings(journal)
    place.run(node_text(audit="detailed"))
    done = invoke("audit", "verify")
    assert done.exit_code == 0
    assert "the audit log is intact: 2 lines, the last hash is " in done.stdout
    assert ("use no secret" in done.stderr) is (not journal)


@pytest.mark.parametrize(
    "statements, expected",
    [
        (["UPDATE vesper_audit SET line = replace(line, 'bob', 'eve') WHERE seq = 3"], "line 3 was changed"),
        (["UPDATE vesper_audit SET hash = zeroblob(32) WHERE seq = 2"], "line 2 was changed"),
        (["DELETE FROM vesper_audit WHERE seq = 4"], "line 4 is missing"),
        (["DELETE FROM vesper_audit WHERE seq < 3"], "lines 1 to 2 are missing"),
        (["DELETE FROM vesper_audit WHERE seq > 4"], "lines 5 to 6 are missing at the end"),
        (["INSERT INTO vesper_audit SELECT 7, line, hash FROM vesper_audit WHERE seq = 6"], "line 7 was changed"),
        (["INSERT INTO vesper_audit SELECT 0, line, hash FROM vesper_audit WHERE seq = 6"], "line 0 was inserted"),
        (
            [
                "UPDATE vesper_audit SET seq = 99 WHERE seq = 2",
                "UPDATE vesper_audit SET seq = 2 WHERE seq = 5",
                "UPDATE vesper_audit SET seq = 5 WHERE seq = 99",
            ],
            "line 2 was changed, inserted, or moved here",
        ),
        (["UPDATE vesper_audit_head SET count = 5"], "line 6 was added"),
        (["UPDATE vesper_audit_head SET hash = zeroblob(32)"], "the head of the log is not the hash of line 6"),
        (["DELETE FROM vesper_audit_head"], "lost its head"),
    ],
)
def test_a_log_that_was_changed(audited: Place, statements: list[str], expected: str) -> None:
    changes = [statement.replace("replace(line", "replace(CAST(line AS TEXT)") for statement in statements]
    found = run_statements(
        audited.folder / "journal.db",
        *((f"{change} RETURNING 1", ()) for change in changes),
        ("UPDATE vesper_audit SET line = CAST(line AS BLOB)", ()),
    )
    assert all(found[:-1])
    done = invoke("audit", "verify")
    assert done.exit_code == 1
    assert expected in done.stdout.splitlines()[0]


def test_hashes_made_anew_without_the_secret_are_seen(place: Place) -> None:
    place.settings('audit_key_secret = "audit_key"\n')
    place.run(node_text(audit="detailed"))
    path = place.folder / "journal.db"
    last = FIRST
    statements: list[tuple[str, tuple[object, ...]]] = []
    for seq, line in run_statement(path, "SELECT seq, line FROM vesper_audit ORDER BY seq"):
        assert isinstance(line, bytes)
        changed = line.replace(b"ann", b"eve")
        last = audit_hash(last, changed, None)
        statements.append(("UPDATE vesper_audit SET line = ?, hash = ? WHERE seq = ?", (changed, last, seq)))
    run_statements(path, *statements, ("UPDATE vesper_audit_head SET hash = ?", (last,)))
    done = invoke("audit", "verify")
    assert done.exit_code == 1
    assert "line 1 was changed" in done.stdout.splitlines()[0]


# -- export ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("style", ["jsonl", "csv"])
@pytest.mark.parametrize("journal", ["", 'audit_key_secret = "audit_key"\n'], ids=["plain", "keyed"])
def test_an_exported_file_can_be_checked_on_its_own(place: Place, style: str, journal: str) -> None:
    place.settings(journal)
    for customer in ("ann", 'a "quoted", name\n\u2028 of Ω\r'):
        place.run(node_text(audit="detailed"), customer)
    file = place.folder / f"audit.{style}"
    done = invoke("audit", "export", "-o", str(file), "--format", style)
    assert (done.exit_code, done.stdout) == (0, f"wrote 4 lines to {file}\n")
    assert file.stat().st_mode & 0o077 == 0
    whole = invoke("audit", "verify").stdout.partition(":")[2]
    (place.folder / "journal.db").unlink()
    done = invoke("audit", "verify", "--file", str(file))
    assert done.exit_code == 0, done.output
    assert done.stdout.partition(":")[2] == whole
    if journal:
        place.settings()
        done = invoke("audit", "verify", "--file", str(file))
        assert done.exit_code == 1
        assert "requires it" in done.stdout


def test_the_lines_of_a_file_are_for_tools_too(audited: Place) -> None:
    printed = invoke("audit", "export").stdout
    lines = [json.loads(line) for line in printed.splitlines()]
    assert [each["seq"] for each in lines] == list(range(7))
    assert lines[0]["event"]["fields"]["lines"] == 6
    assert all(before["hash"] == after["previous"] for before, after in pairwise(lines[1:]))
    rows = list(csv.DictReader(invoke("audit", "export", "--format", "csv").stdout.splitlines()))
    assert [row["hash"] for row in rows] == [each["hash"] for each in lines]
    assert json.loads(rows[2]["fields"])["inputs"]["customer"] == "ann"


@pytest.mark.parametrize("journal", ["", 'audit_key_secret = "audit_key"\n'], ids=["plain", "keyed"])
def test_the_hashes_are_what_the_page_says(place: Place, journal: str) -> None:
    """Written down from docs/how-to/audit.md, with nothing of Vesper."""
    place.settings(journal)
    place.run(node_text(audit="detailed"))
    exported = invoke("audit", "export").stdout_bytes.splitlines()
    assert len(exported) == 3
    for row in exported[1:]:
        head, _, rest = row.partition(b'"event":')
        said = json.loads(head + b'"":0}')
        content = bytes.fromhex(said["previous"]) + rest[: rest.rindex(b"}")]
        key = sha256(KEY.encode()).digest()
        found = hmac.digest(key, content, "sha256").hex() if journal else sha256(content).hexdigest()
        assert said["hash"] == found


def _replaced(line: int, old: bytes, new: bytes) -> Callable[[Lines], Lines]:
    def change(lines: Lines) -> Lines:
        assert old in lines[line]
        return [*lines[:line], lines[line].replace(old, new), *lines[line + 1 :]]

    return change


CHANGES: dict[str, tuple[Callable[[Lines], Lines], str]] = {
    "changed": (_replaced(3, b"bob", b"eve"), "line 3 was changed"),
    "removed": (lambda lines: lines[:3] + lines[4:], "line 3 is missing"),
    "inserted": (lambda lines: [*lines[:4], lines[3], *lines[4:]], "line 3 was inserted"),
    "reordered": (lambda lines: [*lines[:2], lines[3], lines[2], *lines[4:]], "line 2 is missing"),
    "cut at the end": (lambda lines: lines[:-2], "lines 5 to 6 are missing at the end"),
    "cut at the beginning": (lambda lines: lines[1:], "line 0, with the number of lines, is missing"),
    "cut in a line": (lambda lines: [*lines[:-1], lines[-1][:-9]], "row "),
    "renumbered": (_replaced(4, b'"seq":4', b'"seq":5'), "line 4 is missing"),
    "another count": (_replaced(0, b'"lines":6', b'"lines":5'), "line "),
    "nothing": (lambda _: [], "is not a file of `vesper audit export`"),
    "something else": (lambda _: [b"\x00\xff" * 100], "is not a file of `vesper audit export`"),
}


@pytest.mark.parametrize("change", list(CHANGES))
@pytest.mark.parametrize("journal", ["", 'audit_key_secret = "audit_key"\n'], ids=["plain", "keyed"])
def test_a_file_that_was_changed(place: Place, change: str, journal: str) -> None:
    place.settings(journal)
    for customer in ("ann", "bob", "cyd"):
        place.run(node_text(audit="detailed"), customer)
    file = place.folder / "audit.jsonl"
    invoke("audit", "export", "-o", str(file))
    damage, expected = CHANGES[change]
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(damage(lines)))
    done = invoke("audit", "verify", "--file", str(file))
    assert done.exit_code == 1
    assert expected in done.stdout.splitlines()[0], done.stdout


CSV_CHANGES: dict[str, tuple[Callable[[Lines], Lines], str]] = {
    "changed": (_replaced(4, b"bob", b"eve"), "line 3 was changed"),
    "another time": (_replaced(4, b",20", b",19"), "row 5 of the file was changed: `time`"),
    "another level": (_replaced(4, b"detailed", b"basic"), "line 3 was changed"),
    "removed": (lambda lines: lines[:4] + lines[5:], "line 3 is missing"),
    "cut at the end": (lambda lines: lines[:-1], "line 6 is missing at the end"),
    "a column more": (_replaced(4, b"\n", b",x\n"), "row 5 of the file was changed or cut off after the export"),
    "no fields": (_replaced(4, b'"{""', b'"[{""'), "row 5 of the file was changed: `fields`"),
    "no text": (_replaced(4, b"bob", b"\xff\xfe"), "the file was changed after the export"),
    "an open quote": (_replaced(4, b"detailed", b'"detailed'), "the file was changed after the export"),
    "no number": (_replaced(4, b"3,", b"three,"), "row 5 of the file was changed: `seq`"),
}


@pytest.mark.parametrize("change", list(CSV_CHANGES))
def test_a_table_that_was_changed(audited: Place, change: str) -> None:
    file = audited.folder / "audit.csv"
    invoke("audit", "export", "--format", "csv", "-o", str(file))
    damage, expected = CSV_CHANGES[change]
    file.write_bytes(b"".join(damage(file.read_bytes().splitlines(keepends=True))))
    done = invoke("audit", "verify", "--file", str(file))
    assert done.exit_code == 1
    assert expected in done.stdout.splitlines()[0], done.stdout


@pytest.mark.parametrize("style", ["jsonl", "csv"])
def test_a_previous_that_was_changed(audited: Place, style: str) -> None:
    file = audited.folder / "audit"
    invoke("audit", "export", "--format", style, "-o", str(file))
    rows = file.read_bytes().splitlines(keepends=True)
    at = len(rows) - 3  # line 4
    previous = json.loads(invoke("audit", "list", "--format", "json").stdout)[2]["previous"].encode()
    assert previous in rows[at]
    rows[at] = rows[at].replace(previous, b"0" * 64)
    file.write_bytes(b"".join(rows))
    done = invoke("audit", "verify", "--file", str(file))
    assert done.exit_code == 1
    assert "line 4 or line 3 was changed" in done.stdout


def test_a_file_made_without_the_secret_that_there_is(audited: Place) -> None:
    invoke("audit", "export", "-o", "audit.jsonl")
    audited.settings('audit_key_secret = "audit_key"\n')
    done = invoke("audit", "verify", "--file", "audit.jsonl")
    assert done.exit_code == 1
    assert "made without the secret of the settings" in done.stdout


def test_a_place_that_cannot_be_written_to(audited: Place) -> None:
    done = invoke("audit", "export", "-o", "nowhere/audit.jsonl")
    assert done.exit_code == 1
    assert "cannot write nowhere/audit.jsonl: No such file or directory" in done.stderr


def test_a_log_that_cannot_be_exported_leaves_no_file(audited: Place) -> None:
    run_statement(audited.folder / "journal.db", "UPDATE vesper_audit SET line = x'00' WHERE seq = 5")
    for style in ("jsonl", "csv"):
        done = invoke("audit", "export", "-o", f"audit.{style}", "--format", style)
        assert done.exit_code == 1, style
        assert done.stderr.startswith("Error: ")
    assert not list(audited.folder.glob("*audit*"))
    assert invoke("audit", "list").exit_code == 1


def test_a_file_is_written_as_its_name_says(audited: Place) -> None:
    for name, arguments, is_csv in (
        ("log.csv", [], True),
        ("log.jsonl", [], False),
        ("log.txt", [], False),
        ("other.csv", ["--format", "jsonl"], False),
    ):
        assert invoke("audit", "export", "-o", name, *arguments).exit_code == 0
        assert (audited.folder / name).read_bytes().startswith(b"{") is not is_csv
        assert invoke("audit", "verify", "--file", name).exit_code == 0


# -- the caller -----------------------------------------------------------------------------------


@pytest.fixture
def named(audited: Place) -> Place:
    """Two more lines for each of two callers."""
    for actor, tenant in (("ada", "acme"), ("bob", None)):
        with run_context(actor=actor, tenant=tenant, key="order 17"):
            audited.run(node_text(audit="detailed"), "dan")
    return audited


def test_lines_of_an_actor(named: Place) -> None:
    for actor, expected in (("ada", [8, 7]), ("bob", [10, 9]), ("eve", [])):
        found = json.loads(invoke("audit", "list", "--format", "json", "--actor", actor).stdout)
        assert [each["seq"] for each in found] == expected
        assert all((each["actor"], each["key"]) == (actor, "order 17") for each in found)
    said = invoke("audit", "list", "--actor", "ada").stdout
    assert said.splitlines()[0].split()[:4] == ["line", "time", "actor", "action"]
    assert re.search(r"^    tenant +acme$", said, re.MULTILINE)
    assert re.search(r"^    idempotency_key +order 17$", said, re.MULTILINE)


@pytest.mark.parametrize("style", ["jsonl", "csv"])
@pytest.mark.parametrize("old, new", [(b"ada", b"eve"), (b"acme", b"acne"), (b"order 17", b"order 18")])
def test_the_caller_in_a_file_is_verified(named: Place, style: str, old: bytes, new: bytes) -> None:
    file = named.folder / f"audit.{style}"
    assert invoke("audit", "export", "-o", str(file)).exit_code == 0
    assert invoke("audit", "verify", "--file", str(file)).exit_code == 0
    lines = file.read_bytes().splitlines(keepends=True)
    word = re.compile(rb"\b%s\b" % old)  # `ada` is part of many a hash
    place = next(number for number, line in enumerate(lines) if word.search(line))
    lines[place] = word.sub(new, lines[place])
    file.write_bytes(b"".join(lines))
    done = invoke("audit", "verify", "--file", str(file))
    assert done.exit_code == 1
    assert "line 7 was changed" in done.stdout.splitlines()[0]


def test_a_table_of_an_earlier_vesper_is_verified(audited: Place) -> None:
    file = audited.folder / "audit.csv"
    assert invoke("audit", "export", "-o", str(file)).exit_code == 0
    with file.open(encoding="utf-8", newline="") as text:
        rows = [row[:10] for row in csv.reader(text)]
    with file.open("w", encoding="utf-8", newline="") as text:
        csv.writer(text, lineterminator="\n").writerows(rows)
    assert invoke("audit", "verify", "--file", str(file)).exit_code == 0


@pytest.mark.parametrize("text", ['"quoted"', "a\nb\r,c", "\u2028\u202e", "\x00", "=1+1"])
def test_any_text_of_a_caller_can_be_exported(place: Place, text: str) -> None:
    with place.journal() as journal:
        journal.audit([AuditEvent(1, "run", "pay_v1", "basic", "pay", {}, {"user_id": text, "transaction_id": "t"})])
    for style in ("jsonl", "csv"):
        file = place.folder / f"audit.{style}"
        assert invoke("audit", "export", "-o", str(file)).exit_code == 0
        done = invoke("audit", "verify", "--file", str(file))
        assert done.exit_code == 0, done.output
