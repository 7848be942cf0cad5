"""The folder of the cache of nodes, and whether it can be trusted.

Its content is executed: generated Python as compiled code. So it is the user's own folder, and never that of a project,
which may have any origin. Two conditions must hold: the folder and its content belong to this user or to root, and only
they can write there; and every entry has a MAC under a key stored elsewhere, so that a restored, copied or checked-out
folder counts as empty.
"""

from __future__ import annotations

import contextlib
import os
import stat

VARIABLE = "VESPER_CACHE"
"""A folder, or `off`."""
OFF_VARIABLE = "VESPER_NO_CACHE"
KEY_VARIABLE = "VESPER_CACHE_KEY"
"""The file of the key, where it is not the user's own: for images with a filled cache."""
KEY_BYTES = 32
_OFF = ("off", "no", "0")


ignore_os_errors = contextlib.suppress(OSError)


class NoCache(Exception):
    """There is no cache; the message has the reason and the remedy.

    `is_meant` is True where the environment turned it off.
    """

    def __init__(self, why: str, is_meant: bool = False) -> None:
        super().__init__(why)
        self.is_meant = is_meant


def folder_name() -> str:
    """Return the folder that the environment names. Raises `NoCache` where there is none."""
    said = os.environ.get(VARIABLE, "")
    if said in _OFF:
        raise NoCache(f"{VARIABLE}={said}", is_meant=True)
    if os.environ.get(OFF_VARIABLE, "") not in ("", "0", "false", "no", "off"):
        raise NoCache(f"{OFF_VARIABLE} is set", is_meant=True)
    if not hasattr(os, "geteuid"):
        raise NoCache("this system does not say whose a file is")
    return os.path.abspath(said) if said else _user_folder("XDG_CACHE_HOME", ".cache")


def key_name() -> str:
    """Return the file of the key."""
    said = os.environ.get(KEY_VARIABLE, "")
    return os.path.abspath(said) if said else f"{_user_folder('XDG_CONFIG_HOME', '.config')}/cache.key"


def _user_folder(variable: str, otherwise: str) -> str:
    base = os.environ.get(variable, "")
    if not base.startswith("/"):  # a relative path is ignored, as the XDG specification requires
        home = os.environ.get("HOME", "")
        if not home.startswith("/"):
            raise NoCache(f"neither {VARIABLE} nor HOME says where; set {VARIABLE} to a folder, or to off")
        base = f"{home}/{otherwise}"
    return f"{base}/vesper"


def trusted_folder(folder: str) -> None:
    """Make the folder where there is none. Raises `NoCache` where other users could have written to it."""
    try:
        status = os.lstat(folder)
    except FileNotFoundError:
        try:
            os.makedirs(os.path.dirname(folder), exist_ok=True)
            os.mkdir(folder, 0o700)
        except FileExistsError:
            pass
        except OSError as error:
            raise NoCache(f"{folder} cannot be made: {error.strerror}; set {VARIABLE} to another folder") from None
        status = os.lstat(folder)
    except OSError as error:
        raise NoCache(f"{folder} cannot be used: {error.strerror}; set {VARIABLE} to another folder") from None
    if not stat.S_ISDIR(status.st_mode):
        raise NoCache(f"{folder} is no folder; set {VARIABLE} to one")
    if not is_own(status):
        raise NoCache(f"{folder} belongs to another user; set {VARIABLE} to a folder of your own")
    if status.st_mode & 0o022:
        raise NoCache(f"others may write to {folder}, and what it holds is run; chmod go-w it, or set {VARIABLE}")


def is_own(status: os.stat_result) -> bool:
    """Return whether a file belongs to this user or to root."""
    return status.st_uid in (os.geteuid(), 0)


def read_key(file: str) -> bytes:
    """Return the key of the user; make it where there is none. Raises where other users could read or change it."""
    try:
        return _read_key(file)
    except FileNotFoundError:
        pass
    temporary = f"{file}.{os.getpid()}.{int.from_bytes(os.urandom(4))}"
    try:
        os.makedirs(os.path.dirname(file), mode=0o700, exist_ok=True)
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.write(handle, os.urandom(KEY_BYTES))
        finally:
            os.close(handle)
        try:
            os.link(temporary, file)  # atomic, and never over the key of another process
        except FileExistsError:
            pass
        finally:
            os.unlink(temporary)
        return _read_key(file)
    except OSError as error:
        raise NoCache(f"the key {file} cannot be made: {error.strerror}; set {KEY_VARIABLE} to another file") from None


def _read_key(file: str) -> bytes:
    try:
        handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise NoCache(f"the key {file} cannot be read: {error.strerror}; remove it, or set {KEY_VARIABLE}") from None
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or not is_own(status) or status.st_mode & 0o022:
            raise NoCache(f"the key {file} is not yours alone; remove it, and check who could write there")
        if status.st_uid != 0 and status.st_mode & 0o044:
            raise NoCache(f"others may read the key {file}; chmod 600 it, or remove it")
        key = os.read(handle, KEY_BYTES + 1)
    finally:
        os.close(handle)
    if len(key) != KEY_BYTES:
        raise NoCache(f"the key {file} is no key; remove it")
    return key
