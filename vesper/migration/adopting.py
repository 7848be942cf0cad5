"""An existing function as the leader: a node is shadowed behind it, gathers the same evidence, and takes over.

The function is what its callers know: it is called as it always was, with what they gave, and what it gives back or
raises is theirs, until the node has shown that it answers the same. From then on outputs come from the node; what is no
outputs (an error, a refusal) still comes from the function, because its callers know its exceptions and not ours.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from vesper.compiler import Compiled
from vesper.engines.engine import Limits, Program
from vesper.engines.outcome import Failed, Outcome, Returned
from vesper.migration.comparator import Comparator, Same, Verdict
from vesper.migration.reports import Difference
from vesper.spec.vesper_error import VesperError
from vesper.verify.against import identity_of


class CannotAdopt(VesperError, ValueError):
    """The node cannot stand beside a function; the message says why."""


def check_adoptable(compiled: Compiled) -> None:
    """Refuses nodes whose effects would be performed besides those of the function."""
    node = compiled.node
    if not node.is_pure():
        raise CannotAdopt(
            f"{node.node_id} asks for effects, and the function performs its own: both would happen. Adopt the part "
            "that decides, as a node without effects"
        )
    if node.type != "function":
        raise CannotAdopt(f"{node.node_id} may ask for the time at which it starts, which a function is not told")


def function_name(function: Callable[..., object]) -> str:
    """What the function is, for the epoch: its name, and its text where there is one. Another text is another
    function, and the evidence begins anew."""
    name = f"{getattr(function, '__module__', '?')}:{getattr(function, '__qualname__', repr(type(function)))}"
    try:
        text = inspect.getsource(function)
    except (OSError, TypeError):
        text = ""
    return f"{name}#{hashlib.sha256(text.encode()).hexdigest()[:16]}"


class FunctionCall:
    """One call of the function: what it gave back or raised is kept for its caller."""

    def __init__(self, function: Callable[..., Any], answers: Program) -> None:
        self._function = function
        self._answers = answers
        self.result: Any = None
        self.error: BaseException | None = None
        self.was_called = False

    def __call__(self, inputs: Mapping[str, object], now: datetime | None, limits: Limits | None) -> Outcome:
        self.was_called = True
        try:
            self.result = self._function(**inputs)
        except Exception as error:  # noqa: BLE001  # whatever it is goes to who called
            self.error = error
            return Failed(type(error).__name__, None)
        if not isinstance(self.result, Mapping):
            return Failed("no_outputs", None)
        read = self._answers.call(dict(self.result))
        return read if isinstance(read, Returned) else Failed("no_outputs", None)


class FunctionComparator(Comparator):
    """Outputs exactly (or within tolerances); of what is no outputs only that there are none: a function has its own
    words for why."""

    def outcomes(self, leader: Outcome, follower: Outcome) -> Verdict:
        if isinstance(leader, Returned) and isinstance(follower, Returned):
            return super().outcomes(leader, follower)
        if isinstance(leader, Returned) or isinstance(follower, Returned):
            return Difference("outcome", "whether there is an answer", _said(leader), _said(follower))
        return Same()


def _said(outcome: Outcome) -> str:
    return f"failed {outcome.code}" if isinstance(outcome, Failed) else outcome.kind


def answers_of(compiled: Compiled) -> Program:
    """Reads what a function gives back as outputs of the node."""
    return identity_of([(each.name, each.type, None) for each in compiled.node.outputs])
