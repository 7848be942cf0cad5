"""`vesper.adopt(function, node)`: a node is moved in behind a function that is there already."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

from vesper.api.load import compiled_node
from vesper.migration.router.adoption import FunctionCall, answers_of, check_adoptable, check_function, function_name

if TYPE_CHECKING:
    from vesper.migration.router.routes import Routes

P = ParamSpec("P")
R = TypeVar("R")


class Adopted(Generic[P, R]):
    """Called as the function is. `node` says what stands behind it, and `mode` where that stands."""

    def __init__(self, function: Callable[P, R], compiled: Any, routes: Routes) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._answers = answers_of(compiled)
        self._names = tuple(each.name for each in compiled.node.inputs)
        self._program = routes.adopted(compiled, function_name(function))
        self.node: str = compiled.node.node_id

    def __call__(self, *arguments: P.args, **inputs: P.kwargs) -> R:
        given = self._given(arguments, inputs)
        if given is None:
            return self._function(*arguments, **inputs)
        call = FunctionCall(lambda **_: self._function(*arguments, **inputs), self._answers)
        answer = self._program.call(call, given)
        if answer is not None:
            return dict(answer.value)  # type: ignore[return-value]
        if call.error is not None:
            raise call.error
        return call.result  # type: ignore[no-any-return]

    def _given(self, arguments: tuple[Any, ...], inputs: dict[str, Any]) -> dict[str, Any] | None:
        """Arguments by position under the names of the function's own parameters. None where it does not say these, or
        does not take what it is given: that is between it and its caller."""
        if not arguments:
            return dict(inputs)
        import inspect

        try:
            bound = inspect.signature(self._function).bind(*arguments, **inputs)
        except (TypeError, ValueError):
            return None
        return dict(bound.arguments)

    @property
    def mode(self) -> str:
        """The mode that this process has it in."""
        return self._program.live.local.mode.value

    def __repr__(self) -> str:
        return f"<{self.__wrapped__!r} adopted by {self.node}: {self.mode}>"  # type: ignore[attr-defined]


def adopt(
    function: Callable[P, R],
    node: str | os.PathLike[str],
    *,
    nodes: str | os.PathLike[str] | None = None,
    routes: Routes | None = None,
) -> Adopted[P, R]:
    """Put a node behind a function: the function answers, the node follows, and takes over as the evidence allows.

    The function is called with the node's inputs as keyword arguments and returns a dict of its outputs. What it is
    called with and gives back stays as it is. The node must be without effects; `vesper status` shows where it stands.
    """
    from vesper.api.default_hosts import default_routes

    compiled, path, _ = compiled_node(node, nodes)
    check_adoptable(compiled)
    check_function(function, compiled)
    return Adopted(function, compiled, routes or default_routes(str(path), None))
