"""The outcome of a call: plain data, without an exception and without objects of an engine.

Every call makes one, so it has two fields and the time.
"""

from __future__ import annotations

from _thread import allocate_lock
from collections.abc import Mapping
from reprlib import Repr
from time import time_ns
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar

from vesper.journal.execution_id import trace_id

if TYPE_CHECKING:
    from datetime import datetime

    from vesper.api.error_info import ErrorInfo
    from vesper.api.explanation.model import Explanation
    from vesper.api.node import Node

OutputsT = TypeVar("OutputsT", bound=Mapping[str, Any])

_naming = allocate_lock()
_shown = Repr()
_shown.maxstring = _shown.maxother = 60


class Outcome(Generic[OutputsT]):
    """The outputs of a node, or the reason why there are none. True where there are outputs.

    An output is `outcome["fee"]`, and `outcome.fee` where no attribute of an outcome has its name.
    """

    __slots__ = ("_ended_at", "_error", "_inputs", "_node", "_now", "_trace_id", "_value")

    def __init__(
        self,
        value: OutputsT | None,
        error: ErrorInfo | None = None,
        node: Node | None = None,
        inputs: Any = None,
        now: datetime | None = None,
    ) -> None:
        """Make an outcome. `node`, `inputs` and `now` are those of the call, which `explain` repeats."""
        self._value = value
        self._error = error
        self._node = node
        self._inputs = inputs
        self._now = now
        self._trace_id: str | None = None
        self._ended_at = time_ns()

    @property
    def ok(self) -> bool:
        return self._error is None

    @property
    def value(self) -> OutputsT | None:
        """The outputs by name; None where there are none."""
        return self._value

    @property
    def error(self) -> ErrorInfo | None:
        """The reason why there are no outputs; None where there are."""
        return self._error

    @property
    def trace_id(self) -> str:
        """The name of this execution. Names sort in the order in which executions ended."""
        if self._trace_id is None:
            with _naming:  # two threads get the same name
                if self._trace_id is None:
                    self._trace_id = trace_id(self._ended_at)
        return self._trace_id

    def is_execution(self, execution: str) -> None:
        """Set the name under which the journal has the execution."""
        self._trace_id = execution

    def is_call(self, node: Node, inputs: Any, now: datetime | None) -> None:
        """Set the call that the outcome comes from."""
        self._node, self._inputs, self._now = node, inputs, now

    def explain(self, *, nearest: bool = True, tries: int | None = None) -> Explanation:
        """Return the explanation of this outcome: conditions, matched rows, parameters and reasons.

        The call runs again, traced; effects are not performed. `nearest` adds the nearest input with another outcome
        that is found within `tries` executions. Raises `NotExplained` where the call cannot be repeated.
        """
        from vesper.api.explanation.entry import NotExplained, explain_call

        if self._node is None:
            raise NotExplained("this outcome does not come from a call of a node in this process")
        return explain_call(self._node, self._inputs, self._now, self, nearest, tries)

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        """Leave out the node: an outcome goes to other processes without it."""
        state = {name: getattr(self, name) for name in ("_ended_at", "_error", "_trace_id", "_value")}
        return None, {**state, "_node": None, "_inputs": None, "_now": None}

    def unwrap(self) -> OutputsT:
        """Return the outputs, or raise the exception of `node.call`."""
        if self._error is not None:
            raise self._error.exception()
        assert self._value is not None
        return self._value

    def __eq__(self, other: object) -> bool:
        """Return whether outputs or errors are equal. Name and time of the execution are not compared."""
        if not isinstance(other, Outcome):
            return NotImplemented
        return self._value == other._value and self._error == other._error

    __hash__ = None  # type: ignore[assignment]  # outputs may be lists and dicts

    def __bool__(self) -> bool:
        return self._error is None

    def __getitem__(self, name: str) -> Any:
        outputs = self.unwrap()
        try:
            return outputs[name]
        except KeyError:
            raise KeyError(_no_such_output(name, outputs)) from None

    if not TYPE_CHECKING:  # a type checker that knows the outputs (`vesper stubs`) reports misspelt ones

        def __getattr__(self, name: str) -> Any:
            # Called for names without slot or property. Python itself requests names such as `__deepcopy__`.
            if name.startswith("__"):
                raise AttributeError(name)
            if self._value is None:
                assert self._error is not None
                raise AttributeError(f"no `{name}`: the outcome has no outputs ({self._error.kind}); look at `.error`")
            try:
                return self._value[name]
            except KeyError:
                raise AttributeError(_no_such_output(name, self._value)) from None

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *(self._value or ())})

    def __repr__(self) -> str:
        if self._error is not None:
            return f"<Outcome {self._error.kind}: {self._error.message}>"
        shown = ", ".join(f"{name}={_shown.repr(each)}" for name, each in (self._value or {}).items())
        return f"<Outcome ok: {shown}>"

    def _repr_html_(self) -> str:
        from vesper.api.forms.html import outcome_html

        return outcome_html(self)


if TYPE_CHECKING:
    # For type checkers an outcome is one of two classes, which `if outcome:` and `if outcome.ok:` tell apart.

    class Success(Outcome[OutputsT]):
        """An outcome with outputs."""

        ok: Literal[True]
        value: OutputsT
        error: None

        def __bool__(self) -> Literal[True]: ...

    class Failure(Outcome[OutputsT]):
        """An outcome without outputs."""

        ok: Literal[False]
        value: None
        error: ErrorInfo

        def __bool__(self) -> Literal[False]: ...

    class AnySuccess(Success[dict[str, Any]]):
        """An outcome whose outputs are not known to type checkers."""

        def __getattr__(self, name: str) -> Any: ...

    class AnyFailure(Failure[dict[str, Any]]):
        """An outcome without outputs, whose names are not known to type checkers."""

        def __getattr__(self, name: str) -> Any: ...

    AnyOutcome: TypeAlias = AnySuccess | AnyFailure

    def new_outcome(
        value: dict[str, Any] | None,
        error: ErrorInfo | None = None,
        node: Node | None = None,
        inputs: Any = None,
        now: datetime | None = None,
    ) -> AnyOutcome: ...
else:
    AnyOutcome = new_outcome = Outcome


def _no_such_output(name: str, outputs: Mapping[str, Any]) -> str:
    from vesper.language.diagnostics.suggest import did_you_mean

    hint = did_you_mean(name, outputs) or f"the outputs are {', '.join(outputs)}"
    return f"no output `{name}`; {hint}"
