"""Secrets: where their texts come from, who gets them, and how they are kept out of every text that leaves.

A node sees only references, `secret:NAME:…`, which end in what nobody can guess. The texts go to those performers that
need them (`Secrets.text`), and each text that was ever given to one is found again by `redact`, also where it was
encoded on the way.
"""

from __future__ import annotations

import importlib
import logging
import os
import re
import stat
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Any, Final

from vesper.effects.performer import Ask, EffectFailed
from vesper.effects.secrets.encoded_forms import forms_of
from vesper.effects.settings import Table
from vesper.effects.worker_threads import NoThread, StillRunning, WorkerThreads
from vesper.storage.per_process import PerProcess

MIN_CHARACTERS: Final = 4
"""A shorter text stands in every other sentence: redacting it would leave nothing to read."""
_MAX_BYTES: Final = 65_536
_WAIT_SECONDS: Final = 5.0
_MAX_REMEMBERED: Final = 16
"""So many texts of one secret are looked for: the one in use and those before it."""
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}", re.ASCII)
_FUNCTION: Final = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", re.ASCII)
_LOG = logging.getLogger("vesper.effects.secrets.performer")


@dataclass(frozen=True, slots=True)
class SecretSettings:
    """`[secrets]`."""

    source: str
    prefix: str = "VESPER_SECRET_"
    """Of environment variables: `stripe_key` is `VESPER_SECRET_STRIPE_KEY`."""
    path: Path | None = None
    """Of files: the folder with one file for each secret."""
    function: str | None = None
    """`module:function`, which takes the name and gives the text, or None where there is none."""
    ttl: float = 60.0
    """Seconds after which the source is asked again, so that a new text is picked up."""
    timeout: float = 10.0
    """Seconds that `function` may take."""

    @classmethod
    def from_table(cls, name: str, table: Table, base: Path | None = None) -> SecretSettings:  # noqa: ARG003
        """There is one such table, so `name` is not looked at. A relative `path` is below `base`."""
        source = table.choice("source", ("environment", "file", "python"), "environment")
        for setting, of in (("prefix", "environment"), ("path", "file"), ("function", "python"), ("timeout", "python")):
            if setting in table and source != of:
                raise table.error(setting, f'only `source = "{of}"` has this setting')
        path = None
        if source == "file":
            path = Path(table.text("path"))
            if not path.is_absolute():
                if base is None:
                    raise table.error("path", f"an absolute path is expected, not `{path}`")
                path = base / path
            if not path.is_dir():
                raise table.error("path", f"there is no folder `{path}`")
        function = table.text("function") if source == "python" else None
        if function is not None and not _FUNCTION.fullmatch(function):
            raise table.error("function", f"`module:function` is expected, not `{function}`")
        found = cls(
            source,
            table.text("prefix", "VESPER_SECRET_"),
            path,
            function,
            table.seconds("ttl", 60.0),
            table.seconds("timeout", 10.0),
        )
        table.done()
        return found


_FROM_ENVIRONMENT: Final = SecretSettings("environment")


@dataclass(frozen=True, slots=True)
class _Known:
    text: str
    until: float


class Secrets:
    """The secrets of a process. Any number of threads may use it, and a forked process: that knows the texts of its
    parent, to redact them."""

    def __init__(
        self, settings: SecretSettings = _FROM_ENVIRONMENT, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._lock = PerProcess(threading.Lock)
        self._asking: PerProcess[dict[str, threading.Lock]] = PerProcess(dict)
        self._known: dict[str, _Known] = {}
        self._given: dict[str, tuple[str, ...]] = {}
        """All texts of each name that somebody has, the newest first."""
        self._finder: tuple[re.Pattern[str], dict[str, str]] | None = None
        self._threads = WorkerThreads()

    def text(self, name: str) -> str:
        """The text of a secret. Raises `EffectFailed`: `not_found`, or `unavailable` where it cannot be had or used."""
        if not _NAME.fullmatch(name):
            raise EffectFailed("not_found", f"no secret can be called {name[:80]!a}")
        known = self._fresh(name)
        if known is not None:
            return known
        # One asks the source, and the others wait for what it gets: when a text has had its time, all want a new one.
        asking = self._asking.get().setdefault(name, threading.Lock())
        if not asking.acquire(timeout=_WAIT_SECONDS + self._settings.timeout):
            raise EffectFailed("timeout", f"the secret `{name}`: others ask for it, and get no answer")
        try:
            return self._fresh(name) or self._asked(name)
        finally:
            asking.release()

    def _fresh(self, name: str) -> str | None:
        known = self._known.get(name)
        return known.text if known is not None and self._clock() < known.until else None

    def _asked(self, name: str) -> str:
        now = self._clock()
        text = self._checked(name, self._from_source(name))
        with self._lock.get():
            given = self._given.get(name, ())
            if text not in given:
                self._given = {**self._given, name: (text, *given)[:_MAX_REMEMBERED]}
                self._finder = _finder(self._given)
            self._known = {**self._known, name: _Known(text, now + self._settings.ttl)}
        return text

    def redact(self, text: str) -> str:
        """The text with `secret:NAME` in the place of each secret that was given out: as it is, in base64 (also inside
        of something longer, as in an `Authorization` header), percent-encoded, escaped as in JSON or Python, in hex."""
        found = self._finder
        if found is None:
            return text
        pattern, names = found
        return pattern.sub(lambda match: f"secret:{names[match[0]]}", text)

    def _checked(self, name: str, text: str) -> str:
        problem = None
        if len(text) < MIN_CHARACTERS:
            problem = f"has fewer than {MIN_CHARACTERS} characters: it could not be kept out of messages"
        elif len(text.encode("utf-8", "surrogatepass")) > _MAX_BYTES:
            problem = f"has more than {_MAX_BYTES:,} bytes"
        elif "\0" in text or any("\ud800" <= each <= "\udfff" for each in text):
            problem = "is no text"
        if problem is not None:
            raise EffectFailed("unavailable", f"the secret `{name}` {problem}")
        return text

    # -- sources ----------------------------------------------------------------------------------

    def _from_source(self, name: str) -> str:
        match self._settings.source:
            case "environment":
                return self._from_environment(name)
            case "file":
                return self._from_file(name)
            case _:
                return self._from_function(name)

    def _from_environment(self, name: str) -> str:
        variable = self._settings.prefix + re.sub(r"[.-]", "_", name).upper()
        found = os.environ.get(variable)
        if found is None:
            raise EffectFailed("not_found", f"there is no secret `{name}`: the variable {variable} is not set")
        return found

    def _from_file(self, name: str) -> str:
        assert self._settings.path is not None
        path = self._settings.path / name
        try:
            # A link is followed: what mounts secrets into a container makes links, to change all of them at once.
            file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
        except FileNotFoundError:
            raise EffectFailed("not_found", f"there is no secret `{name}`: no file `{path}`") from None
        except OSError as error:
            raise EffectFailed("unavailable", f"the secret `{name}`: {path}: {error.strerror}") from None
        try:
            found = os.fstat(file)
            if not stat.S_ISREG(found.st_mode):
                raise EffectFailed("unavailable", f"the secret `{name}`: {path} is no regular file")
            if found.st_mode & 0o077:
                mode = f"{stat.S_IMODE(found.st_mode):04o}"
                message = f"the secret `{name}`: others may use {path} (mode {mode}): chmod 0400 {path}"
                raise EffectFailed("unavailable", message)
            text = os.read(file, _MAX_BYTES + 3).decode("utf-8")
        except UnicodeDecodeError:
            raise EffectFailed("unavailable", f"the secret `{name}`: {path} is no UTF-8") from None
        except OSError as error:
            raise EffectFailed("unavailable", f"the secret `{name}`: {path}: {error.strerror}") from None
        finally:
            os.close(file)
        return text.removesuffix("\n").removesuffix("\r")

    def _from_function(self, name: str) -> str:
        place = self._settings.function
        assert place is not None
        try:
            found = self._threads.run(lambda: _function(place)(name), self._settings.timeout)
        except StillRunning:
            seconds = f"{self._settings.timeout:g} s"
            raise EffectFailed("timeout", f"the secret `{name}`: {place} took longer than {seconds}") from None
        except NoThread:
            message = f"the secret `{name}`: {place} is being called by others, and does not come to an end"
            raise EffectFailed("unavailable", message) from None
        except EffectFailed:
            raise
        except _NotThere as problem:
            raise EffectFailed("unavailable", f"the secret `{name}`: {place} is not there: {problem}") from None
        except Exception as error:  # noqa: BLE001  # whatever the application raises, the secret cannot be had
            # Its text may hold anything, so only its class is told; the log has where it was raised.
            _LOG.error("the secret `%s`: %s", name, self.redact(_where(error)))
            message = f"the secret `{name}`: {place} raised {type(error).__name__}"
            raise EffectFailed("unavailable", message) from None
        if found is None:
            raise EffectFailed("not_found", f"there is no secret `{name}`: {place} knows none")
        if not isinstance(found, str):
            message = f"the secret `{name}`: {place} gave {type(found).__name__}, and a str or None is expected"
            raise EffectFailed("unavailable", message)
        return str.__str__(found)


def new_reference(name: str) -> str:
    """What an execution sees of a secret: a new text each time. What comes from outside cannot be one, whoever wrote
    it and whatever secrets they know the names of."""
    return f"secret:{name}:{token_hex(16)}"


class SecretPerformer:
    """Performs `secret_read`: gives the reference, once it is sure that there is such a secret."""

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets

    def perform(self, ask: Ask) -> object:
        if ask.effect != "secret_read":
            raise ValueError(f"secrets do not perform {ask.effect}")
        name = ask.fixed["name"]
        self._secrets.text(name)
        return new_reference(name)

    def probe(self, ask: Ask) -> object:
        raise EffectFailed("unavailable", f"{ask.effect} is of class `read`: it is done again, and never probed")

    def close(self) -> None:
        """Nothing is held."""


class _NotThere(Exception):
    """The settings name a function that there is not; the message says what is missing."""


def _function(place: str) -> Callable[[str], Any]:
    module, _, name = place.partition(":")
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise _NotThere(str(error)) from None
    if not hasattr(found, name):
        raise _NotThere(f"the module `{module}` has no `{name}`")
    function: Callable[[str], Any] = getattr(found, name)
    return function


def _where(error: BaseException) -> str:
    """The places that an exception went through, without its text and without values."""
    import traceback

    frames = traceback.extract_tb(error.__traceback__)
    return f"{type(error).__name__} at " + " < ".join(f"{each.filename}:{each.lineno}" for each in reversed(frames))


def _finder(given: dict[str, tuple[str, ...]]) -> tuple[re.Pattern[str], dict[str, str]]:
    names = {form: name for name, texts in given.items() for text in texts for form in forms_of(text)}
    longest_first = sorted(names, key=lambda form: (-len(form), form))
    return re.compile("|".join(map(re.escape, longest_first))), names
