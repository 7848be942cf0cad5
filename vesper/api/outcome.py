"""The outcome of a call: plain data, without an exception and without objects of an engine.

Every call makes one, so it has two fields and the time.
"""

from __future__ import annotations

from _thread import allocate_lock
from collections.abc import Mapping
from reprlib import Repr
from time import time_ns
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from vesper.journal.execution_id import trace_id

if TYPE_CHECKING:
    from vesper.api.error_info import ErrorInfo

OutputsT = TypeVar("OutputsT", bound=Mapping[str, Any])

_naming = allocate_lock()
_shown = Repr()
_shown.maxstring = _shown.maxother = 60


class Outcome(Generic[OutputsT]):
    """The outputs of a node, or the reason why there are none. True where there are outputs.

    An output is `outcome["fee"]`, and `outcome.fee` where no attribute of an outcome has its name.
    """

    __slots__ = ("_ended_at", "_error", "_trace_id", "_value")

    def __init__(self, value: OutputsT | None, error: ErrorInfo | None = None) -> None:
        self._value = value
        self._error = error
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

    def unwrap(self) -> OutputsT:
        """Return the outputs, or raise the exception of `node.call`."""
        if self._error is not None:
            raise self._error.exception()
        assert self._value is not None
        return self._value

    def __eq__(self, other: object) -> bool:
        """Two outcomes are equal with equal outputs, or equal errors. Name and time of the execution do not count."""
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


if TYPE_CHECKING:

    class AnyOutcome(Outcome[dict[str, Any]]):
        """An outcome whose outputs are not known to type checkers."""

        def __getattr__(self, name: str) -> Any: ...
else:
    AnyOutcome = Outcome


def _no_such_output(name: str, outputs: Mapping[str, Any]) -> str:
    from vesper.language.diagnostics.suggest import did_you_mean

    hint = did_you_mean(name, outputs) or f"the outputs are {', '.join(outputs)}"
    return f"no output `{name}`; {hint}"
