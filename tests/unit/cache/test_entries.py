"""Entries on disk: found again by whoever wrote them, and by nobody else; bounded; whole or not there."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from vesper.cache import entries as module
from vesper.cache.entries import MAGIC, Entries, entries, open_entries
from vesper.cache.folder import NoCache, key_name, read_key

KEY = bytes(range(32))
NAME = "a" * 64


@pytest.fixture
def cache(tmp_path: Path) -> Entries:
    folder = tmp_path / "cache" / "nodes"
    folder.mkdir(parents=True, mode=0o700)
    return Entries(str(folder), KEY)


def file_of(cache: Entries, name: str = NAME) -> Path:
    return Path(cache.folder) / f"{name}.entry"


def test_what_was_put_is_found_and_counted(cache: Entries) -> None:
    assert cache.find(NAME) is None
    assert cache.put(NAME, b"text")
    assert cache.find(NAME) == b"text"
    assert cache.kept.counters.all() == {"hits": 1, "misses": 1, "evictions": 0, "refused": 0, "writes": 1}
    assert oct(file_of(cache).stat().st_mode & 0o777) == "0o600"


def _cut(data: bytes) -> bytes:
    return data[:-1]


def _flipped(data: bytes) -> bytes:
    return data[:-1] + bytes([data[-1] ^ 1])


def _longer(data: bytes) -> bytes:
    return data + b"x"


def _other_mac(data: bytes) -> bytes:
    return data[: len(MAGIC)] + bytes(32) + data[len(MAGIC) + 32 :]


def _other_format(data: bytes) -> bytes:
    return b"vesper-entry-0\n" + data[len(MAGIC) :]


def _head_alone(data: bytes) -> bytes:
    return data[: len(MAGIC) + 5]


def _nothing(_: bytes) -> bytes:
    return b""


@pytest.mark.parametrize("damage", [_cut, _flipped, _longer, _other_mac, _other_format, _head_alone, _nothing])
def test_what_is_damaged_is_not_believed_and_is_written_anew(cache: Entries, damage: object) -> None:
    cache.put(NAME, b"some text")
    file_of(cache).write_bytes(damage(file_of(cache).read_bytes()))  # type: ignore[operator]
    assert cache.find(NAME) is None
    assert cache.kept.counters.refused == 1
    cache.put(NAME, b"some text")
    assert cache.find(NAME) == b"some text"


def test_an_entry_under_another_name_or_key_is_not_believed(cache: Entries) -> None:
    cache.put(NAME, b"text")
    os.link(file_of(cache), file_of(cache, "b" * 64))
    assert cache.find("b" * 64) is None, "moved to another name"
    assert Entries(cache.folder, bytes(32)).find(NAME) is None, "written under another key"
    assert cache.find(NAME) == b"text"


def test_links_pipes_folders_and_what_others_can_write_are_not_followed(cache: Entries, tmp_path: Path) -> None:
    cache.put(NAME, b"text")
    file = file_of(cache)
    moved = file.rename(tmp_path / "elsewhere")
    file.symlink_to(moved)
    assert cache.find(NAME) is None, "a link"
    file.unlink()
    os.mkfifo(file)
    assert cache.find(NAME) is None, "a pipe, which nobody writes to: it must not hang"
    file.unlink()
    file.mkdir()
    assert cache.find(NAME) is None, "a folder"
    file.rmdir()
    moved.rename(file)
    assert cache.find(NAME) == b"text"
    file.chmod(0o622)
    assert cache.find(NAME) is None, "others may write to it"


def test_the_least_recently_used_go_first(cache: Entries) -> None:
    cache.max_bytes = 3 * (len(MAGIC) + 32 + 100)
    now = time.time()
    for number in range(3):
        cache.put(str(number) * 64, bytes(100))
        os.utime(file_of(cache, str(number) * 64), (now - 5000 + number, now - 5000 + number))
    assert cache.find("0" * 64) is not None, "used just now: it is the newest"
    cache.put("3" * 64, bytes(100))
    assert [cache.find(str(number) * 64) is not None for number in range(4)] == [True, False, True, True]
    assert cache.kept.counters.evictions == 1
    assert not cache.put("4" * 64, bytes(cache.max_bytes)), "larger than all that there may be"
    cache.max_entries = 1
    cache.evict()
    assert cache.size()[0] == 1


def test_a_folder_that_cannot_be_written_is_read(cache: Entries, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.put(NAME, b"text")

    def refuse(*_: object, **__: object) -> int:
        raise PermissionError(13, "Permission denied")

    real = os.open
    monkeypatch.setattr(os, "open", lambda path, flags, *_: refuse() if flags & os.O_CREAT else real(path, flags))
    assert not cache.put("b" * 64, b"text")
    assert cache.find(NAME) == b"text"
    cache.kept.save()


def test_a_full_disk_leaves_nothing_behind(cache: Entries, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert not cache.put(NAME, b"text")
    assert list(Path(cache.folder).iterdir()) == []


# -- processes ------------------------------------------------------------------------------------

_WRITER = """
import sys
from vesper.cache.entries import Entries
cache = Entries(sys.argv[1], bytes(range(32)))
print("ready", flush=True)
for number in range(int(sys.argv[2])):
    body = bytes([number % 251]) * 40_000
    cache.put("a" * 64, body)
    found = cache.find("a" * 64)
    assert found is not None and len(found) == 40_000 and len(set(found)) == 1
"""


def _writer(cache: Entries, rounds: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", _WRITER, cache.folder, str(rounds)], stdout=subprocess.PIPE)


def test_processes_that_write_the_same_entry_at_once_never_see_half_of_one(cache: Entries) -> None:
    writers = [_writer(cache, 60) for _ in range(3)]
    for each in writers:
        each.communicate(timeout=60)
    assert [each.returncode for each in writers] == [0, 0, 0]
    assert cache.kept.total()["refused"] == 0
    assert cache.kept.total()["writes"] == 180, "what each process counted is added up"


def test_a_writer_that_is_killed_leaves_an_old_entry_or_a_new_one(cache: Entries) -> None:
    for number in range(6):
        writer = _writer(cache, 100_000)
        assert writer.stdout is not None
        writer.stdout.readline()
        time.sleep(0.003 * number)
        writer.kill()
        writer.wait()
        writer.stdout.close()
        found = cache.find(NAME)
        assert found is None or (len(found) == 40_000 and len(set(found)) == 1)
    assert cache.kept.counters.refused == 0
    for each in Path(cache.folder).glob(".*"):
        os.utime(each, (1, 1))
    cache.evict()
    assert not list(Path(cache.folder).glob(".*")), "what was half written is swept away once it is old"


# -- whose folder it is ---------------------------------------------------------------------------


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("VESPER_CACHE", "VESPER_NO_CACHE", "VESPER_CACHE_KEY", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(module, "_opened", {})
    return tmp_path


def test_the_folder_and_the_key_are_the_users_own(home: Path) -> None:
    cache = open_entries()
    assert cache.folder == str(home / ".cache" / "vesper" / "nodes")
    assert oct(Path(cache.folder).stat().st_mode & 0o777) == "0o700"
    key = home / ".config" / "vesper" / "cache.key"
    assert oct(key.stat().st_mode & 0o777) == "0o600"
    assert read_key(key_name()) == key.read_bytes(), "made once"


def test_a_folder_that_was_copied_from_elsewhere_counts_as_empty(home: Path) -> None:
    open_entries().put(NAME, b"text")
    (home / ".config" / "vesper" / "cache.key").unlink()
    assert open_entries().find(NAME) is None


@pytest.mark.parametrize("what", ["folder", "nodes", "key", "key read", "short key", "linked key", "file", "bound"])
def test_what_others_could_have_changed_is_refused_with_what_to_do(
    home: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_entries()
    folder, key = home / ".cache" / "vesper", home / ".config" / "vesper" / "cache.key"
    match what:
        case "folder":
            folder.chmod(0o777)
            message = "others may write to .*chmod go-w"
        case "nodes":
            (folder / "nodes").chmod(0o770)
            message = "others may write"
        case "key":
            key.chmod(0o666)
            message = "not yours alone"
        case "key read":
            key.chmod(0o644)
            if key.stat().st_uid == 0:  # one of root is for all to read: an image is made so
                os.chown(key, 12345, 12345)
                monkeypatch.setattr(os, "geteuid", lambda: 12345)
            message = "others may read the key"
        case "short key":
            key.write_bytes(b"short")
            message = "is no key; remove it"
        case "linked key":
            key.rename(home / "key")
            key.symlink_to(home / "key")
            message = "cannot be read"
        case "file":
            (folder / "nodes").rmdir()
            folder.rmdir()
            folder.write_text("")
            message = "is no folder"
        case _:
            monkeypatch.setenv("VESPER_CACHE_BYTES", "many")
            message = "no number of bytes"
    with pytest.raises(NoCache, match=message):
        open_entries()
    with pytest.warns(RuntimeWarning, match="without a cache"):
        assert entries() is None
    assert entries() is None, "said once"


def test_a_folder_of_another_user_is_refused(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = home / ".cache" / "vesper"
    open_entries()
    owner = folder.stat().st_uid
    if owner == 0:
        os.chown(folder, 12345, 12345)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    with pytest.raises(NoCache, match="belongs to another user"):
        open_entries()


@pytest.mark.parametrize("name, value", [("VESPER_CACHE", "off"), ("VESPER_NO_CACHE", "1")])
def test_none_is_silent_where_none_is_wanted(
    home: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str, recwarn: pytest.WarningsRecorder
) -> None:
    monkeypatch.setenv(name, value)
    assert entries() is None
    assert not recwarn.list
    assert not (home / ".cache").exists()


def test_without_a_home_there_is_no_cache(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOME")
    with pytest.raises(NoCache, match="set VESPER_CACHE"):
        open_entries()


# -- counters -------------------------------------------------------------------------------------


def test_counters_of_processes_are_added_up_and_the_file_stays_short(cache: Entries) -> None:
    file = Path(cache.kept.file)
    file.write_bytes(b"1 2 3 4 5\n" * 10_000 + b"no numbers\n1 2\n9999999999999999999999 0 0 0 0\n")
    cache.kept.counters.hits = 7
    expected = {"hits": 10_007, "misses": 20_000, "evictions": 30_000, "refused": 40_000, "writes": 50_000}
    assert cache.kept.total() == expected
    assert file.stat().st_size < 100
    assert cache.kept.total() == expected
    cache.kept.save()
    assert cache.kept.total() == expected
    cache.clear()
    assert set(cache.kept.total().values()) == {0}
