"""Events of runs for user interfaces: chunks of answers, and the begin and end of runs.

An event is delivered before it is durable, in the thread in which it happens. A subscriber returns soon and raises
nothing; one that raises is logged. A run that is not followed pays for no event.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Final, Literal, TypeAlias

Kind: TypeAlias = Literal[
    "run_started", "start", "text", "thinking", "tool_start", "tool_arguments", "usage", "end",
    "budget_warned", "budget_alerted", "run_ended",
]  # fmt: skip
KINDS: Final[tuple[Kind, ...]] = (
    *("run_started", "start", "text", "thinking", "tool_start", "tool_arguments", "usage", "end"),
    *("budget_warned", "budget_alerted", "run_ended"),
)
_log = logging.getLogger("vesper.host")


@dataclass(frozen=True, slots=True)
class RunEvent:
    """One event of a run. A `start` invalidates the chunks of an earlier attempt at its step."""

    execution: str
    kind: Kind
    path: str = ""
    """The step, as the journal names it; empty for an event of the whole run."""
    text: str = ""
    """The fragment of an answer; of `run_started` the node, of `run_ended` the kind of the outcome."""
    call: Mapping[str, Any] = field(default_factory=dict)
    """`id` and `name` of the tool call that `tool_start` and `tool_arguments` belong to."""
    usage: Mapping[str, Any] = field(default_factory=dict)
    budget: str = ""
    """Name of the budget that `budget_warned` and `budget_alerted` are about."""

    def members(self) -> dict[str, Any]:
        """Return the event as JSON members, without empty ones."""
        found = {
            "execution": self.execution,
            "kind": self.kind,
            "path": self.path,
            "text": self.text,
            "call": dict(self.call),
            "usage": dict(self.usage),
            "budget": self.budget,
        }
        return {name: value for name, value in found.items() if value}


Listener: TypeAlias = Callable[[RunEvent], object]


class RunEvents:
    """The subscribers of a Host. Any thread may subscribe and publish."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._listeners: dict[str | None, tuple[Listener, ...]] = {}
        """By execution; None is for all runs."""

    def subscribe(self, listener: Listener, execution: str | None = None) -> Callable[[], None]:
        """Call `listener` with the events of a run, or of all runs. Call the result to end that."""
        with self._lock:
            self._listeners[execution] = (*self._listeners.get(execution, ()), listener)

        def end() -> None:
            with self._lock:
                left = tuple(each for each in self._listeners.get(execution, ()) if each is not listener)
                if left:
                    self._listeners[execution] = left
                else:
                    self._listeners.pop(execution, None)

        return end

    def is_followed(self, execution: str) -> bool:
        return None in self._listeners or execution in self._listeners

    def publish(self, event: RunEvent) -> None:
        for listener in (*self._listeners.get(event.execution, ()), *self._listeners.get(None, ())):
            try:
                listener(event)
            except Exception:  # noqa: BLE001  # it is logged, and the others get theirs
                _log.exception("a subscriber of run events failed with `%s` of %s", event.kind, event.execution)

    def publish_chunk(self, execution: str, chunk: Mapping[str, Any]) -> None:
        """Publish a chunk of an answer in the form of the performers of models."""
        if not self.is_followed(execution):
            return
        kind = chunk.get("kind")
        if kind not in KINDS:
            _log.error("a chunk of %s has the unknown kind %r", execution, kind)
            return
        call, usage = chunk.get("call"), chunk.get("usage")
        self.publish(
            RunEvent(
                execution,
                kind,
                str(chunk.get("path", "")),
                str(chunk.get("text") or ""),
                call if isinstance(call, Mapping) else {} if call is None else {"id": str(call)},
                usage if isinstance(usage, Mapping) else {},
            )
        )

    def publish_text(self, execution: str, chunk: str) -> None:
        """Publish a chunk that is JSON text."""
        if self.is_followed(execution):
            self.publish_chunk(execution, json.loads(chunk))
