"""The one door to whoever performs effects. It opens for handles of its own mint, and for what they are for."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from vesper.config.grants import Handle, Mint
from vesper.effects.performer import Ask, EffectFailed, Performer
from vesper.effects.settings import ConfigError
from vesper.engines.engine import Request
from vesper.values.vesper_error import VesperError

_log = logging.getLogger("vesper.host")


class NoHandle(VesperError):
    """Somebody asked for an effect without the handle for it: a bug, or an attempt."""


class Secrets(Protocol):
    def text(self, name: str) -> str: ...
    def redact(self, text: str) -> str: ...


class Performers(Protocol):
    def get(self, effect: str, /) -> Performer | None: ...
    def key_ttl(self, effect: str, fixed: Mapping[str, str]) -> float | None: ...


class Gate:
    def __init__(self, mint: Mint, performers: Performers, secrets: Secrets) -> None:
        self._mint = mint
        self._performers = performers
        self._secrets = secrets
        self._told: set[str] = set()

    def perform(
        self,
        handles: Sequence[Handle],
        capabilities: Sequence[str],
        ask: Ask,
        timeout: float | None = None,
        is_repeat: bool = False,
    ) -> object:
        """One attempt. Raises `EffectFailed`; its message holds no secret."""
        performer = self._opened(handles, capabilities, ask.effect)
        if timeout is not None or is_repeat != ask.is_repeat:
            ask = replace(ask, timeout=timeout, is_repeat=is_repeat)
        try:
            return performer.perform(ask)
        except EffectFailed as failure:
            failure.message = self._secrets.redact(failure.message)
            raise

    def probe(self, handles: Sequence[Handle], capabilities: Sequence[str], ask: Ask) -> object:
        """What came of an effect that may have been performed before, or `NOT_DONE`. Raises as `perform` does."""
        performer = self._opened(handles, capabilities, ask.effect)
        try:
            return performer.probe(ask)
        except EffectFailed as failure:
            failure.message = self._secrets.redact(failure.message)
            raise

    def secret(self, handles: Mapping[str, Handle], name: str) -> str:
        """The text of a secret, for a node that may use it."""
        capability = f"secrets.read.{name}"
        if not self._mint.opens(handles.get(capability), capability):
            raise EffectFailed("not_found", f"the node has no handle for `{capability}`")
        return self._secrets.text(name)

    def key_ttl(self, request: Request) -> float | None:
        """How many seconds the other side remembers a key; None is for ever."""
        return self._performers.key_ttl(request.effect, request.fixed)

    def _opened(self, handles: Sequence[Handle], capabilities: Sequence[str], effect: str) -> Performer:
        if len(handles) != len(capabilities) or not capabilities:
            raise NoHandle(f"`{effect}` was asked for without handles")
        opens = self._mint.opens
        for index, capability in enumerate(capabilities):
            if not opens(handles[index], capability):
                raise NoHandle(f"`{effect}` was asked for with something that is no handle for `{capability}`")
        try:
            found = self._performers.get(effect)
        except ConfigError as error:  # nothing was sent
            self._tell(str(error))
            raise EffectFailed("unavailable", str(error)) from error
        if found is None:
            text = f"nothing is configured that performs `{effect}`"
            self._tell(text)
            raise EffectFailed("unavailable", text)
        return found

    def _tell(self, problem: str) -> None:
        """The operator, once: a node that handles the failure says something else to its caller."""
        if problem not in self._told:
            self._told.add(problem)
            _log.error("an effect cannot be performed: %s", problem)
