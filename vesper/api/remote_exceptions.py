"""Exceptions of `vesper.kernels.raised` for executions without a traceback: on the direct engine, or from a journal.

Exceptions of generated Python find their place in the node by their traceback. These hold the end of the call, and are
caught under the same names. Raising one runs no Python: its attributes are read from the end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from vesper.api.error_info import ErrorInfo
from vesper.api.errors import Stopped as StoppedError
from vesper.engines import outcome as ended
from vesper.kernels import raised
from vesper.values.problem import Problem
from vesper.values.vesper_error import VesperError


class RemoteException(VesperError):
    """An exception that is made from an ending or an `ErrorInfo`."""

    if not TYPE_CHECKING:
        __init__ = Exception.__init__  # a C function: raising runs no Python

    @property
    def info(self) -> ErrorInfo:
        """The reason, as `outcome.error` has it."""
        (given,) = _stored_args(self)
        if type(given) is not ErrorInfo:
            given = ErrorInfo(given)
            _ARGS.__set__(self, (given,))
        return given

    @property
    def args(self) -> tuple[Any, ...]:  # type: ignore[override]  # a descriptor of the base class
        """The message."""
        return (self.info.message,)

    def __str__(self) -> str:
        return self.info.message

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.info.message!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.info,), vars(self)


_ARGS: Any = vars(BaseException)["args"]
_stored_args: Callable[[BaseException], tuple[Any, ...]] = _ARGS.__get__


class BadInput(RemoteException, raised.BadInput):
    @property
    def problems(self) -> tuple[Problem, ...]:  # type: ignore[override]  # an attribute there
        outcome = self.info.outcome
        return outcome.problems if isinstance(outcome, ended.Failed) else ()


class ContractBroken(RemoteException, raised.ContractBroken):
    @property
    def phase(self) -> str:  # type: ignore[override]  # as above
        return self.info.code

    @property
    def index(self) -> int:  # type: ignore[override]  # as above
        outcome = self.info.outcome
        assert isinstance(outcome, ended.ContractBroken)
        return outcome.index

    @property
    def values(self) -> dict[str, Any]:  # type: ignore[override]  # as above
        return dict(self.info.fields)


class DeclaredError(RemoteException, raised.DeclaredError):
    @property
    def values(self) -> Mapping[str, Any]:  # type: ignore[override]  # as above
        return dict(self.info.fields)


class Raised(RemoteException, raised.Raised):
    @property
    def code(self) -> str:  # type: ignore[override]  # as above
        return self.info.code


class Stopped(RemoteException, StoppedError):
    @property
    def kind(self) -> str:  # type: ignore[override]  # as above
        return self.info.kind

    @property
    def outcome(self) -> ended.Outcome:  # type: ignore[override]  # as above
        return self.info.outcome


BY_KIND: dict[str, type[RemoteException]] = {
    "declared_error": DeclaredError,
    "contract_broken": ContractBroken,
    "failed": Raised,
    "refused": BadInput,
}
"""By kind of outcome; `refused` are failures of the inputs. `Stopped` is that of all other kinds."""
