"""Opens the store of secrets, which recognises every text that it returned, and calls functions that return secrets.

A node sees only references, `secret:NAME:…`. The performers that need the texts receive them.
"""

from __future__ import annotations

import importlib
import logging
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

from vesper._direct import SecretStore
from vesper.effects.performer import EffectFailed
from vesper.effects.secrets.settings import SecretSettings
from vesper.effects.worker_threads import NoThread, StillRunning, WorkerThreads
from vesper.storage.sources import Sources

_LOG = logging.getLogger("vesper.effects.secrets.store")


def open_secrets(settings: SecretSettings, sources: Sources | None = None) -> SecretStore:
    """Return the store of these settings; `sources` replace the clock of the system."""
    if settings.manager is not None:
        function = _Function(settings.manager.place, settings.timeout, settings.manager)
    elif settings.function is not None:
        function = _Function(settings.function, settings.timeout, partial(_call_function, settings.function))
    else:
        return SecretStore(settings, None, sources)
    store = SecretStore(settings, function, sources)
    function.store = weakref.ref(store)
    return store


class _Function:
    """A function of the application or a manager. It is called in a thread, with a time limit for its caller."""

    store: weakref.ref[SecretStore]

    def __init__(self, place: str, timeout: float, call: Callable[[str], Any]) -> None:
        self._place = place
        self._call = call
        self._timeout = timeout
        self._threads = WorkerThreads()

    def __call__(self, name: str) -> str:
        place = self._place
        try:
            found = self._threads.run(lambda: self._call(name), self._timeout)
        except StillRunning:
            message = f"the secret `{name}`: {place} took longer than {self._timeout:g} s"
            raise EffectFailed("timeout", message) from None
        except NoThread:
            message = f"the secret `{name}`: {place} is being called by others, and does not come to an end"
            raise EffectFailed("unavailable", message) from None
        except EffectFailed:
            raise
        except _MissingFunction as problem:
            raise EffectFailed("unavailable", f"the secret `{name}`: {place} is not there: {problem}") from None
        except Exception as error:  # noqa: BLE001  # whatever the application raises, the secret cannot be had
            # Its text may hold anything, so only its class is told; the log has where it was raised.
            store = self.store()
            _LOG.error(
                "the secret `%s`: %s",
                name,
                _describe_traceback(error) if store is None else store.redact(_describe_traceback(error)),
            )
            message = f"the secret `{name}`: {place} raised {type(error).__name__}"
            raise EffectFailed("unavailable", message) from None
        if found is None:
            raise EffectFailed("not_found", f"there is no secret `{name}`: {place} knows none")
        if not isinstance(found, str):
            message = f"the secret `{name}`: {place} gave {type(found).__name__}, and a str or None is expected"
            raise EffectFailed("unavailable", message)
        return str.__str__(found)


class _MissingFunction(Exception):
    """The settings name a function that does not exist. The message says which part is missing."""


def _call_function(place: str, secret: str) -> Any:
    module, _, name = place.partition(":")
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise _MissingFunction(str(error)) from None
    if not hasattr(found, name):
        raise _MissingFunction(f"the module `{module}` has no `{name}`")
    return getattr(found, name)(secret)


def _describe_traceback(error: BaseException) -> str:
    """Return the type of an exception and the lines that it passed, without its text and values."""
    import traceback

    frames = traceback.extract_tb(error.__traceback__)
    return f"{type(error).__name__} at " + " < ".join(f"{each.filename}:{each.lineno}" for each in reversed(frames))
