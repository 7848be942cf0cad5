"""Decide whether a file may be used: another user must not be able to have written it.

A `vesper.toml` names modules to import, a node runs with the grants of this user, a store decides which engine leads.
So a file, its folder and every folder above must belong to this user or to root, and other users must not be able to
write there. `vesper trust PATH` accepts a path and everything below it as it is; the environment variable
`VESPER_TRUST` does the same for one process.

`vesper.load` imports this module on every start: it imports neither `pathlib` nor the user database unless needed.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

VARIABLE = "VESPER_TRUST"
"""Paths that this process trusts, separated as in PATH; `*` trusts every path."""
ALL = "*"
MAX_STORE_BYTES = 1 << 20
_SHARED = stat.S_IWGRP | stat.S_IWOTH


class TrustError(Exception):
    """The list of trusted paths cannot be used. The message says why and what to do."""


# -- the rule -------------------------------------------------------------------------------------


def distrust(path: str | os.PathLike[str]) -> str | None:
    """Return why a file must not be used, with the commands that change that. None for a trusted file.

    A file that does not exist yet is judged by the nearest existing folder.
    """
    if not hasattr(os, "geteuid"):
        return None  # a system without owners
    named = os.path.abspath(path)
    real = os.path.realpath(named)
    for place in (real,) if real == named else (real, named):
        found = _problem(place)
        if found is None:
            continue
        at, reason, remedy = found
        try:
            if _is_within(real, at) and _is_trusted(real):
                continue
        except TrustError as problem:
            reason = f"{reason} ({problem})"
        return _message(named, real, at, reason, remedy)
    return None


def _problem(path: str) -> tuple[str, str, str | None] | None:
    """Return the first untrusted part of a path, the reason, and a command that removes the reason."""
    user = os.geteuid()
    depth = 0  # 0 the file or link, 1 its folder
    for part in _upwards(path):
        try:
            status = os.lstat(part)
        except (FileNotFoundError, NotADirectoryError):
            depth = 1
            continue
        except OSError as error:
            return part, f"{part} cannot be examined: {error.strerror}", None
        if status.st_uid not in (user, 0):
            return part, f"{part} belongs to {_user(status.st_uid)}, and this process runs as {_user(user)}", None
        if status.st_mode & _SHARED and not stat.S_ISLNK(status.st_mode):
            found = _writers(part, status, is_above=depth > 1)
            if found is not None:
                return part, *found
        depth += 1
    return None


def _upwards(path: str) -> Iterator[str]:
    while True:
        yield path
        above = os.path.dirname(path)
        if above == path:
            return
        path = above


def _writers(part: str, status: os.stat_result, is_above: bool) -> tuple[str, str] | None:
    """Return the other users that can write, and the command that removes their right. None if there are none.

    In a sticky folder such as `/tmp` others cannot replace a folder of this user, but they can add files beside it.
    """
    mode = stat.S_IMODE(status.st_mode)
    if is_above and mode & stat.S_ISVTX:
        return None
    if mode & stat.S_IWOTH:
        return f"every user can write to {part} (mode {mode:04o})", f"chmod o-w {_quoted(part)}"
    if is_above and status.st_uid == 0:
        return None  # a group that the administrator chose, as for /usr/local
    if _is_private_group(status.st_gid, status.st_uid):
        return None
    return f"the group {_group(status.st_gid)} can write to {part} (mode {mode:04o})", f"chmod g-w {_quoted(part)}"


def _is_private_group(group: int, user: int) -> bool:
    """Return whether a group has only this user or root. Most systems create a private group for each user."""
    if group == 0:
        return True
    import grp
    import pwd

    try:
        entry = grp.getgrgid(group)
    except KeyError:
        return group == user  # a container whose databases lack both
    try:
        person = pwd.getpwuid(user)
    except KeyError:
        return False
    return person.pw_gid == group and entry.gr_name == person.pw_name and set(entry.gr_mem) <= {person.pw_name}


def _message(named: str, real: str, at: str, reason: str, remedy: str | None) -> str:
    if not _is_within(real, at):  # a link on the way
        return f"{named} is not trusted: {reason}\nname the file itself instead of the link: {_quoted(real)}"
    folder = _quoted(_project(real, at))
    fix = "" if remedy is None else f"run `{remedy}`, or, "
    link = "" if named == real else f" (a link to {real})"
    return (
        f"{named}{link} is not trusted: {reason}; its content would run with your rights\n"
        f"{fix}if you trust {folder} and everything below it, run: vesper trust {folder}\n"
        f"(in CI, set {VARIABLE}={folder})"
    )


def _project(real: str, at: str) -> str:
    """Return the folder to trust.

    It is the nearest one with a `vesper.toml` of the file's owner, else the folder of the file.
    """
    folders = [each for each in _upwards(real) if os.path.isdir(each)]
    owner = os.lstat(at).st_uid
    for folder in folders:
        if os.path.isfile(f"{folder}/vesper.toml") and os.stat(folder).st_uid == owner:
            return folder
    return next((each for each in folders if "/.vesper" not in each), folders[0])


def _quoted(path: str) -> str:
    import shlex

    return shlex.quote(path)


def _user(number: int) -> str:
    import pwd

    try:
        return f"{pwd.getpwuid(number).pw_name} (uid {number})"
    except KeyError:
        return f"uid {number}"


def _group(number: int) -> str:
    import grp

    try:
        return f"{grp.getgrgid(number).gr_name} (gid {number})"
    except KeyError:
        return f"gid {number}"


# -- the list of trusted paths --------------------------------------------------------------------


def _is_trusted(real: str) -> bool:
    """Return whether a trusted path covers this file, whatever the folders above that path are."""
    named = [each for each in os.environ.get(VARIABLE, "").split(os.pathsep) if each]
    if ALL in named or any(_is_within(real, os.path.realpath(each)) for each in named):
        return True
    known = trusted_paths() if store_path() is not None else {}
    # A path that was replaced by another user's since is no longer the trusted one.
    return any(_is_within(real, path) and _owner(path) == owner for path, owner in known.items())


def _owner(path: str) -> int | None:
    try:
        return os.stat(path).st_uid
    except OSError:
        return None


def _is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")


def store_path() -> str | None:
    """Return the file of trusted paths in the configuration folder of the user. None without a home."""
    base = os.environ.get("XDG_CONFIG_HOME", "")
    if not base.startswith("/"):  # a relative path is ignored, as the XDG specification requires
        home = os.environ.get("HOME", "")
        if not home.startswith("/"):
            return None
        base = f"{home}/.config"
    return f"{base}/vesper/trusted.json"


def trusted_paths() -> dict[str, int]:
    """Return each trusted path with its owner at the time. Raises `TrustError` for a list that others can change."""
    import json

    file = _store()
    try:
        handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise TrustError(f"the list {file} cannot be read: {error.strerror}; remove it") from None
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or status.st_uid not in (os.geteuid(), 0) or status.st_mode & _SHARED:
            raise TrustError(f"the list {file} is ignored: other users can change it; remove it")
        found = json.loads(os.read(handle, MAX_STORE_BYTES))
    except ValueError:
        raise TrustError(f"the list {file} is ignored: it is damaged; remove it") from None
    finally:
        os.close(handle)
    if not isinstance(found, dict) or not all(type(each) is int for each in found.values()):
        raise TrustError(f"the list {file} is ignored: it is damaged; remove it")
    return found


def trust(path: str) -> str:
    """Add a path to the list and return it without links. Raises `TrustError` and `OSError`."""
    real = os.path.realpath(path)
    _write({**trusted_paths(), real: os.stat(real).st_uid})
    return real


def remove(path: str) -> bool:
    """Remove a path from the list; return whether it was there."""
    known = trusted_paths()
    found = [each for each in (path, os.path.realpath(path)) if known.pop(each, None) is not None]
    if found:
        _write(known)
    return bool(found)


def _write(known: dict[str, int]) -> None:
    import json

    file = _store()
    os.makedirs(os.path.dirname(file), mode=0o700, exist_ok=True)
    temporary = f"{file}.{os.getpid()}"
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            json.dump(known, stream, indent=1, sort_keys=True)
        os.replace(temporary, file)
    except BaseException:
        os.unlink(temporary)
        raise


def _store() -> str:
    found = store_path()
    if found is None:
        raise TrustError(f"neither XDG_CONFIG_HOME nor HOME names a folder for the list; set one, or {VARIABLE}")
    return found
