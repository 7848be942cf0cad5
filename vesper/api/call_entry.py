"""Choose the functions that calls of a node without effects go through.

Without limits, a node that cannot spend its fuel has nothing to count: `call` is then the engine's own function (the
generated `call`, or an entry of the extension). Elsewhere the engine runs the node, and its outcome is unwrapped here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from vesper.api.call_metrics import counted_call, path_of
from vesper.engines.engine import PYTHON, FastEntry, Limits, Program, Raises, Unwrap
from vesper.engines.outcome import Outcome, Returned

if TYPE_CHECKING:
    from vesper.api.observed.call_spans import CallSpans
    from vesper.api.observed.trace_sampling import CallSampling
    from vesper.compiler import Compiled


@dataclass(frozen=True, slots=True)
class Entries:
    """The functions behind the calls of a node without effects, chosen once when it is loaded."""

    call: Callable[..., dict[str, Any]]
    """A dict of inputs to a dict of outputs; raises the exceptions of `vesper.kernels.raised`."""
    call_many: Callable[[list[Any]], list[dict[str, Any]]] | None
    """The same for a list; None where `call` is called for each."""
    engine_call: Callable[..., Outcome]
    """`Program.call`, for inputs that `call` does not take as they are."""
    json: Callable[..., bytes] | None
    """JSON text to canonical JSON without Python objects; None where the engine has no such entry."""
    sampling: CallSampling | None = None
    """Decides which executions have traces, where any have (`vesper/api/observed/trace_sampling.py`)."""
    spans: CallSpans | None = None
    """Makes the spans of calls, where there are any (`vesper/api/observed/call_spans.py`)."""


def name_call(call: Callable[..., Any]) -> Callable[..., Any]:
    """Let Python's own message about wrong arguments name `node.call` instead of an internal function or class."""
    owner = getattr(call, "__self__", None)
    named = getattr(call, "__func__", call) if owner is None or hasattr(call, "__func__") else type(owner)
    named.__qualname__ = "node" if named is type(owner) else "node.call"
    return call


def entries_of(compiled: Compiled, program: Program, limits: Limits | None, takes_now: bool) -> Entries:
    """Return the fastest entries that the program has for these limits."""
    unwrap = _unwrap_of(compiled)
    fast = program if limits is None and isinstance(program, FastEntry) else None
    raises = _raises_of(compiled)
    call = None if fast is None else fast.fast_entry(unwrap, takes_now, raises)
    if call is None or path_of(program) == PYTHON:
        slow = call or _slow_entry(program, limits, unwrap, takes_now)
        call = counted_call(program, compiled, name_call(slow))
    return Entries(
        call=call,
        call_many=None if fast is None or takes_now else fast.fast_entry_for_many(unwrap, raises),
        engine_call=program.call,
        json=None if fast is None else fast.json_entry(_explain_json_of(compiled)),
    )


def _slow_entry(
    program: Program, limits: Limits | None, unwrap: Unwrap, takes_now: bool
) -> Callable[..., dict[str, Any]]:
    run = program.call

    def call(inputs: Mapping[str, Any]) -> dict[str, Any]:
        return unwrap(run(inputs, None, limits), inputs)

    def call_at(inputs: Mapping[str, Any], *, now: datetime) -> dict[str, Any]:
        return unwrap(run(inputs, now, limits), inputs)

    return call_at if takes_now else call


def _raises_of(compiled: Compiled) -> Raises:
    from vesper.api import remote_exceptions as told

    def explain(raw: Any, inputs: Mapping[str, Any]) -> object:
        from vesper.api.explain import explain
        from vesper.engines.direct_engine import outcome_of_raw

        return explain(compiled, outcome_of_raw(raw), inputs)

    return Raises(told.BadInput, told.ContractBroken, told.DeclaredError, told.Raised, told.Stopped, explain)


def _explain_json_of(compiled: Compiled) -> Callable[[bytes, bytes], bytes]:
    def explained(answer: bytes, text: bytes) -> bytes:
        from vesper.api.json_calls import explain_json

        return explain_json(compiled, answer, text)

    return explained


def _unwrap_of(compiled: Compiled) -> Unwrap:
    def unwrap(outcome: Outcome, inputs: Mapping[str, Any]) -> dict[str, Any]:
        if type(outcome) is Returned:
            return outcome.value  # type: ignore[return-value]  # both engines return a dict of their own
        from vesper.api.explain import error_info

        raise error_info(compiled, outcome, inputs).exception()

    return unwrap
