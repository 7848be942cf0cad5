"""What `node.call` is.

TO BE REPLACED, in this one place: generated modules are getting a function `call(inputs)` of their own
(`PythonProgram.entry`). For the python engine `entry` then returns that function, and no wrapper stays, where no limit
can be hit: without `limits`, and where the program is always plain. Elsewhere the fuel must be counted, as here.
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


def entry(compiled: Compiled, program: Program, limits: Limits | None) -> Callable[..., dict[str, Any]]:
    """A dict of inputs to a dict of outputs; what ends otherwise is raised as an exception of `kernels.raised`."""
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
