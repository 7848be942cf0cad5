"""Journals that cannot be used: each says which file, why and what to do, and nothing is overwritten."""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.unit.journal.helpers import Raw, begin, begun, end, event, in_child, result
from vesper.journal.journal import Fenced, Journal, JournalError, Status, open_journal

if TYPE_CHECKING:
    from tests.support.servers import Postgres

ROOT = Path(__file__).parents[3]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


def opened(path: Path) -> Journal:
    return open_journal(f"sqlite:{path}")


def fails(path: Path, why: str, act: Callable[[Journal], object] = begun) -> None:
    journal = opened(path)
    with pytest.raises(JournalError) as caught:
        act(journal)
    assert str(path) in str(caught.value)
    assert re.search(why, str(caught.value)), str(caught.value)
    journal.close()


# -- names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "dsn", ["", "journal.db", "mysql://x/y", "sqlite", "sqlite:", "sqlite::memory:", "sqlite://host/x", "sqlite://x",
            "postgresql:x", "sqlite:a\0b"],
)  # fmt: skip
def test_a_dsn_that_names_no_journal(dsn: str) -> None:
    with pytest.raises(JournalError, match=r"sqlite:"):
        open_journal(dsn)


def test_a_message_never_shows_a_password(postgres: Postgres) -> None:
    journal = open_journal(f"postgresql://vesper:hunter2@127.0.0.1:{postgres.port}/nobody_made_this")
    with pytest.raises(JournalError, match="cannot be reached") as caught:
        begun(journal)
    assert "hunter2" not in str(caught.value)


def test_a_dsn_that_cannot_be_read_is_not_shown() -> None:
    with pytest.raises(JournalError, match="the DSN of the journal cannot be read") as caught:
        open_journal("postgresql://vesper:hunter2@ho st/x?nonsense=1")
    assert "hunter2" not in str(caught.value)


def test_both_spellings_of_a_file(tmp_path: Path) -> None:
    begun(open_journal(f"sqlite:{tmp_path}/a b.db"), "run-a")
    url = open_journal(f"sqlite://{tmp_path}/a%20b.db")
    assert url.read("run-a").summary.execution == "run-a"
    url.close()


def test_opening_touches_nothing(tmp_path: Path) -> None:
    open_journal(f"sqlite:{tmp_path}/none/none/journal.db")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name,value", [("lease_seconds", 0), ("max_inline", -1), ("max_body", 1 << 40)])
def test_settings_that_make_no_sense(path: Path, name: str, value: int) -> None:
    with pytest.raises(JournalError):
        open_journal(f"sqlite:{path}", **{name: value})  # type: ignore[arg-type]


# -- files ----------------------------------------------------------------------------------------


def test_a_folder_is_made_for_a_new_journal_but_not_a_path(tmp_path: Path) -> None:
    begun(opened(tmp_path / ".vesper" / "journal.db"))
    assert (tmp_path / ".vesper").stat().st_mode & 0o777 == 0o700
    fails(tmp_path / "a" / "b" / "journal.db", "the folder .*/a does not exist")


def test_a_new_journal_is_for_its_owner_alone(path: Path) -> None:
    journal = opened(path)
    begun(journal)
    assert {file.name for file in path.parent.iterdir()} == {"journal.db", "journal.db-wal", "journal.db-shm"}
    assert {file.stat().st_mode & 0o777 for file in path.parent.iterdir()} == {0o600}
    journal.close()


def test_a_folder_is_no_journal(tmp_path: Path) -> None:
    fails(tmp_path, "is a folder")


@pytest.mark.parametrize(
    "content", [b"hello, I am a text file\n" * 300, os.urandom(8192), b"SQLite format 3\0" + b"x" * 4080]
)
def test_another_file_is_no_journal_and_stays_as_it_is(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    fails(path, r"no journal|is damaged")
    assert path.read_bytes() == content


def test_a_journal_of_a_newer_vesper_is_refused_and_stays_as_it_is(dsn: str, raw: Raw) -> None:
    journal = open_journal(dsn)
    begun(journal, "run-a")
    journal.close()
    raw.run("INSERT INTO vesper_migrations VALUES (999, 1)")
    before = raw.run("SELECT * FROM vesper_executions")
    newer = open_journal(dsn)
    for act in (begun, lambda journal: journal.read("run-a"), lambda journal: journal.prune(1 << 60)):
        with pytest.raises(JournalError, match="has the format 999, and this Vesper knows 4: a newer one made it"):
            act(newer)
    assert raw.run("SELECT * FROM vesper_executions") == before


def test_pages_that_were_overwritten(path: Path) -> None:
    journal = opened(path)
    for _ in range(50):
        end(begun(journal))
    journal.close()
    data = bytearray(path.read_bytes())
    for page in range(1, len(data) // 4096):
        data[page * 4096 : page * 4096 + 512] = b"\xa5" * 512
    path.write_bytes(data)
    damaged = bytes(data)
    fails(path, "damaged", lambda journal: journal.find())
    fails(path, "damaged")
    assert path.read_bytes() == damaged


def test_a_byte_that_flipped_in_an_entry(path: Path) -> None:
    journal = opened(path)
    run = begun(journal, "run-a")
    run.append(result(value="the one and only value"))
    end(run)
    journal.close()
    data = path.read_bytes()
    path.write_bytes(data.replace(b"the one and only value", b"the one and only valuf"))
    fails(path, "execution run-a is broken at entry 2", lambda journal: journal.read("run-a"))


def test_a_file_that_was_cut(path: Path) -> None:
    journal = opened(path)
    for _ in range(20):
        end(begun(journal))
    journal.close()
    path.write_bytes(path.read_bytes()[: 4096 * 3])
    fails(path, "damaged", lambda journal: journal.find())


def test_a_journal_that_was_deleted_while_it_was_used(path: Path) -> None:
    journal = opened(path)
    run = begun(journal, "run-a")
    for file in path.parent.iterdir():
        file.unlink()
    with pytest.raises(JournalError, match="somebody deleted or replaced the journal while it was in use"):
        end(run)
    with pytest.raises(Fenced):  # a new file is there now, and the run is not in it
        run.commit(Status.ENDED, "returned")
    journal.close()


def _hold(path: Path, ready: int, release: int) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    os.write(ready, b"x")
    os.read(release, 1)


def test_a_file_that_another_process_has_locked(path: Path) -> None:
    journal = open_journal(f"sqlite:{path}", busy_seconds=0.05)
    run = begun(journal, "run-a")
    told, tell = os.pipe(), os.pipe()
    holder = multiprocessing.get_context("fork").Process(target=_hold, args=(path, told[1], tell[0]))
    holder.start()
    os.read(told[0], 1)
    run.append(result())
    for act in (run.commit, run.renew, lambda: journal.audit([event()]), lambda: journal.prune(1)):
        with pytest.raises(
            JournalError, match=rf"process {holder.pid} has had the journal locked for more than 0.05 s"
        ):
            act()
    assert len(journal.read("run-a").entries) == 1  # who only reads need not wait
    os.write(tell[1], b"x")
    holder.join()
    for descriptor in (*told, *tell):
        os.close(descriptor)
    run.commit()
    assert len(journal.read("run-a").entries) == 2
    journal.close()


_FULL = """
import resource, signal, sys
sys.path.insert(0, {root!r})
from tests.unit.journal.helpers import begun, event, intent
from vesper.journal.journal import JournalError, open_journal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
journal = open_journal("sqlite:{path}")
run = begun(journal, "run-a")
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY))
for number in range(2000):
    run.append(intent("charge", {{"number": number, "filler": "x" * 1500}}))
    try:
        run.commit()
    except JournalError as error:
        print(error)
        break
written = len(journal.read("run-a").entries) - 1
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
run.commit()
entries = journal.read("run-a").entries
assert [stored.entry.body["number"] for stored in entries[1:]] == list(range(number + 1)), (written, number)
journal.close()
"""


def test_a_disk_that_is_full(path: Path) -> None:
    """A limit of the process on the size of files acts as a full disk: the very same entry is written later, once."""
    code = _FULL.format(root=str(ROOT), path=path)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert re.search(r"journal\.db: the disk (is full|failed)", done.stdout), done.stdout


@pytest.mark.parametrize("what", ["file", "folder", "new"])
def test_a_file_or_folder_that_cannot_be_written(tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VESPER_TRUST", str(tmp_path))
    folder = tmp_path / "folder"
    path = folder / "journal.db"
    if what == "new":
        folder.mkdir()
    else:
        journal = opened(path)
        begun(journal)
        journal.close()
        path.chmod(0o444)
    for parent in (tmp_path, tmp_path.parent, tmp_path.parents[1]):
        parent.chmod(parent.stat().st_mode | 0o055)
    folder.chmod(0o777 if what == "file" else 0o555)

    def as_somebody_else() -> None:
        if os.getuid() == 0:  # who may do anything
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
        fails(path, "read-only for this user|cannot be created: Permission denied|not for this user")

    before = path.read_bytes() if path.exists() else b""
    assert in_child(as_somebody_else) == 0
    assert (path.read_bytes() if path.exists() else b"") == before


# -- the server -----------------------------------------------------------------------------------


def test_a_server_that_goes_away_and_comes_back(postgres: Postgres) -> None:
    """Sessions are ended by the server; the next commit that finds one so opens another."""
    import psycopg

    dsn = postgres.new_database()
    journal = open_journal(dsn)
    run = begun(journal, "run-a")
    with psycopg.connect(postgres.dsn(), autocommit=True) as connection:
        ended = connection.execute(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = %s",
            (dsn.rpartition("/")[2],),
        ).fetchone()
        assert ended is not None
        assert ended[0] >= 1
    said: list[str] = []
    for _ in range(100):
        run.append(result())
        try:
            run.commit()
        except JournalError as error:
            said.append(str(error))  # the news was still on its way
            continue
        break
    assert all("cannot be reached, or ended the connection" in each for each in said)
    entries = journal.read("run-a").entries
    assert len(entries) >= 2
    assert [stored.seq for stored in entries] == list(range(1, len(entries) + 1))
    journal.close()


def test_a_process_that_is_killed_leaves_whole_commits(tmp_path: Path) -> None:
    """Killed at any moment: what was reported as committed is there, and the chain holds."""
    path = tmp_path / "journal.db"
    code = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from tests.unit.journal.helpers import begun, intent, result
from vesper.journal.journal import open_journal
run = begun(open_journal("sqlite:{path}"), "run-a")
for number in range(100000):
    run.append(intent(f"charge[{{number}}]"))
    run.append(result(f"charge[{{number}}]"))
    run.commit()
    print(number, flush=True)
"""
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert process.stdout is not None
    for _ in range(50):
        process.stdout.readline()
    os.kill(process.pid, signal.SIGKILL)
    reported = 50 + len(process.stdout.readlines())
    process.stdout.close()
    process.wait()
    journal = opened(path)
    entries = journal.read("run-a").entries
    assert len(entries) in (1 + 2 * reported, 3 + 2 * reported)
    # Its owner is dead, and this machine can see that: nobody waits for the lease.
    assert [found.execution for found in journal.unfinished()] == ["run-a"]
    taken = journal.take_over("run-a", "python")
    assert len(taken.recorded) == len(entries)
    end(taken)
    begin(journal)
    journal.close()
