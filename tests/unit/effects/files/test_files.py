"""Files below a root: read, written whole, appended to; what is outside is never touched."""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.unit.effects.ask_of import ask_of, failure, table
from vesper._direct import file_performer
from vesper.effects.files.settings import FileSettings
from vesper.effects.performer import EffectFailed
from vesper.effects.settings import ConfigError
from vesper.values.types import BYTES, JSON, STRING, Type

SECRET = b"outside: nobody may see this"


class _Node:
    """Asks as a node does."""

    def __init__(self, path: Path, **values: object) -> None:
        found = FileSettings.from_table("exports", table("files.exports", path=str(path), **values))
        self.performer = file_performer([found], None)

    def read(self, path: str, gives: Type = STRING, timeout: float | None = None) -> object:
        return self.performer.perform(ask_of("file_read", {"root": "exports"}, {"path": path}, gives, timeout=timeout))

    def write(self, path: str, content: str | bytes) -> object:
        arguments: dict[str, Any] = {"path": path, "content": content}
        return self.performer.perform(ask_of("file_write", {"root": "exports"}, arguments, key="k"))

    def append(self, path: str, content: str | bytes, timeout: float | None = None) -> object:
        arguments: dict[str, Any] = {"path": path, "content": content}
        return self.performer.perform(ask_of("file_append", {"root": "exports"}, arguments, timeout=timeout))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    found = tmp_path / "root"
    found.mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_bytes(SECRET)
    return found


@pytest.fixture
def outside(root: Path) -> Iterator[Path]:
    """A folder beside the root; whatever a test did, it is as it was."""
    found = root.parent / "outside"
    yield found
    assert [(each.name, each.read_bytes()) for each in found.iterdir()] == [("secret.txt", SECRET)]


@pytest.fixture
def node(root: Path) -> _Node:
    return _Node(root)


# -- what works -----------------------------------------------------------------------------------


def test_write_and_read(node: _Node, root: Path) -> None:
    assert node.write("2026/11/report.txt", "Grüße\r\n") == 9
    assert (root / "2026/11/report.txt").read_bytes() == "Grüße\r\n".encode()
    assert node.read("2026/11/report.txt") == "Grüße\r\n"
    assert node.read("2026/11/report.txt", BYTES) == "Grüße\r\n".encode()
    assert node.write("2026/11/report.txt", b"") == 0
    assert node.read("2026/11/report.txt") == ""
    assert sorted(each.name for each in (root / "2026/11").iterdir()) == ["report.txt"]


def test_json(node: _Node) -> None:
    node.write("a.json", ' {"b": [1, 1.50, null], "a": true}\n')
    assert node.read("a.json", JSON) == {"a": True, "b": [1, Decimal("1.50"), None]}
    node.write("bad.json", '{"a": NaN}')
    failed = failure("file_read", lambda: node.read("bad.json", JSON))
    assert (failed.code, failed.message) == ("bad_response", "the file `bad.json` of `exports` is no JSON: malformed")


def test_append(node: _Node, root: Path) -> None:
    assert node.append("log/today.csv", "a;b\n") == 4
    assert node.append("log/today.csv", b"\xff\n") == 2
    assert (root / "log/today.csv").read_bytes() == b"a;b\n\xff\n"


def test_names_that_only_look_dangerous(node: _Node) -> None:
    for name in (
        "..a",
        "a..",
        "...",
        "．．",
        "~",
        "-rf",
        "%2e%2e",
        "a:b",
        "con",
        "é",
        "e\u0301",
        "😀",
        " ",
        "$(x)",
        "*",
    ):
        node.write(f"odd/{name}", name)
        assert node.read(f"odd/{name}") == name


def test_a_replaced_file_keeps_its_permissions(node: _Node, root: Path) -> None:
    node.write("private.txt", "1")
    (root / "private.txt").chmod(0o600)
    node.write("private.txt", "2")
    assert stat.S_IMODE((root / "private.txt").stat().st_mode) == 0o600


# -- what fails -----------------------------------------------------------------------------------


def test_a_file_that_is_missing(node: _Node) -> None:
    node.write("a.txt", "x")
    for path in ("b.txt", "no/such/b.txt", "a.txt/b"):
        failed = failure("file_read", lambda path=path: node.read(path))  # type: ignore[misc]
        assert (failed.code, failed.message) == ("not_found", f"the file `{path}` of `exports` does not exist")
    assert failure("file_write", lambda: node.write("a.txt/b", "x")).code == "unavailable"
    assert failure("file_append", lambda: node.append("a.txt/b", "x")).code == "unavailable"


def test_a_file_that_is_no_text(node: _Node) -> None:
    node.write("a.bin", b"ok \xff")
    failed = failure("file_read", lambda: node.read("a.bin"))
    assert failed.code == "bad_response"
    assert "byte 3; `returns: bytes` reads it as it is" in failed.message


def test_sizes_are_bounded(root: Path) -> None:
    node = _Node(root, max_bytes="16 B")
    assert node.write("a", "x" * 16) == 16
    assert node.read("a") == "x" * 16
    assert failure("file_write", lambda: node.write("a", "x" * 17)).code == "invalid_argument"
    assert failure("file_append", lambda: node.append("a", "x")).code == "invalid_argument"
    assert node.read("a") == "x" * 16
    (root / "large").write_bytes(b"x" * 17)
    assert failure("file_read", lambda: node.read("large")).code == "bad_response"
    with (root / "endless").open("wb") as sparse:
        sparse.truncate(1 << 40)
    assert failure("file_read", lambda: node.read("endless", BYTES)).code == "bad_response"


def test_a_root_that_is_read_only(root: Path) -> None:
    (root / "a").write_text("x")
    node = _Node(root, read_only=True)
    assert node.read("a") == "x"
    assert failure("file_write", lambda: node.write("a", "y")).message == "`exports` is read-only"
    assert failure("file_append", lambda: node.append("a", "y")).message == "`exports` is read-only"
    assert node.read("a") == "x"


def test_a_root_that_goes_away(node: _Node, root: Path) -> None:
    root.rmdir()
    failed = failure("file_read", lambda: node.read("a"))
    assert (failed.code, "No such file" in failed.message) == ("unavailable", True)
    assert failure("file_write", lambda: node.write("a", "x")).code == "unavailable"
    assert not root.exists()


def test_no_root_of_that_name() -> None:
    ask = ask_of("file_read", {"root": "other"}, {"path": "a"}, STRING)
    failed = failure("file_read", lambda: file_performer([], None).perform(ask))
    assert failed.message == "no root `other` is configured: add [files.other] to vesper.toml"


# -- tricks ---------------------------------------------------------------------------------------

TRICKS = [
    "",
    "/",
    ".",
    "..",
    "../outside/secret.txt",
    "../../etc/passwd",
    "a/../../outside/secret.txt",
    "./a",
    "a/./b",
    "a/..",
    "/etc/passwd",
    "//etc/passwd",
    "a//b",
    "a/",
    "a/b/",
    "..\\outside\\secret.txt",
    "a\\b",
    "a\0b",
    "secret.txt\0.png",
    "a\nb",
    "a\x7f",
    "../root/../outside/secret.txt",
    "../outside",
    "x" * 256,
    "é" * 128,
    "a/" * 100 + "b",
    "x/" * 63 + "y" * 5000,
    "/".join(["x" * 200] * 25),
    ".vesper-0123456789abcdef.tmp",
    "a/.vesper-x/b",
    "/proc/self/environ",
    "/dev/stdin",
]


@pytest.mark.parametrize("path", TRICKS, ids=lambda path: repr(path)[:30])
def test_a_path_that_is_a_trick_is_refused_before_anything_is_opened(path: str, root: Path, outside: Path) -> None:
    node = _Node(root)
    for effect, ask in (
        ("file_read", lambda: node.read(path)),
        ("file_write", lambda: node.write(path, "x")),
        ("file_append", lambda: node.append(path, "x")),
    ):
        failed = failure(effect, ask)
        assert failed.code == "invalid_argument"
        assert failed.message.startswith("the path `")
        assert len(failed.message) < 600
        assert "\0" not in failed.message
    assert list(root.iterdir()) == []


def _place(root: Path, outside: Path, trick: str) -> str:
    """Puts something into the root that leads elsewhere; the path to ask for."""
    match trick:
        case "link to a file":
            (root / "a").symlink_to(outside / "secret.txt")
        case "relative link":
            (root / "a").symlink_to("../outside/secret.txt")
        case "link to a folder":
            (root / "f").symlink_to(outside)
            return "f/secret.txt"
        case "link inside the root":
            (root / "real").write_text("x")
            (root / "a").symlink_to("real")
        case "link to the root":
            (root / "f").symlink_to(".")
            return "f/f/f/a"
        case "link to nothing":
            (root / "a").symlink_to(outside / "new.txt")
        case "folder link to nothing":
            (root / "f").symlink_to(outside / "new")
            return "f/a"
        case "link to itself":
            (root / "a").symlink_to("a")
        case "link to /proc":
            (root / "f").symlink_to("/proc/self/root")
            return "f/etc/passwd"
        case "hard link":
            os.link(outside / "secret.txt", root / "a")
        case "fifo":
            os.mkfifo(root / "a")
        case "socket":
            with socket.socket(socket.AF_UNIX) as listener:
                here = Path.cwd()
                os.chdir(root)  # the path of a socket may have about a hundred bytes
                try:
                    listener.bind("a")
                finally:
                    os.chdir(here)
        case "device":
            try:
                os.mknod(root / "a", 0o600 | stat.S_IFCHR, os.makedev(1, 5))  # /dev/zero, which never ends
            except PermissionError:
                os.mkfifo(root / "a")  # only root makes devices
        case "folder":
            (root / "a").mkdir()
        case _:
            raise AssertionError(trick)
    return "a"


PLACED = [
    "link to a file",
    "relative link",
    "link to a folder",
    "link inside the root",
    "link to the root",
    "link to nothing",
    "folder link to nothing",
    "link to itself",
    "link to /proc",
    "hard link",
    "fifo",
    "socket",
    "device",
    "folder",
]


@pytest.mark.parametrize("trick", PLACED)
def test_nothing_that_leads_elsewhere_is_followed(trick: str, node: _Node, root: Path, outside: Path) -> None:
    path = _place(root, outside, trick)
    before = sorted(each.name for each in root.iterdir())
    for effect, ask in (
        ("file_read", lambda: node.read(path, BYTES)),
        ("file_write", lambda: node.write(path, "x")),
        ("file_append", lambda: node.append(path, "x")),
    ):
        failed = failure(effect, ask)
        assert failed.code == "invalid_argument", failed.message
        assert not failed.may_have_happened
    assert sorted(each.name for each in root.iterdir()) == before


def test_hard_links_may_be_allowed(root: Path, outside: Path) -> None:
    (root / "a").write_text("x")
    os.link(root / "a", root / "b")
    node = _Node(root, hard_links=True)
    assert node.read("b") == "x"
    node.write("b", "y")  # replaces the name, not what the other name means
    assert (node.read("a"), node.read("b")) == ("x", "y")


def test_a_folder_that_is_swapped_for_a_link(node: _Node, root: Path, outside: Path) -> None:
    """A folder and a link to the outside take turns at one name: a read meets the folder, nothing, or is refused."""
    (root / "real").mkdir()
    (root / "real" / "secret.txt").write_text("inside")
    (root / "link").symlink_to(outside)

    def swap() -> None:
        for other in ("real", "link"):
            (root / other).rename(root / "x")
            time.sleep(0.0005)
            (root / "x").rename(root / other)

    seen = _while_swapping(swap, lambda _: node.read("x/secret.txt"), {"inside", "invalid_argument"})
    assert seen <= {"inside", "not_found", "invalid_argument"}


def test_a_file_that_is_swapped_for_a_link(node: _Node, root: Path, outside: Path) -> None:
    def swap() -> None:
        (root / "new-link").symlink_to(outside / "secret.txt")
        (root / "new-link").rename(root / "x")
        time.sleep(0.0005)
        (root / "new-file").write_text("inside")
        (root / "new-file").rename(root / "x")
        time.sleep(0.0005)

    def use(number: int) -> object:
        match number % 3:
            case 0:
                return node.read("x")
            case 1:
                return node.append("x", "+")
            case _:
                return node.write("x", "written")

    node.write("x", "written")
    seen = _while_swapping(swap, use, {"inside", "written", "invalid_argument"})
    assert all(str(each).strip("+") in ("inside", "written", "invalid_argument", "1", "7") for each in seen), seen


def _while_swapping(swap: Callable[[], None], use: Callable[[int], object], expected: set[object]) -> set[object]:
    """What comes of many uses while another thread swaps; of so many that all that is expected was met."""
    is_over = threading.Event()

    def go_on() -> None:
        while not is_over.is_set():
            swap()

    swapper = threading.Thread(target=go_on)
    swapper.start()
    seen: set[object] = set()
    try:
        number, give_up = 0, time.monotonic() + 30
        while (number < 600 or not expected <= seen) and time.monotonic() < give_up:
            number += 1
            try:
                seen.add(use(number))
            except EffectFailed as failed:
                seen.add(failed.code)
    finally:
        is_over.set()
        swapper.join()
    assert expected <= seen
    return seen


# -- crashes, neighbours, time --------------------------------------------------------------------


@contextmanager
def _longest_file(size: int) -> Iterator[None]:
    """Let the operating system refuse to make a file longer than this."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(node: _Node, root: Path) -> None:
    node.write("a", "old")
    with _longest_file(1):
        failed = failure("file_write", lambda: node.write("a", "new"))
    assert (failed.code, failed.may_have_happened) == ("unavailable", False)
    assert "File too large" in failed.message
    assert [(each.name, each.read_text()) for each in root.iterdir()] == [("a", "old")]


def test_an_append_that_runs_out_of_space_takes_its_half_away(node: _Node, root: Path) -> None:
    node.append("a", "old\n")
    with _longest_file(8):
        failed = failure("file_append", lambda: node.append("a", "new line\n"))
    assert (failed.code, failed.may_have_happened) == ("unavailable", False)
    assert (root / "a").read_text() == "old\n"


_WRITES = """
import sys
from pathlib import Path
from tests.unit.effects.files.test_files import _Node

node = _Node(Path(sys.argv[1]))
node.write("f/a", "new" * 1000)
node.append("f/b", "x")
node.append("f/b", "x")
careless = _Node(Path(sys.argv[1]), sync=False)
careless.write("g/a", "x")
careless.append("g/b", "x")
"""


def _run_writes(root: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", _WRITES, str(root)],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[4],
        env={**os.environ, **environment},
    )


@pytest.mark.parametrize(
    "place, content", [("file.created", "old"), ("file.written", "old"), ("file.renamed", "new" * 1000)]
)
def test_a_process_that_dies_leaves_the_old_or_the_new(place: str, content: str, root: Path) -> None:
    (root / "f").mkdir()
    (root / "f/a").write_text("old")
    assert _run_writes(root, VESPER_DIE_AT=place).returncode == -signal.SIGKILL
    assert (root / "f/a").read_text() == content
    assert all(each.name == "a" or each.name.startswith(".vesper-") for each in (root / "f").iterdir())


_SYNC_LOG = r"""
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
int fsync(int file) {
    struct stat found;
    FILE *log = fopen(getenv("SYNC_LOG"), "a");
    fstat(file, &found);
    fprintf(log, "%lu\n", (unsigned long)found.st_ino);
    return fclose(log);
}
"""


def test_what_is_written_is_synced_with_its_folder(root: Path, tmp_path: Path) -> None:
    (tmp_path / "log.c").write_text(_SYNC_LOG)
    library, log = tmp_path / "log.so", tmp_path / "log.txt"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, tmp_path / "log.c"], check=True)
    done = _run_writes(root, LD_PRELOAD=str(library), SYNC_LOG=str(log))
    assert done.returncode == 0, done.stderr
    # The entry of the new folder, the file and its entry; a new file that was appended to, then an old one.
    synced = [".", "f/a", "f", "f/b", "f", "f/b"]
    assert log.read_text().split() == [str((root / name).stat().st_ino) for name in synced]


def _append_lines(root: Path, name: str) -> None:
    node = _Node(root, sync=False)
    for number in range(50):
        node.append("log", f"{name} {number} {'x' * 5000}\n")


def test_appends_of_several_processes_do_not_mix(root: Path) -> None:
    fork = multiprocessing.get_context("fork")
    children = [fork.Process(target=_append_lines, args=(root, name)) for name in "abc"]
    for child in children:
        child.start()
    for child in children:
        child.join()
    lines = (root / "log").read_text().splitlines()
    assert len(lines) == 150
    for name in "abc":
        own = [line.split() for line in lines if line.startswith(name)]
        assert [(int(each[1]), len(each[2])) for each in own] == [(number, 5000) for number in range(50)]


def test_a_file_that_somebody_else_locks_is_a_timeout(node: _Node, root: Path) -> None:
    import fcntl

    node.append("a", "x")
    with (root / "a").open("rb") as locked:
        fcntl.flock(locked, fcntl.LOCK_EX)
        failed = failure("file_append", lambda: node.append("a", "y", timeout=0.05))
        assert (failed.code, failed.may_have_happened) == ("timeout", False)
    assert node.append("a", "z", timeout=30) == 1
    assert node.read("a") == "xz"


def _descriptors(folder: Path) -> list[str]:
    """What this process has open below this folder; what else is open is the business of other tests' threads."""
    found = []
    for each in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # closed by its owner since, or the one that the folder is read with
            found.append(str(each.readlink()))
    return sorted(each for each in found if Path(each).is_relative_to(folder))


def test_no_descriptor_is_left_open(root: Path, outside: Path) -> None:
    node = _Node(root, max_bytes="100 B")
    node.write("f/a", "x")
    (root / "link").symlink_to(outside)
    with (root / "f/a").open() as opened:
        assert _descriptors(root.parent) == [opened.name]
    for _ in range(20):
        node.read("f/a")
        node.append("f/a", "y")
        node.write("f/b", "y")
        for path in ("f/none", "link/secret.txt", "f", "f/a/b"):
            with pytest.raises(EffectFailed):
                node.read(path)
            with pytest.raises(EffectFailed):
                node.append(f"{path}/x/y" if path == "f/none" else path, "x" * 101)
    assert _descriptors(root.parent) == []


# -- settings -------------------------------------------------------------------------------------


def test_settings_that_cannot_be_used(tmp_path: Path) -> None:
    def refused(**values: object) -> str:
        with pytest.raises(ConfigError) as error:
            FileSettings.from_table("exports", table("files.exports", **values))
        return str(error.value)

    assert refused() == "vesper.toml: files.exports: `path` is missing: a text"
    assert "an absolute path is expected, not `exports`" in refused(path="exports")
    assert "there is no folder" in refused(path=str(tmp_path / "none"))
    assert "the root of the file system" in refused(path="/")
    assert "no such setting; did you mean `read_only`?" in refused(path=str(tmp_path), readonly=True)
    found = FileSettings.from_table("x", table("files.x", path="."), base=tmp_path)
    assert (found.path, found.sync, found.read_only, found.max_bytes) == (tmp_path, True, False, 10_000_000)
