"""What `node.call` is: the generated function itself wherever that is all there is to do.

Without limits, a node that could not spend its fuel however it is called has nothing to count: `call` is then the
function `call` of its generated module. Elsewhere the engine runs it, and what it comes to is raised here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

from vesper.engines.engine import Limits, Program
from vesper.engines.outcome import Outcome, Returned

if TYPE_CHECKING:
    from vesper.compiler import Compiled
    from vesper.engines.python_engine import PythonProgram


# What a program may have besides what every program has, asked for by name: a protocol that can be asked takes as long
# to make as a module to load.
#   way_in(ended)           a faster way in than its `call`, or None (`vesper/migration/router/router.py`)
#   way_in_takes_now        true where that takes `now` as a keyword, for a node that does
#   way_in_for_many(ended)  the same for a list of inputs
#   again(inputs, now, limits)  the same call, where a second one would be a second request


def entry(
    compiled: Compiled, program: Program, limits: Limits | None, takes_now: bool
) -> Callable[..., dict[str, Any]]:
    """A dict of inputs to a dict of outputs; what ends otherwise is raised as an exception of `kernels.raised`."""
    # Only a program of the python engine has this: who calls another engine does not load that one to ask.
    if limits is None and getattr(program, "is_always_plain", False):
        return cast("PythonProgram", program).entry
    run = program.call
    ended = _ending(compiled)
    if limits is None and (not takes_now or getattr(program, "way_in_takes_now", False)):
        has_way_in = getattr(program, "way_in", None)
        way_in: Callable[..., dict[str, Any]] | None = None if has_way_in is None else has_way_in(ended)
        if way_in is not None:
            return way_in

    def call(inputs: Mapping[str, Any]) -> dict[str, Any]:
        return ended(run(inputs, None, limits), inputs)

    def call_at(inputs: Mapping[str, Any], *, now: datetime) -> dict[str, Any]:
        return ended(run(inputs, now, limits), inputs)

    return call_at if takes_now else call


def entry_for_many(
    compiled: Compiled, program: Program, limits: Limits | None, takes_now: bool
) -> Callable[[list[Any]], list[dict[str, Any]]] | None:
    """A list of dicts of inputs to a list of dicts of outputs, in one call; None where `entry` is called for each."""
    has_way_in = getattr(program, "way_in_for_many", None)
    if limits is not None or has_way_in is None or takes_now:
        return None
    way_in: Callable[[list[Any]], list[dict[str, Any]]] | None = has_way_in(_ending(compiled))
    return way_in


def _ending(compiled: Compiled) -> Callable[[Outcome, Mapping[str, Any]], dict[str, Any]]:
    def ended(outcome: Outcome, inputs: Mapping[str, Any]) -> dict[str, Any]:
        if type(outcome) is Returned:
            return outcome.value  # type: ignore[return-value]  # both engines give a dict of their own
        from vesper.api.explain import error_info

        raise error_info(compiled, outcome, inputs).exception()

    return ended
