"""The chain of a run: what was done to its entries is seen, and named, when it is read or taken over."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.journal.helpers import CALLED, DEFINITION, Raw, begin, begun, end, first_hash, intent, next_hash, result
from vesper.journal.journal import Journal, JournalError, open_journal


@pytest.fixture
def ended(journal: Journal) -> Journal:
    """`run-a` with the entries 1 to 6 in four commits; the second one holds entries 2 and 3."""
    run = begun(journal, "run-a")
    run.append(intent("a"))
    run.append(result("a"))
    run.commit()
    run.append(intent("b"))
    run.append(result("b", "x" * 40))
    run.commit()
    end(run)
    return journal


@pytest.mark.parametrize(
    "statement,why",
    [
        ("UPDATE vesper_commits SET lines = ? WHERE place % 2147483648 = 6", "entry 6: what it says is not what"),
        ("DELETE FROM vesper_commits WHERE place % 2147483648 = 2", "entry 2: it is missing"),
        ("DELETE FROM vesper_commits WHERE place % 2147483648 = 1", "entry 1: it is missing"),
        ("DELETE FROM vesper_commits WHERE place % 2147483648 = 6",
         "entry 6: the row of the execution says that there are 6, and there are 5"),
        ("DELETE FROM vesper_commits", "entry 1: the row of the execution says that there are 6, and there are 0"),
        ("UPDATE vesper_executions SET head_seq = 5", "entry 5: the row of the execution has another hash"),
        ("UPDATE vesper_executions SET execution = 'run-axe'", "entry 1: what it says is not what was written"),
        ("UPDATE vesper_commits SET hashes = lines WHERE place % 2147483648 = 4", "entry 4: 2 lines have"),
        ("UPDATE vesper_commits SET place = place - 1 WHERE place % 2147483648 = 4", "entry 4: it is there twice"),
        ("UPDATE vesper_executions SET status = 'asleep'", "status 'asleep', which nobody knows"),
    ],
)  # fmt: skip
def test_what_was_done_to_a_run_is_seen(ended: Journal, raw: Raw, statement: str, why: str) -> None:
    raw.run(statement, *([b"[]"] if "?" in statement else []))
    with pytest.raises(JournalError) as caught:
        ended.read("run-a")
    assert why in str(caught.value)


def test_a_line_of_the_second_entry_of_a_commit_is_named(ended: Journal, raw: Raw) -> None:
    place, lines = raw.run("SELECT place, lines FROM vesper_commits WHERE place % 2147483648 = 2")[0]
    raw.run("UPDATE vesper_commits SET lines = ? WHERE place = ?", bytes(lines).replace(b"ch_1", b"ch_2"), place)
    with pytest.raises(JournalError, match="of execution run-a is broken at entry 3: "):
        ended.read("run-a")


def test_a_run_that_is_broken_is_not_taken_over(journal: Journal, raw: Raw) -> None:
    run = begun(journal, "run-a")
    run.append(result())
    run.commit()
    raw.run("DELETE FROM vesper_commits WHERE place % 2147483648 = 1")
    with pytest.raises(JournalError, match="broken at entry 1"):
        journal.take_over("run-a", "python")
    assert raw.run("SELECT fence FROM vesper_executions") == [(1,)]


def replaced(raw: Raw, line: bytes) -> None:
    """Puts a line in the place of `run-a`'s first one, with a chain that fits."""
    hash_ = next_hash(first_hash("run-a"), line)
    raw.run("UPDATE vesper_commits SET lines = ?, hashes = ?", line, hash_)
    raw.run("UPDATE vesper_executions SET head_hash = ?", hash_)


@pytest.mark.parametrize(
    "line,why",
    [
        (b'[2,"main",1,"START","","","",null,"",1,"plain",{}]', "the format 2, and this Vesper reads 1: a newer"),
        (b'[1,"main",1,"STARTED","","","",null,"",1,"plain",{}]', "malformed"),
        (b'[1,"main",1,"START","","","",null,"",1,"plain"]', "malformed"),
        (b'[1,"main",1,"START","","","",null,"",1,"plain",[]]', "malformed"),
        (b'[1,"main",true,"START","","","",null,"",1,"plain",{}]', "malformed"),
        (b'[1,"main",7,"START","","","",null,"",1,"plain",{}]', "it says that it is entry 7"),
        (b'[1,"main",1,"START","","","",null,"",1,"plain",{"a":{"$blob":["x",1,false]}}]', "nobody knows the tag"),
        (b'[1,"main",1,"START","","","",null,"",1,"blob",["x",1,false]]', "the journal has no blob x"),
        (b'[1,"main",1,"START","","","",null,"",1,"blob",["x",-1,false]]', "malformed"),
        (b'[1,"main",1,"START","","","",null,"",1,"sealed","%"]', "not in base64"),
        (b'[1,"main",1,"START","","","",null,"",1,"other",{}]', "malformed"),
        (b"{}", "malformed"),
        (b"[", "cannot be read"),
    ],
)  # fmt: skip
def test_lines_that_nobody_wrote(journal: Journal, raw: Raw, line: bytes, why: str) -> None:
    begun(journal, "run-a")
    replaced(raw, line)
    with pytest.raises(JournalError) as caught:
        journal.read("run-a")
    assert "broken at entry 1" in str(caught.value)
    assert why in str(caught.value)


@pytest.mark.parametrize(
    "statement,why",
    [
        ("DELETE FROM vesper_blobs", "the journal has no blob"),
        ("UPDATE vesper_blobs SET data = name", "cannot be decompressed"),
        ("UPDATE vesper_blobs SET is_compressed = 0", "is not what its name says"),
    ],
)
def test_blobs_that_were_changed(dsn: str, raw: Raw, statement: str, why: str) -> None:
    journal = open_journal(dsn, max_inline=100)
    run = begin(journal, "run-a", inputs={})
    run.append(result(value="x" * 1000))
    run.commit()
    raw.run(statement.replace("= name", "= CAST(name AS BLOB)" if dsn.startswith("sqlite") else "= name::bytea"))
    with pytest.raises(JournalError, match=why):
        journal.read("run-a")
    journal.close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE vesper_executions SET head_seq = 'x'",
        "UPDATE vesper_executions SET head_hash = 1",
        "UPDATE vesper_executions SET node_id = x'00'",
        "UPDATE vesper_executions SET lease_until_us = 1.5",
        "UPDATE vesper_commits SET lines = 'text'",
        "UPDATE vesper_commits SET hashes = 5",
        "UPDATE vesper_executions SET is_sensitive = 1; INSERT INTO vesper_keys VALUES (1, '', 'text')",
        "UPDATE vesper_executions SET is_sensitive = 1; INSERT INTO vesper_keys VALUES (1, '', x'00')",
    ],
)
def test_cells_that_hold_something_else(tmp_path: Path, statement: str) -> None:
    """A file may hold anything in any cell; a server does not let it in."""
    dsn = f"sqlite:{tmp_path / 'journal.db'}"
    journal = open_journal(dsn)
    begun(journal, "run-a")
    for each in statement.split("; "):
        Raw(dsn).run(each)
    with pytest.raises(JournalError, match=r"somebody changed the journal|is damaged"):
        journal.read("run-a")
    with pytest.raises(JournalError, match=r"somebody changed the journal|is damaged"):
        journal.take_over("run-a", "python")
    journal.close()


@pytest.mark.parametrize("callees", ["", "{}", "[1]", "[", '["{0}"]', '["{1}"]', '["{0}", "{0}", "{1}"]', '["ff"]'])
def test_definitions_that_were_changed(journal: Journal, raw: Raw, callees: str) -> None:
    begun(journal, "run-a")
    changed = callees.replace("{0}", DEFINITION.semantic_hash).replace("{1}", CALLED.semantic_hash)
    raw.run("UPDATE vesper_definitions SET callees = ?", changed)
    with pytest.raises(JournalError, match=r"cannot be read|calls itself|no definition ff"):
        journal.definition(DEFINITION.semantic_hash)


def test_a_blob_that_is_a_bomb_is_not_unpacked(dsn: str, raw: Raw) -> None:
    import zlib

    journal = open_journal(dsn, max_inline=100)
    run = begin(journal, "run-a", inputs={})
    run.append(result(value="x" * 1000))
    run.commit()
    raw.run("UPDATE vesper_blobs SET data = ?", zlib.compress(bytes(50_000_000)))
    with pytest.raises(JournalError, match="is not what its name says"):
        journal.read("run-a")
    journal.close()
