"""Who owns a run, and whether that one still lives."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from vesper.journal.journal import open_journal
from vesper.journal.owner import is_dead, this_owner
from vesper.storage.durability import is_volatile


def place() -> str:
    """Return the last part of the names of this machine's processes."""
    return this_owner().rpartition(":")[2]


def started(pid: int) -> int:
    stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    return int(stat[stat.rindex(")") + 2 :].split()[19])


def test_this_process_lives() -> None:
    mine = this_owner()
    host, pid, start, place = mine.rsplit(":", 3)
    assert (host != "", int(pid), int(start) > 0, len(place)) == (True, os.getpid(), True, 12)
    assert not is_dead(mine)
    assert this_owner() == mine


def test_a_process_that_ended_is_dead_also_while_nobody_waits_for_it() -> None:
    process = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    name = f"host:{process.pid}:{started(process.pid)}:{place()}"
    assert not is_dead(name)
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert is_dead(name)  # a zombie
    assert process.stdin is not None
    process.stdin.close()
    process.wait()
    assert is_dead(name)


def test_a_pid_that_was_used_again_is_not_its_earlier_process() -> None:
    host, pid, start, place = this_owner().rsplit(":", 3)
    assert is_dead(f"{host}:{pid}:{int(start) + 1}:{place}")


@pytest.mark.parametrize(
    "name",
    ["", "x", "host:1", "host:1:1:000000000000", "a:b:c:d", ":::", "host:-1:1:", "host:0:5:", "host:99999999999:5:"],
)
def test_whoever_cannot_be_looked_up_is_not_called_dead(name: str) -> None:
    assert not is_dead(name)
    assert not is_dead(name + place())


def test_a_process_of_another_machine_is_not_called_dead() -> None:
    host, _, start, _ = this_owner().rsplit(":", 3)
    assert not is_dead(f"{host}:4194000:{start}:0123456789ab")


# -- disks that vanish ----------------------------------------------------------------------------

_MOUNTS = """\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:26 / /mem rw - tmpfs tmpfs rw
31 22 0:27 / /layers/with\\040blank rw - overlay overlay rw,lowerdir=/x
32 30 254:1 / /mem/disk rw - xfs /dev/vdb rw
"""


@pytest.mark.parametrize(
    "path,why",
    [
        ("/srv/journal.db", None),
        ("/tmp/x/journal.db", "temporary files"),
        ("/dev/shm/journal.db", "temporary files"),
        ("/mem/journal.db", "/mem is kept in memory (tmpfs)"),
        ("/mem/disk/journal.db", None),
        ("/memory/journal.db", None),
        ("/layers/with blank/journal.db", "belongs to a container and ends with it (overlay)"),
    ],
)
def test_where_a_journal_would_vanish(
    path: str, why: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    real = Path.read_text

    def read_text(self: Path, encoding: str | None = None, errors: str | None = None) -> str:
        return _MOUNTS if str(self) == "/proc/self/mountinfo" else real(self, encoding, errors)

    monkeypatch.setattr(Path, "read_text", read_text)
    found = is_volatile(path)
    assert found is None if why is None else why in (found or "")


def test_a_journal_says_so_of_itself(tmp_path: Path) -> None:
    assert "temporary files" in (open_journal("sqlite:/dev/shm/none/journal.db").volatile_reason or "")


def test_a_link_into_a_folder_that_vanishes(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("/dev/shm")
    assert is_volatile(link / "journal.db")
