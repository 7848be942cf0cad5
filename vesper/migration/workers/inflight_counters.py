"""Counters of the direct engine's running executions, readable by other processes after a crash.

A node without effects writes no journal, so that a process that the engine crashes leaves no START without END. So each
process maps a small file into memory with two counters per node: executions begun, and executions ended. Mapped memory
survives the process, whatever ended it. A dead process's file with more begun than ended means that the engine may have
ended the process.

The file, in the byte order of the machine (`<owner>.flights`; docs/adr/0017):

    0     "VSPFLT01"
    8     slots (u32), bytes of the owner's name (u32), the name
    1024  slots of 256 bytes: began (u64), ended (u64), bytes of the name (u16), `node\\0epoch`; two for each node

The owner holds a lock on its file throughout its life, which the kernel releases on its death. Space is allocated when
the file is made: a write to memory mapped from a full disk would end the process.
"""

from __future__ import annotations

import fcntl
import logging
import mmap
import os
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias
from weakref import WeakSet

from vesper.engines.direct_engine import Flight
from vesper.journal.owner import is_dead, this_owner
from vesper.migration.control.state import LOST_RUNS, RunLost
from vesper.migration.stores.store import NodeKey
from vesper.storage.after_fork import Order, register
from vesper.storage.file_access import make_private_folder

_log = logging.getLogger("vesper.migration")
_MAGIC = b"VSPFLT01"
_HEAD = struct.Struct("=8sII")
_NAME = struct.Struct("=H")
_FIRST: Final = 1024
_SLOT: Final = 256
_NAME_AT = 16
_MAX_NAME_BYTES = _SLOT - _NAME_AT - _NAME.size
SLOTS = 2048
"""Number of slots, two per node."""
SIZE = _FIRST + SLOTS * _SLOT
_MAX_FILES = 10_000
_ENDING, _CLAIMED = ".flights", ".claimed"
_THREAD = "~thread"
"""Suffix of the epoch in the name of a slot: the counters of the shadow thread."""
_ALL: WeakSet[Flights] = WeakSet()

CounterPlace: TypeAlias = tuple[memoryview, int]
"""Counters, and the index of the first of two."""


class Slot:
    """The counters of a node: two for Python threads, two for one without the GIL. Rust increments all of them."""

    def __init__(self, own: CounterPlace, other: CounterPlace) -> None:
        self.flights = (Flight(*own), Flight(*other))
        self.enter = self.flights[0].enter
        self.leave = self.flights[0].leave

    def bind(self, own: CounterPlace, other: CounterPlace) -> None:
        """Switch to counters at other places."""
        for flight, place in zip(self.flights, (own, other), strict=True):
            flight.bind(*place)

    @staticmethod
    def unshared() -> Slot:
        """Return a slot whose counters no other process reads."""
        return Slot(_private_counters(), _private_counters())


class Flights:
    """The counter file of this process. After a fork the child gets its own, and its slots count there."""

    def __init__(self, folder: Path) -> None:
        """Raises `OSError` where the file cannot be made."""
        self._folder = folder
        self._file = -1
        self._slots: dict[NodeKey, Slot] = {}
        self._open()
        _ALL.add(self)

    @staticmethod
    def open(folder: Path) -> Flights:
        return Flights(folder)

    def slot(self, key: NodeKey) -> Slot:
        """Return the counters of a node, always the same object."""
        with self._lock:
            found = self._slots.get(key)
            if found is None:
                found = self._slots[key] = Slot(*self._places(key, len(self._slots)))
            return found

    def close(self) -> None:
        """Remove the file: an orderly end loses nothing. Counting must have stopped."""
        with self._lock:
            if self._file >= 0:
                self._path.unlink(missing_ok=True)
                os.close(self._file)
                self._file = -1

    def _open(self) -> None:
        self._lock = threading.Lock()
        make_private_folder(self._folder)
        owner = this_owner()
        # The id tells two objects of one process apart.
        self._path = self._folder / f"{owner}@{id(self):x}{_ENDING}"
        making = self._path.with_suffix(".making")
        file = os.open(making, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.posix_fallocate(file, 0, SIZE)
            name = owner.encode()
            os.pwrite(file, _HEAD.pack(_MAGIC, SLOTS, len(name)) + name, 0)
            self._map = mmap.mmap(file, SIZE)
            making.rename(self._path)  # visible only once it is complete and locked
        except OSError:
            os.close(file)
            making.unlink(missing_ok=True)
            raise
        self._file = file
        self._counters = memoryview(self._map).cast("Q")

    def _places(self, key: NodeKey, number: int) -> tuple[CounterPlace, CounterPlace]:
        return self._place(key, 2 * number), self._place(NodeKey(key.node, f"{key.epoch}{_THREAD}"), 2 * number + 1)

    def _place(self, key: NodeKey, number: int) -> CounterPlace:
        name = f"{key.node}\0{key.epoch}".encode()
        if number >= SLOTS or len(name) > _MAX_NAME_BYTES or self._file < 0:
            _log.warning("executions of %s under way are not counted: the file of flights has no place", key.node)
            return _private_counters()
        start = _FIRST + number * _SLOT
        self._map[start + _NAME_AT : start + _NAME_AT + _NAME.size + len(name)] = _NAME.pack(len(name)) + name
        return self._counters, start // 8

    def forked(self) -> None:
        """Replace the file after a fork: the mapped one is the parent's."""
        if self._file < 0:
            return  # closed: nothing counts any more
        os.close(self._file)
        for slot in self._slots.values():
            slot.bind(_private_counters(), _private_counters())
        self._counters.release()
        self._map.close()
        try:
            self._open()
        except OSError as error:
            self._file = -1
            _log.error("executions of the direct engine under way are not counted in this process: %s", error)
            return
        for number, (key, slot) in enumerate(self._slots.items()):
            slot.bind(*self._places(key, number))


def _private_counters() -> CounterPlace:
    """Return counters that no other process reads."""
    return memoryview(bytearray(16)).cast("Q"), 0


def _after_fork() -> None:
    for each in list(_ALL):
        each.forked()


register(order=Order.WORKERS, after_in_child=_after_fork)


# -- what dead processes left ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LostFlights:
    """Executions of a node that were running when a process died."""

    key: NodeKey
    owner: str
    count: int

    def events(self) -> list[RunLost]:
        """Return the events for the controller.

        Their names do not change when they are reported again, so that they count once. At most as many are returned as
        latch a node.
        """
        return [RunLost(f"flight {number + 1} of {self.owner}") for number in range(min(self.count, LOST_RUNS))]


def claim_lost(folder: Path, tell: Callable[[LostFlights], None] | None = None) -> list[LostFlights]:
    """Return and delete the counters of dead processes; one process alone claims each file.

    If `tell` raises, the claimed file stays, and the next scan of this process finds it again; if this process dies
    too, another one does.
    """
    found: list[LostFlights] = []
    for path in _leftover_files(folder):
        claimed = _claim(path)
        if claimed is None:
            continue
        try:
            flights = _read(claimed)
        except (OSError, ValueError) as error:
            _set_aside(claimed, error)
            continue
        for each in flights:
            _log.error(
                "%d executions of %s under the direct engine were under way when the process %s died",
                each.count, each.key.node, each.owner,
            )  # fmt: skip
            if tell is not None:
                tell(each)
        claimed.unlink(missing_ok=True)
        found += flights
    return found


def _leftover_files(folder: Path) -> Iterator[Path]:
    """Yield files of dead processes, and files claimed by one of them or here."""
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry, _ in zip(entries, range(_MAX_FILES), strict=False)]
    except FileNotFoundError:
        return
    for name in sorted(names):
        if name.endswith(_ENDING) and _is_leftover(folder / name, _owner(name)):
            yield folder / name
        elif name.endswith(_CLAIMED):
            claimer = name.removesuffix(_CLAIMED).rpartition("+")[2]
            if claimer == this_owner() or is_dead(claimer):
                yield folder / name


def _owner(name: str) -> str:
    return name.partition(_ENDING)[0].rpartition("@")[0]


def _is_leftover(path: Path, owner: str) -> bool:
    if owner == this_owner():
        return False
    if is_dead(owner):
        return True
    # From another container or boot: the lock decides, where the kernel is the same.
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(file)
    return True


def _claim(path: Path) -> Path | None:
    claimed = path.with_name(f"{path.name.partition('+')[0].removesuffix(_CLAIMED)}+{this_owner()}{_CLAIMED}")
    if claimed == path:
        return path
    try:
        return path.rename(claimed)
    except FileNotFoundError:
        return None  # another process was faster


def _read(path: Path) -> list[LostFlights]:
    if path.is_symlink() or not path.is_file():
        raise ValueError("it is no file")
    if (size := path.stat().st_size) != SIZE:
        raise ValueError(f"it has {size} bytes, and a file of flights has {SIZE}")
    data = path.read_bytes()
    magic, slots, length = _HEAD.unpack_from(data)
    if magic != _MAGIC or slots != SLOTS or length > _FIRST - _HEAD.size:
        raise ValueError("it is no file of flights, or one of another version of Vesper")
    owner = data[_HEAD.size : _HEAD.size + length].decode()
    if owner != _owner(path.name):
        raise ValueError("it says that it is another process's than its name does")
    return list(_flights(data, owner))


def _flights(data: bytes, owner: str) -> Iterator[LostFlights]:
    for start in range(_FIRST, SIZE, _SLOT):
        (length,) = _NAME.unpack_from(data, start + _NAME_AT)
        if length == 0:
            return
        began, ended = struct.unpack_from("=QQ", data, start)
        if length > _MAX_NAME_BYTES or ended > began:
            raise ValueError("its counters cannot be")
        name = data[start + _NAME_AT + _NAME.size :][:length].decode()
        node, _, epoch = name.partition("\0")
        if began > ended:
            of_thread = _THREAD if epoch.endswith(_THREAD) else ""
            key = NodeKey(node, epoch.removesuffix(_THREAD))
            yield LostFlights(key, f"{owner}{of_thread}", began - ended)


def _set_aside(path: Path, why: Exception) -> None:
    """Move an unreadable file aside, for a person to inspect."""
    aside = path.parent / "aside"
    _log.error("%s cannot be read: %s; it is moved to %s", path, why, aside)
    aside.mkdir(exist_ok=True, mode=0o700)
    path.rename(aside / path.name)
