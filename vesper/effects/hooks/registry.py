"""Hooks before and after effects: `@vesper.before_tool` and `@vesper.after_tool`.

    @vesper.before_tool("exec.shell_command.*")
    def no_force(call: Call) -> Block | None:
        return Block("never by force") if "--force" in call.arguments["arguments"] else None

A hook is registered for words of capabilities, such as `mcp.call.github.*` or `models.call.*`. A hook that raises
blocks the call: a failing guard must not allow it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from vesper.language.diagnostics.capability_words import covers, is_word, nearest_word
from vesper.values.generated.effects import EFFECTS
from vesper.values.vesper_error import VesperError

MAX_RETRIES: Final = 3
"""Retries that hooks can ask for in one call."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call, before or after it was performed."""

    tools: tuple[str, ...]
    """Capabilities that it uses: `exec.shell_command.git`, `mcp.call.github.search`."""
    effect: str
    fixed: Mapping[str, str]
    arguments: Mapping[str, object]
    execution: str
    path: str
    is_sensitive: bool
    """True where arguments or result are sensitive: logs must not repeat them."""


@dataclass(frozen=True, slots=True)
class Answered:
    """The result of a call: a value, or the code and message of a failure."""

    value: object = None
    code: str | None = None
    message: str = ""


@dataclass(frozen=True, slots=True)
class Block:
    """Fails the call with `not_allowed` for this reason. After a call it withholds the result."""

    reason: str


@dataclass(frozen=True, slots=True)
class Replace:
    """Replaces the arguments before a call, or the value after it."""

    value: object


@dataclass(frozen=True, slots=True)
class Answer:
    """Completes a call with this value before it is performed; it is then not performed."""

    value: object


@dataclass(frozen=True, slots=True)
class Retry:
    """Repeats a call of class `read` or `keyed`, at most three times."""


Before = Callable[[Call], Block | Replace | Answer | None]
After = Callable[[Call, Answered], Block | Replace | Retry | None]
_Hook = TypeVar("_Hook", bound=Callable[..., object])


class HookError(VesperError, ValueError):
    """A hook was registered for a word that names no capability."""


class Hooks:
    """The hooks of a process, in the order of their registration."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._before: tuple[tuple[str, Before], ...] = ()
        self._after: tuple[tuple[str, After], ...] = ()
        self._handed_out: set[str] = set()
        """Effects with a performer in use that runs no hooks."""

    def note_unguarded(self, effect: str) -> None:
        """Note that this effect is performed without hooks, so that a later hook for it is refused."""
        with self._lock:
            self._handed_out.add(effect)

    def add(self, word: str, *, before: Before | None = None, after: After | None = None) -> None:
        if not is_word(word, takes_wildcards=True, takes_prefix=False):
            raise HookError(f"`{word}` is no capability; did you mean `{nearest_word(word)}`?")
        with self._lock:
            late = sorted(effect for effect in self._handed_out if may_name(word, effect))
            if late:
                raise HookError(
                    f"a hook for `{word}` is too late: `{late[0]}` is performed already; register hooks before the "
                    "first run, in a module that `[effects] modules` names"
                )
            self._before += () if before is None else ((word, before),)
            self._after += () if after is None else ((word, after),)

    def remove(self, hook: Callable[..., object]) -> None:
        """Remove a hook, for tests and for consoles in which a function is defined again."""
        with self._lock:
            self._before = tuple(each for each in self._before if each[1] is not hook)
            self._after = tuple(each for each in self._after if each[1] is not hook)

    def before(self, tools: tuple[str, ...]) -> Iterator[Before]:
        return (hook for word, hook in self._before if any(covers(word, tool) for tool in tools))

    def after(self, tools: tuple[str, ...]) -> Iterator[After]:
        return (hook for word, hook in self._after if any(covers(word, tool) for tool in tools))

    def concern(self, effect: str) -> bool:
        """Return whether a hook may apply to this effect."""
        return any(may_name(word, effect) for word, _ in (*self._before, *self._after))


UNGUARDED: Final = frozenset({"database_query", "database_write", "state_transition", "state_read"})
"""Effects without rules and hooks: literals of the node say what they do, and they may join a transaction."""


def may_name(word: str, effect: str) -> bool:
    """Return whether a word of capabilities can cover a request of this effect."""
    if effect in UNGUARDED or effect not in EFFECTS:
        return False
    head = ".".join(EFFECTS[effect].capability.split(".")[:2])
    return covers(word, f"{head}.x") or word == head or word.startswith(f"{head}.")


HOOKS: Final = Hooks()
"""Those of this process."""


def before_tool(word: str) -> Callable[[_Hook], _Hook]:
    """Register the decorated function before calls that use a capability. The function is returned unchanged."""

    def register(hook: _Hook) -> _Hook:
        HOOKS.add(word, before=hook)  # type: ignore[arg-type]  # the annotation of the function may be narrower
        return hook

    return register


def after_tool(word: str) -> Callable[[_Hook], _Hook]:
    """Register the decorated function after calls that use a capability. The function is returned unchanged."""

    def register(hook: _Hook) -> _Hook:
        HOOKS.add(word, after=hook)  # type: ignore[arg-type]  # the annotation of the function may be narrower
        return hook

    return register


def remove_hook(hook: Callable[..., object]) -> None:
    """Remove a hook of this process."""
    HOOKS.remove(hook)
