"""`vesper.adopt(function, node)`: migrates an existing function to a node."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

from vesper.api.load import compiled_node
from vesper.migration.router.adoption import FunctionCall, check_adoptable, check_function, function_name
from vesper.verify.differential.against import answers_of
from vesper.verify.differential.python_forms import to_python

if TYPE_CHECKING:
    from vesper.migration.router.routes import Routes

P = ParamSpec("P")
R = TypeVar("R")


class Adopted(Generic[P, R]):
    """A function that migrates to a node, called like the original one. `node` is the node's id, `mode` its mode."""

    def __init__(self, function: Callable[P, R], compiled: Any, routes: Routes) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._answers = answers_of(compiled.node)
        self._names = tuple(each.name for each in compiled.node.inputs)
        self._program = routes.adopted(compiled, function_name(function))
        self.node: str = compiled.node.node_id

    def __call__(self, *arguments: P.args, **inputs: P.kwargs) -> R:
        given = self._bind(arguments, inputs)
        if given is None:
            return self._function(*arguments, **inputs)
        call = FunctionCall(lambda **_: self._function(*arguments, **inputs), self._answers)
        answer = self._program.call(call, given)
        if answer is not None:
            return to_python(dict(answer.value))  # type: ignore[return-value]
        if call.error is not None:
            raise call.error
        return call.result  # type: ignore[no-any-return]

    def _bind(self, arguments: tuple[Any, ...], inputs: dict[str, Any]) -> dict[str, Any] | None:
        """Return the arguments by the names of the function's parameters.

        None where the signature is unknown or the arguments do not fit it: the function then reports the mistake
        itself.
        """
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
        """The mode that this process applies."""
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
    """Migrate a function to a node: the function answers until the evidence promotes the node.

    The function receives the node's inputs as keyword arguments and returns a dict of its outputs. Its arguments and
    results are not changed. The node must be without effects; `vesper status` shows its mode.
    """
    from vesper.api.default_hosts import default_routes

    compiled, path, _ = compiled_node(node, nodes)
    check_adoptable(compiled)
    check_function(function, compiled)
    return Adopted(function, compiled, routes or default_routes(str(path), None))
