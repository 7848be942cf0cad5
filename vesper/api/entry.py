"""What `node.call` is: the generated function itself wherever that is all there is to do.

Without limits, a node that could not spend its fuel however it is called has nothing to count: `call` is then the
function `call` of its generated module. Elsewhere the engine runs it, and what it comes to is raised here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from vesper.api.explain import error_info
from vesper.codegen.function import takes_now
from vesper.compiler import Compiled
from vesper.engines.engine import Limits, Program
from vesper.engines.outcome import Returned
from vesper.engines.python_engine import PythonProgram


def entry(compiled: Compiled, program: Program, limits: Limits | None) -> Callable[..., dict[str, Any]]:
    """A dict of inputs to a dict of outputs; what ends otherwise is raised as an exception of `kernels.raised`."""
    if isinstance(program, PythonProgram) and limits is None and program.is_always_plain:
        return program.entry
    run = program.call

    def call(inputs: Mapping[str, Any]) -> dict[str, Any]:
        outcome = run(inputs, None, limits)
        if type(outcome) is Returned:
            return outcome.value  # type: ignore[return-value]  # both engines give a dict of their own
        raise error_info(compiled, outcome, inputs).exception()

    def call_at(inputs: Mapping[str, Any], *, now: datetime) -> dict[str, Any]:
        outcome = run(inputs, now, limits)
        if type(outcome) is Returned:
            return outcome.value  # type: ignore[return-value]  # as above
        raise error_info(compiled, outcome, inputs).exception()

    return call_at if takes_now(compiled.node) else call
