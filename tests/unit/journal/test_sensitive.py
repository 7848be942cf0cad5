"""Runs whose bodies nobody can read without a key, and nobody at all once it was deleted."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.journal.helpers import Raw, begin, begun, end, first_hash, intent, next_hash, result
from vesper.journal.entry import Entry, Kind
from vesper.journal.journal import Journal, JournalError, KeyRing, NotTaken, Status, open_journal
from vesper.journal.typed_json import digest_of

MASTER = bytes(range(32))
SECRET = "4111-1111-secret"
REQUEST = ("custom", "unsafe", {"name": "x"}, {"pin": "1234"}, None)


def sensitive(journal: Journal, name: str, value: str = SECRET) -> None:
    run = begin(journal, name, is_sensitive=True, inputs={"card": value})
    run.append(intent("charge", {"card": value}, key=f"key-{value}"))
    run.commit()
    run.append(result(value=value * 100))
    end(run)


def everything(raw: Raw) -> bytes:
    found = b""
    for table in ("commits", "blobs", "executions", "definitions", "keys", "audit"):
        for row in raw.run(f"SELECT * FROM vesper_{table}"):  # noqa: S608
            found += b"".join(
                bytes(cell) if isinstance(cell, bytes | memoryview) else str(cell).encode() for cell in row
            )
    return found


@pytest.mark.parametrize("master", [None, MASTER])
def test_bodies_are_encrypted_and_read_back(dsn: str, raw: Raw, master: bytes | None) -> None:
    journal = open_journal(dsn, keys=KeyRing(master), max_inline=400)
    assert journal.keys_lie_beside_data == (master is None)
    sensitive(journal, "run-a")
    assert SECRET.encode() not in everything(raw)
    entries = [stored.entry for stored in journal.read("run-a").entries]
    assert entries[0].body["inputs"] == {"card": SECRET}
    assert (entries[1].key, entries[1].body) == (f"key-{SECRET}", {"card": SECRET})
    assert entries[2].body == {"value": SECRET * 100}
    assert len(raw.run("SELECT 1 FROM vesper_blobs")) == 1
    journal.close()


def test_erasing_takes_the_bodies_and_leaves_the_chain(dsn: str, raw: Raw) -> None:
    journal = open_journal(dsn, max_inline=400)
    sensitive(journal, "run-a")
    sensitive(journal, "run-b")
    assert journal.erase("run-a") is True
    assert journal.erase("run-a") is False
    recorded = journal.read("run-a")
    assert [stored.entry.kind for stored in recorded.entries] == [Kind.START, Kind.INTENT, Kind.RESULT, Kind.END]
    assert all(stored.is_erased and not stored.entry.body and stored.entry.key is None for stored in recorded.entries)
    assert not any(stored.is_erased for stored in journal.read("run-b").entries)
    raw.run("UPDATE vesper_commits SET hashes = ? WHERE place = (SELECT MIN(place) FROM vesper_commits)", bytes(64))
    with pytest.raises(JournalError, match="broken at entry 1"):
        journal.read("run-a")
    journal.close()


def test_an_erased_run_is_not_taken_over(journal: Journal) -> None:
    begun(journal, "run-a", is_sensitive=True)
    journal.erase("run-a")
    with pytest.raises(NotTaken, match="its key was deleted"):
        journal.take_over("run-a", "python")


def test_a_run_that_is_not_sensitive_has_no_key(journal: Journal) -> None:
    begun(journal, "run-a")
    assert journal.erase("run-a") is False
    assert not journal.read("run-a").entries[0].is_erased


def test_a_deleted_key_is_not_left_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    journal = open_journal(f"sqlite:{path}")
    begun(journal, "run-a", is_sensitive=True)
    key = bytes(Raw(f"sqlite:{path}").run("SELECT wrapped FROM vesper_keys")[0][0])
    assert any(key in file.read_bytes() for file in tmp_path.iterdir())
    journal.erase("run-a")
    assert not any(key in file.read_bytes() for file in tmp_path.iterdir())
    journal.close()


def test_another_master_key_is_named_and_an_earlier_one_works(dsn: str) -> None:
    journal = open_journal(dsn, keys=KeyRing(MASTER))
    sensitive(journal, "run-a")
    journal.close()
    for keys in (KeyRing(), KeyRing(bytes(32))):
        other = open_journal(dsn, keys=keys)
        with pytest.raises(JournalError, match=r"lies under the master key [0-9a-f]{16}, which is not configured"):
            other.read("run-a")
        other.close()
    rotated = open_journal(dsn, keys=KeyRing(bytes(32), earlier=[MASTER]))
    assert rotated.read("run-a").entries[1].entry.body == {"card": SECRET}
    rotated.close()


@pytest.mark.parametrize("size", [0, 16, 31, 33])
def test_a_master_key_has_its_size(size: int) -> None:
    with pytest.raises(JournalError, match=f"32 bytes, this one has {size}"):
        KeyRing(bytes(size))
    assert "master" in repr(KeyRing(MASTER))
    assert MASTER.hex() not in repr(KeyRing(MASTER))


def test_bodies_cannot_change_places(journal: Journal, raw: Raw) -> None:
    """Bodies of two runs are put in each other's place, with hashes that fit: the encryption still tells."""
    for name in ("run-a", "run-b"):
        begun(journal, name, is_sensitive=True)
    rows = raw.run("SELECT place, lines FROM vesper_commits ORDER BY place")
    moved = bytes(rows[1][1])
    hash_ = next_hash(first_hash("run-a"), moved)
    raw.run("UPDATE vesper_commits SET lines = ?, hashes = ? WHERE place = ?", moved, hash_, rows[0][0])
    raw.run("UPDATE vesper_executions SET head_hash = ? WHERE execution = 'run-a'", hash_)
    with pytest.raises(JournalError, match="cannot be decrypted: it was changed, or moved"):
        journal.read("run-a")


def test_bodies_of_one_run_cannot_change_places(journal: Journal, raw: Raw) -> None:
    """One key, so only the place that a body is bound to tells."""
    import json

    run = begun(journal, "run-a", is_sensitive=True)
    run.append(result("a", "first"))
    run.append(result("b", "second"))
    run.commit()
    (place, start), (_, both) = raw.run("SELECT place, lines FROM vesper_commits ORDER BY place")
    one, two = (json.loads(line) for line in bytes(both).split(b"\n"))
    one[11], two[11] = two[11], one[11]
    lines = [json.dumps(line, separators=(",", ":")).encode() for line in (one, two)]
    hashes = [next_hash(next_hash(first_hash("run-a"), bytes(start)), lines[0])]
    hashes.append(next_hash(hashes[0], lines[1]))
    raw.run(
        "UPDATE vesper_commits SET lines = ?, hashes = ? WHERE place > ?", b"\n".join(lines), b"".join(hashes), place
    )
    with pytest.raises(JournalError, match=r"broken at entry 2: .*cannot be decrypted: it was changed, or moved"):
        journal.read("run-a")


def test_digests_of_a_sensitive_run_cannot_be_guessed(journal: Journal) -> None:
    plain = begun(journal)
    one = begun(journal, "run-a", is_sensitive=True)
    two = begun(journal, "run-b", is_sensitive=True)
    assert plain.digest(*REQUEST) == digest_of(*REQUEST)
    digests = {plain.digest(*REQUEST), one.digest(*REQUEST), two.digest(*REQUEST)}
    assert len(digests) == 3
    assert all(len(digest) == 64 for digest in digests)
    assert journal.take_over("run-a", "python").digest(*REQUEST) == one.digest(*REQUEST)


def test_a_sensitive_run_is_taken_over_and_resolved(journal: Journal, raw: Raw) -> None:
    run = begun(journal, "run-a", is_sensitive=True)
    run.append(Entry(Kind.IN_DOUBT, "charge", "custom", "unsafe", None, "", {}, 1))
    run.commit(Status.IN_DOUBT)
    journal.resolve("run-a", "charge", SECRET, None, "ada", f"the card {SECRET} was charged")
    taken = journal.take_over("run-a", "python")
    assert taken.recorded[-1].body["value"] == SECRET
    assert SECRET.encode() not in everything(raw)
