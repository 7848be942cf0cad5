"""Effects that the application performs in Python: `@vesper.effect` and the performer of `custom`.

    @vesper.effect("score", effect_class="read", request={"customer": "string"}, response="decimal")
    def score(customer: str) -> Decimal: ...

Arguments and results are checked against the declared types. An exception is a failure of the effect and never ends
the Host; its traceback goes to the log `vesper.effects.custom.performer`, without secrets.
"""

from __future__ import annotations

import inspect
import logging
import traceback
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final, TypeVar

from vesper.effects.custom.registry import (
    REGISTRY,
    Context,
    Registered,
    Registry,
    Types,
    check_effect_name,
    check_function,
    class_problem,
    type_of,
)
from vesper.effects.performer import NOT_DONE, Ask, EffectFailed
from vesper.effects.secrets.encoded_forms import holds_any
from vesper.effects.stored_json import checked_value
from vesper.effects.worker_threads import MAX_THREADS, NoThread, StillRunning, WorkerThreads
from vesper.values.generated.effects import EFFECTS
from vesper.values.model import plain
from vesper.values.types import Record

__all__ = ["Context", "CustomPerformer", "Registered", "effect", "registered", "unregister"]

_Function = TypeVar("_Function", bound=Callable[..., object])
_CODES: Final = EFFECTS["custom"].codes()
_LOG = logging.getLogger("vesper.effects.custom.performer")
_THREADS: Final = WorkerThreads()


def effect(
    name: str,
    *,
    effect_class: str = "unsafe",
    request: Types | None = None,
    response: Types | None = None,
    probe: Callable[..., object] | None = None,
) -> Callable[[_Function], _Function]:
    """Register the decorated function as the effect `name`, for the whole process. The function is returned unchanged.

    `request` has the fields that it takes by keyword, with their types; `response` is the type of its result. Types are
    written as in nodes: `"decimal"`, `"array<string>"`, `{"amount": "decimal"}`. None leaves the type to the node.

    A parameter `key` receives the idempotency key of a `keyed` effect, a parameter `context` a `Context`. `probe`, for
    the class `probe`, takes the same parameters and returns the value of the earlier call, or `NOT_DONE`.
    """
    check_effect_name(name)
    fields = None if request is None else type_of(request, f"the request of the effect `{name}`")
    if fields is not None and not isinstance(fields, Record):
        raise ValueError(f"the request of the effect `{name}` is a record, as {{'amount': 'decimal'}}, not {fields}")
    gives = None if response is None else type_of(response, f"the response of the effect `{name}`")

    def register(function: _Function) -> _Function:
        found = Registered(name, effect_class, fields, gives, function, probe)
        check_function(found)
        REGISTRY.add(found)
        return function

    return register


def registered() -> Mapping[str, Registered]:
    """Return all registered effects by name."""
    return REGISTRY.all()


def unregister(name: str) -> None:
    """Remove an effect, for tests and for consoles in which a function is defined again."""
    REGISTRY.remove(name)


@dataclass(frozen=True, slots=True)
class _Call:
    """One call of a registered function with its arguments."""

    effect: Registered
    function: Callable[..., object]
    keywords: Mapping[str, object]

    def make(self, timeout: float | None) -> object:
        if _is_async(self.function):
            from vesper.effects.custom.private_loop import LOOP  # asyncio takes a while to load, and few need it

            return LOOP.run(lambda: self.function(**self.keywords), timeout)
        if timeout is None:
            return self.function(**self.keywords)
        return _THREADS.run(lambda: self.function(**self.keywords), timeout)


def _is_async(function: Callable[..., object]) -> bool:
    """Return whether this is an `async def`, or an object whose call is one."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


@lru_cache(maxsize=1024)
def _signature(function: Callable[..., object]) -> inspect.Signature:
    return inspect.signature(function)


class _RecordingAsk:
    """An ask that records the secrets that were read through it."""

    def __init__(self, ask: Ask) -> None:
        self.secrets: list[str] = []
        self._secret = ask.secret
        self.ask = replace(ask, secret=self._take_secret)

    def _take_secret(self, name: str) -> str:
        text = self._secret(name)
        self.secrets.append(text)
        return text


class CustomPerformer:
    """Performs `custom`. `redact` removes secrets from messages (`Secrets.redact`)."""

    def __init__(
        self,
        redact: Callable[[str], str] = lambda text: text,
        registry: Registry = REGISTRY,
        codes: Collection[str] = _CODES,
    ) -> None:
        self._redact = redact
        self._registry = registry
        self._codes = codes
        """Codes that a function may raise."""

    def perform(self, ask: Ask) -> object:
        found, given = self._find_registered(ask), _RecordingAsk(ask)
        return self._check_value(found, self._call_function(found, found.function, given.ask), given)

    def probe(self, ask: Ask) -> object:
        found, given = self._find_registered(ask), _RecordingAsk(ask)
        assert found.probe is not None, "an effect of class `probe` is never registered without"
        answer = self._call_function(found, found.probe, given.ask)
        return NOT_DONE if answer is NOT_DONE else self._check_value(found, answer, given)

    def close(self) -> None:
        """Do nothing: threads that wait for the next call end by themselves."""

    def _find_registered(self, ask: Ask) -> Registered:
        name = ask.fixed["name"]
        found = self._registry.find(name)
        if found is None:
            known = self._registry.closest(name)
            message = f"no effect `{name}` is registered: import the module with its @vesper.effect first{known}"
            raise EffectFailed("effect_failed", message)
        problem = class_problem(found, ask.effect_class, f"the step `{ask.path}`")
        if problem is not None:
            raise EffectFailed("effect_failed", problem)
        return found

    def _call_function(self, found: Registered, function: Callable[..., object], ask: Ask) -> object:
        call = _Call(found, function, self._choose_arguments(found, function, ask))
        try:
            return call.make(ask.timeout)
        except StillRunning:
            raise EffectFailed(
                "timeout", f"the effect `{found.name}` took longer than {ask.timeout:g} s", may_have_happened=True
            ) from None
        except NoThread:
            message = f"{MAX_THREADS} calls of custom effects are under way or have outlived their time"
            raise EffectFailed("unavailable", f"the effect `{found.name}` was not called: {message}") from None
        except EffectFailed as failure:
            raise self._translate_failure(found, failure) from None
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001  # SystemExit too: an effect does not end the Host
            # The message of an exception may repeat what the function was given; its frames do not.
            lines = traceback.format_tb(error.__traceback__) if ask.is_sensitive else traceback.format_exception(error)
            shown = self._redact("".join([*lines, type(error).__name__] if ask.is_sensitive else lines))
            _LOG.error("the effect `%s` failed at %s\n%s", found.name, ask.path, shown)
            text = self._redact(str(error))[:500]
            message = f"the effect `{found.name}` raised {type(error).__name__}" + (f": {text}" if text else "")
            raise EffectFailed("effect_failed", message, may_have_happened=True) from None

    def _choose_arguments(self, found: Registered, function: Callable[..., object], ask: Ask) -> dict[str, object]:
        given = ask.arguments.get("request")
        assert given is None or isinstance(given, dict)
        # In the forms of docs/spec/values.md, and new: whatever the function does to them, no one else sees.
        fields: dict[str, object] = {str(key): plain(value) for key, value in (given or {}).items()}
        if found.request is not None:
            try:
                checked = checked_value(found.request, fields, f"the request of the effect `{found.name}`")
            except EffectFailed as failure:
                raise EffectFailed("effect_failed", f"{failure.message}; it is registered at {found.place}") from None
            assert isinstance(checked, dict)
            fields = {str(key): value for key, value in checked.items()}
        signature = _signature(function)
        extra: dict[str, object] = {"key": ask.key, "context": Context.of(ask)}
        for name in [name for name in extra if name in signature.parameters]:
            if name in fields:
                message = f"the effect `{found.name}` has a parameter `{name}` of its own ({found.place})"
                raise EffectFailed("effect_failed", f"{message}: call the field of the request something else")
            fields[name] = extra[name]
        try:
            signature.bind(**fields)
        except TypeError as error:
            message = f"the request does not fit the effect `{found.name}` ({found.place}): {error}"
            raise EffectFailed("effect_failed", message) from None
        return fields

    def _check_value(self, found: Registered, answer: object, given: _RecordingAsk) -> object:
        if inspect.iscoroutine(answer):
            answer.close()
            message = f"what the effect `{found.name}` gives is a coroutine: declare the function with `async def`"
            raise EffectFailed("bad_response", message, may_have_happened=True)
        what = f"what the effect `{found.name}` gives"
        try:
            if found.response is not None and found.response != given.ask.gives:
                answer = checked_value(found.response, answer, what)
            value = checked_value(given.ask.gives, answer, what)
        except EffectFailed as failure:
            raise EffectFailed("bad_response", self._redact(failure.message), may_have_happened=True) from None
        if holds_any(value, given.secrets):
            raise EffectFailed("bad_response", f"{what} has a secret in it that it was given", may_have_happened=True)
        return value

    def _translate_failure(self, found: Registered, failure: EffectFailed) -> EffectFailed:
        """Return a failure that the function raised, with a code that the effect declares."""
        message = self._redact(failure.message)
        code: Any = failure.code
        if code not in self._codes:
            code, message = "effect_failed", f"the effect `{found.name}` failed with `{code}`: {message}"
        return EffectFailed(code, message, retry_after=failure.retry_after, may_have_happened=failure.may_have_happened)
