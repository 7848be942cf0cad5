"""Runtime of flows in generated code: requests, calls of nodes, bounded loops, failures."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from datetime import datetime
from decimal import getcontext, setcontext
from functools import cache, wraps
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar

from vesper.kernels.decimal import EXACT, PYTHON_FAILURES, translate_failure
from vesper.kernels.raised import ClauseFailed, ContractBroken, DeclaredError, Raised
from vesper.values.generated.errors import ErrorCode
from vesper.values.model import MAX_ENTRIES

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")
_Code = TypeVar("_Code", bound=str)

FAILURES = (Raised, *PYTHON_FAILURES)
"""Exceptions that `on_error` can handle."""


class Request(NamedTuple):
    """A request for an effect. Only the Host performs it."""

    path: str
    effect: str
    effect_class: str
    fixed: Mapping[str, str]
    arguments: Mapping[str, object]
    key: str | None = None

    def below(self, where: str) -> Request:
        """Return the request of a called node, under the path of the call."""
        return self._replace(path=f"{where}/{self.path}")


class Wave(NamedTuple):
    """Requests that are performed together. The answer is a list of their results, or of `Raised`, in this order."""

    requests: tuple[Request, ...]

    def below(self, where: str) -> Wave:
        """Return the requests of a called node, under the path of the call."""
        return Wave(tuple([each.below(where) for each in self.requests]))


if TYPE_CHECKING:
    Asking = Generator[Request | Wave, Any, _Result]
else:
    Asking = Generator  # generated code annotates its return type with this
"""A node with effects: a generator that yields requests, receives completions, and returns outputs."""


def exact_steps(
    function: Callable[_Parameters, Asking[_Result]],
) -> Callable[_Parameters, Asking[_Result]]:
    """Wrap a node with effects so that it computes under the exact context.

    The caller's context is restored while a request is performed.
    """

    @wraps(function)
    def under_exact_context(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> Asking[_Result]:
        steps = function(*args, **kwargs)
        answer: object = None
        failure: Raised | None = None
        while True:
            callers = getcontext()
            setcontext(EXACT)
            try:
                request = steps.send(answer) if failure is None else steps.throw(failure)
            except StopIteration as end:
                result: _Result = end.value
                return result
            except PYTHON_FAILURES as untranslated:
                raise translate_failure(untranslated) from None
            finally:
                setcontext(callers)
            try:
                answer, failure = (yield request), None
            except Raised as thrown:
                answer, failure = None, thrown

    return under_exact_context


def code_of(failure: BaseException) -> str:
    """Return the code of a caught failure."""
    if isinstance(failure, Raised | ClauseFailed):
        return failure.code
    return ErrorCode.MISSING_KEY.value if isinstance(failure, KeyError) else ErrorCode.DECIMAL_OVERFLOW.value


def outside_of_the_flow(clauses: Callable[_Parameters, None]) -> Callable[_Parameters, None]:
    """Decorate clauses that are checked at an end of the flow.

    A failure in one is no failure of the flow, so no code in the node's `error_code` makes it a declared error.
    """

    @wraps(clauses)
    def check(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> None:
        try:
            clauses(*args, **kwargs)
        except FAILURES as failure:
            raise ClauseFailed(code_of(failure)).with_traceback(failure.__traceback__) from None

    return check


def one_of(code: str, members: tuple[_Code, ...]) -> _Code | None:
    """Return the code if it is among the members, else None."""
    return next((member for member in members if member == code), None)


def http_class(code: str) -> str:
    """Return `http_4xx` for `http_402`; empty for a code that is no status."""
    return f"{code[:6]}xx" if code.startswith("http_") and code[5:].isdigit() else ""


def path(name: str, *iterations: int) -> str:
    """Return the path of a request: the step, and in loops the iteration from 0."""
    return name + "".join(f"[{count - 1}]" for count in iterations)


def counted(iterations: int, maximum: int) -> int:
    """Return the incremented iteration count, or raise `loop_limit` at the maximum."""
    if iterations >= maximum:
        raise Raised(ErrorCode.LOOP_LIMIT)
    return iterations + 1


def keep(collected: list[Any], value: object) -> None:
    """Append the value that an iteration collects, or raise `too_large`."""
    if len(collected) >= MAX_ENTRIES:
        raise Raised(ErrorCode.TOO_LARGE)
    collected.append(value)


def called(node: Callable[..., _Result], /, **inputs: object) -> _Result:
    """Return the outputs of another node; any other outcome of it is a failure here."""
    try:
        return node(**_arguments(node, inputs))
    except DeclaredError as error:
        raise Raised(str(error.values["error_code"])) from error
    except ContractBroken as broken:
        raise Raised(ErrorCode.CONTRACT_BROKEN) from broken
    except (ClauseFailed, *PYTHON_FAILURES) as failure:
        raise Raised(code_of(failure)) from failure
    except Raised as failure:
        raise Raised(failure.code) from failure


def _takes_now(node: Callable[..., Any]) -> bool:
    """Return whether a node takes the start time.

    Engines declare it; a plain generated function has the parameter `now`.
    """
    declared: bool | None = getattr(node, "takes_now", None)
    return "now" in _parameters(node) if declared is None else declared


def _arguments(node: Callable[..., Any], inputs: dict[str, object]) -> dict[str, object]:
    """Return inputs by parameter name. An input `len` is the parameter `len_` of a plain function."""
    if hasattr(node, "takes_now") or inputs.keys() <= (names := _parameters(node)):
        return inputs
    found = {name if name in names else f"{name}_": value for name, value in inputs.items()}
    if len(found) < len(inputs):
        raise TypeError(f"inputs of {node.__name__} share a parameter: {', '.join(inputs)}")
    return found


@cache
def _parameters(node: Callable[..., Any]) -> frozenset[str]:
    from inspect import signature  # takes long to load, and a node that calls none needs it not

    return frozenset(signature(node).parameters)


def call_node(where: str, node: Callable[..., Any], now: datetime, /, **inputs: object) -> Asking[Any]:
    """Call a node and yield its requests under the path of the call."""
    if _takes_now(node):
        inputs["now"] = now
    steps = called(node, **inputs)
    if not isinstance(steps, Generator):
        return steps
    answer: object = None
    failure: Raised | None = None
    while True:
        try:
            request = _advance(steps, answer, failure)
        except StopIteration as end:
            return end.value
        try:
            answer, failure = (yield request.below(where)), None
        except Raised as thrown:
            answer, failure = None, thrown


def _advance(steps: Asking[Any], answer: object, failure: Raised | None) -> Request | Wave:
    try:
        return steps.send(answer) if failure is None else steps.throw(failure)
    except DeclaredError as error:
        raise Raised(str(error.values["error_code"])) from error
    except ContractBroken as broken:
        raise Raised(ErrorCode.CONTRACT_BROKEN) from broken
    except (ClauseFailed, *PYTHON_FAILURES) as failure:
        raise Raised(code_of(failure)) from failure
    except Raised as inner:
        raise Raised(inner.code) from inner
