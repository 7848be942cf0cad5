"""A node as a Python object: a call returns an outcome, attributes describe inputs and outputs.

A call gives the engine the caller's objects first. Only objects that the engine refuses are converted, so plain dicts
cost nothing more.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from keyword import iskeyword
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeVar, overload

from vesper.api.call_entry import Entries, entries_of, name_call
from vesper.api.call_metrics import count_outcome
from vesper.api.description import describe
from vesper.api.errors import Stopped
from vesper.api.outcome import AnyOutcome, Outcome, new_outcome
from vesper.api.remote_exceptions import BadInput, RemoteException
from vesper.engines import outcome as ended
from vesper.engines.engine import (
    DEFAULT_LIMITS,
    Done,
    EngineUnavailable,
    Limits,
    ModalProgram,
    Program,
    PureExecution,
    Repeatable,
)
from vesper.kernels import raised
from vesper.values.base_types import is_a
from vesper.values.generated.errors import ErrorCode
from vesper.values.inputs import NotInputs
from vesper.values.model import accept, plain, show
from vesper.values.problem import Problem, ValueProblem
from vesper.values.types import TIMESTAMP, Type

if TYPE_CHECKING:
    import builtins
    from inspect import Signature

    from vesper.api.execution import Execution
    from vesper.api.forms.records import Records
    from vesper.api.input_conversion import Plain
    from vesper.api.observed.answer_stream import AnswerStream
    from vesper.api.runs import RunHandle
    from vesper.batch.table import Decimals
    from vesper.compiler import Compiled
    from vesper.host.host import Host
    from vesper.host.prepared import Prepared, Ran
    from vesper.journal.due import SignalSent

TableT = TypeVar("TableT")
_NOTHING: Any = object()
_DIRECT_MAP_INPUTS = 1_000
"""Inputs of `map` from which loading the direct engine costs less than it saves."""


@dataclass(frozen=True, slots=True)
class Field:
    """An input, an output, or a field of the node's errors."""

    name: str
    type: str
    """As in the node's text: `decimal`, `array<Line>`."""
    required: bool = True
    default: Any = None
    """The value of an input that is not given; None for a required one."""


class _NodeSignature:
    """The attribute `__signature__` of a node. The class `Node` has the signature of its constructor."""

    def __get__(self, node: Node | None, owner: type[Node]) -> Signature:
        if node is None:
            raise AttributeError("__signature__")
        return _signature(node, node._takes_now)


class _GivenHost:
    """The Host that a node was loaded with."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def get(self) -> Host:
        return self._host


class _DefaultHost:
    """The Host of a node that was loaded without one: each process finds the nearest configuration's."""

    def __init__(self, node_path: str) -> None:
        self._node_path = node_path
        self._found: tuple[int, Host] | None = None

    def get(self) -> Host:
        if self._found is None or self._found[0] != os.getpid() or self._found[1].is_closed:
            from vesper.api.default_hosts import default_host

            self._found = os.getpid(), default_host(self._node_path)
        return self._found[1]


class Node:
    """A loaded node. Immutable; any number of threads may call it."""

    id: str
    name: str
    version: int
    type: str
    intent: str
    path: str
    """The file, as messages name it."""
    engine: str
    limits: Limits
    """The limits of one execution."""
    semantic_hash: str
    inputs: Mapping[str, Field]
    outputs: Mapping[str, Field]
    errors: Mapping[str, Field]
    """The fields of the errors that the node declares."""
    warnings: tuple[str, ...]
    """The warnings of `vesper check`."""
    call: Callable[..., Any]
    """A dict of inputs to a dict of outputs; raises every other outcome.

    A node that is no function has the required keyword `now`. The Host performs the effects of a node.
    """
    __signature__ = _NodeSignature()

    def __init__(
        self,
        compiled: Compiled,
        program: Program,
        engine: str,
        limits: Limits | None,
        warnings: tuple[str, ...],
        host: Host | None = None,
        entries: Entries | None = None,
        direct: Callable[[], Program] | None = None,
    ) -> None:
        """Make a node of a loaded program. `entries` replace those that the program has, to sample traces.

        `direct` loads the program of tables and long lists; None where all calls are of one engine.
        """
        about = describe(compiled)
        if about.is_hosted:
            entries = None
        elif entries is None:
            entries = entries_of(compiled, program, limits, about.takes_now)
        self._assign(
            id=about.id,
            name=about.name,
            version=about.version,
            type=about.type,
            intent=about.intent,
            path=compiled.path,
            engine=engine,
            limits=DEFAULT_LIMITS if limits is None else limits,
            semantic_hash=compiled.semantic_hash,
            inputs=MappingProxyType({each[0]: Field(*each) for each in about.inputs}),
            outputs=MappingProxyType({each[0]: Field(*each) for each in about.outputs}),
            errors=MappingProxyType({each[0]: Field(*each) for each in about.errors}),
            warnings=warnings,
            call=name_call(self._hosted_call if entries is None else entries.call),
            _entries=entries,
            _compiled=compiled,
            _program=program,
            _limits=limits,
            _takes_now=about.takes_now,
            _is_simple=entries is not None and not about.takes_now,
            _host=_DefaultHost(compiled.path) if host is None else _GivenHost(host),
            _is_short=about.is_short,
            _load_direct=direct,
        )
        self._assign(__doc__=_documentation(self))

    def _assign(self, **attributes: object) -> None:
        """Set attributes while the node is made; later `__setattr__` refuses."""
        for name, value in attributes.items():
            object.__setattr__(self, name, value)

    @cached_property
    def run_json(self) -> Callable[..., bytes]:
        """A function from JSON text, in bytes, to the outcome as canonical JSON (docs/spec/values.md).

        Outcomes without outputs are JSON too. A node that is no function has the keyword `now`, as `call` has.
        """
        from vesper.api.json_calls import json_entry

        return json_entry(self)

    @cached_property
    def _types(self) -> Mapping[str, Type]:
        return {each.name: each.type for each in self._compiled.node.inputs}

    # -- as dataclasses ---------------------------------------------------------------------------

    @cached_property
    def _records(self) -> Records:
        from vesper.api.forms.records import Records

        return Records(self._compiled.node)

    @cached_property
    def Input(self) -> builtins.type[Any]:  # noqa: N802  # it is a class
        """The inputs as a frozen dataclass, which a call takes; `node.Input.Line` is the class of a record `Line`."""
        return self._records.input_class()

    @cached_property
    def Output(self) -> builtins.type[Any]:  # noqa: N802  # as above
        """The outputs as a frozen dataclass, which `as_output` returns."""
        return self._records.output_class()

    def as_output(self, outputs: Outcome[Any] | Mapping[str, Any], /) -> Any:
        """Return the outputs of an outcome, or a dict of them, as `node.Output`. Raises as `unwrap` does."""
        values = outputs.unwrap() if isinstance(outputs, Outcome) else outputs
        return self._records.outputs(self.Output, values)

    @property
    def served_as(self) -> str:
        """The last part of the node's address on a server.

        The id of the node, or the name without a version whose lead it is.
        """
        return self.id

    # -- running ----------------------------------------------------------------------------------

    def __call__(self, given: Any = _NOTHING, /, **inputs: Any) -> AnyOutcome:
        """Run the node. Inputs are keywords, or one dict, dataclass instance, pydantic model or JSON text."""
        if given is _NOTHING and self._is_simple:
            try:
                return new_outcome(self.call(inputs), None, self, inputs)
            except RemoteException as error:
                if type(error) is BadInput and self._may_convert(inputs):
                    return self._with_call(self._outcome_of_exception(inputs, None, error), inputs, None)
                return new_outcome(None, error.info, self, inputs)
            except Exception as error:  # noqa: BLE001  # every exception becomes an outcome
                return self._with_call(self._outcome_of_exception(inputs, None, error), inputs, None)
        return self._run(given, inputs)

    async def arun(self, given: Any = _NOTHING, /, **inputs: Any) -> AnyOutcome:
        """Run the node from a coroutine: at once where it is short, else in a thread.

        Cancelling does not end a thread that has begun; its outcome is dropped. A node with effects ends where it is
        cancelled before its first change; after that it runs to its end, which the journal has.
        """
        if self._entries is None:
            return await self._hosted_arun(given, inputs)
        arguments = () if given is _NOTHING else (given,)
        if self._is_short:
            return self(*arguments, **inputs)
        import asyncio

        return await asyncio.to_thread(self, *arguments, **inputs)

    def stream(self, given: Any = _NOTHING, /, **inputs: Any) -> AnswerStream[AnyOutcome]:
        """Run the node and return its events as an iterator, for `async for` or `for` (docs/how-to/stream-answers.md).

        Chunks of answers arrive before they are durable. Closing the iterator, or dropping it, ends the run. Raises
        `TypeError` for a node without effects, which has no events.
        """
        from vesper.api.observed.answer_stream import AnswerStream

        if self._entries is not None:
            raise TypeError(f"{self.id} has no effects, and so no events: call it")
        asked = self._run_arguments(given, inputs)
        host = self.host
        if isinstance(asked, Outcome):
            return AnswerStream.refused(host, asked)
        prepared, (plain, arguments) = self._prepare(host), asked
        return AnswerStream(
            host,
            lambda on_begun: host.run(prepared, *arguments, on_begun),
            lambda on_begun: host.arun(prepared, *arguments, on_begun),
            partial(self._named_outcome, plain),
        )

    @overload
    def map(
        self, many: Iterable[Any], /, *, now: datetime | str | None = None, outcomes: Literal[False] = False
    ) -> list[dict[str, Any]]: ...
    @overload
    def map(
        self, many: Iterable[Any], /, *, now: datetime | str | None = None, outcomes: Literal[True]
    ) -> list[AnyOutcome]: ...
    def map(self, many: Iterable[Any], /, *, now: datetime | str | None = None, outcomes: bool = False) -> list[Any]:
        """Return the result of `call` for each dict of inputs, in order.

        Raises the first other outcome, with a note of its place; later inputs are not run. With `outcomes` there is an
        outcome for each, and inputs may be anything that a call accepts in place of keywords. A node that is no
        function starts all of them at one time. A thousand inputs and more run on the direct engine, unless the node
        was loaded on a named one.
        """
        at = self._shared_start(now)
        if outcomes:
            return [self._run_at(each, at) for each in many]
        if self._entries is not None:
            call_many = self._entries.call_many
            if self._load_direct is not None and at is None:
                many = many if type(many) is list else list(many)
                if len(many) >= _DIRECT_MAP_INPUTS:
                    call_many = self._direct_call_many
            if call_many is not None:
                return call_many(many if type(many) is list else list(many))
        call = self.call if at is None else partial(self.call, now=at)
        answers = []
        for place, each in enumerate(many):
            try:
                answers.append(call(each))
            except Exception as error:
                error.add_note(f"these were the inputs {place} of `map`, counted from 0")
                raise
        return answers

    def start(self, given: Any, /, *, now: datetime | str | None = None) -> Execution:
        """Begin an execution whose requests the caller answers. `given` is what a call accepts in place of keywords."""
        from vesper.api.execution import Execution

        plain = self._to_plain(given)
        if plain.refused:
            return Execution(self._compiled, plain, PureExecution(partial(Done, _refusal(plain.refused), ())))
        return Execution(self._compiled, plain, self._program.start(plain.inputs, _start_time(now), self._limits))

    def start_run(self, given: Any, /, *, key: str | None = None, now: datetime | str | None = None) -> RunHandle:
        """Record a run that a process with this journal performs, and return its handle; durable on return.

        Of several calls with one `key` the first begins the run, and the others return its handle. Raises `BadInput`.
        """
        from vesper.api.runs import start_run

        return start_run(self, given, key, now)

    def enqueue(
        self,
        given: Any,
        /,
        *,
        key: str | None = None,
        delay: float | timedelta | None = None,
        priority: int | None = None,
        at: datetime | None = None,
    ) -> RunHandle:
        """Put a run into the node's queue, and return its handle; durable on return (docs/spec/queues.md).

        `delay` is in seconds. Of several calls with one `key` the first adds a run. Raises `BadInput`.
        """
        from vesper.api.runs import enqueue_run

        return enqueue_run(self, given, key=key, delay=delay, priority=priority, at=at)

    def signal(self, execution: str, name: str, value: object = None, *, key: str | None = None) -> SignalSent:
        """Send a signal to a run of the node's Host; a repeated `key` sends nothing (docs/spec/waiting.md)."""
        from vesper.api.runs import run_handle

        return run_handle(execution, host=self.host).signal(name, value, key=key)

    def run_batch(
        self,
        table: TableT,
        /,
        *,
        threads: int | None = None,
        keep: Iterable[str] = (),
        decimals: Decimals = None,
        error_column: str = "error",
        now: datetime | str | None = None,
    ) -> TableT:
        """Run the node on every row of a table, and return a table of the same kind.

        The direct engine runs tables, also of a node that was loaded without an engine. Accepts tables of pyarrow,
        polars, duckdb and pandas, and objects with `__arrow_c_stream__` or `__arrow_c_array__`. Outputs are columns,
        with a column of errors that is null where a row has outputs (docs/how-to/run-batches.md).

        `threads` run rows, by default one for each processor. `keep` names columns to copy. `decimals` is the form of
        decimals: `"text"`, or the number of digits after the point.
        """
        from vesper.api.batch import batch_of
        from vesper.batch.table import Wanted

        wanted = Wanted(threads, keep, decimals, error_column)
        moment = _start_time(now)
        start = moment if self._takes_now else None
        look_at = None
        if self._entries is not None and self._entries.sampling is not None:
            from vesper.api.observed.batch_trace_sampling import Rows

            look_at = Rows(self._entries.sampling, start).subscribe
        answer: TableT = batch_of(self._compiled, self._table_program, self._limits).run(table, wanted, start, look_at)
        return answer

    @cached_property
    def _table_program(self) -> Program:
        """The program that runs tables: direct where no engine was named and it is available."""
        if self._load_direct is None:
            return self._program
        try:
            return self._load_direct()
        except EngineUnavailable:
            return self._program

    @cached_property
    def _direct_call_many(self) -> Callable[[list[Any]], list[dict[str, Any]]] | None:
        """`map` of long lists; None where each call is observed, or the engine has no such entry."""
        entries = self._entries
        if entries is None or entries.sampling is not None or entries.spans is not None:
            return None
        return entries_of(self._compiled, self._table_program, self._limits, self._takes_now).call_many

    @property
    def mode(self) -> str | None:
        """The mode that this process applies, on the engine `auto`; None on any other engine."""
        return self._program.mode if isinstance(self._program, ModalProgram) else None

    @property
    def source(self) -> str:
        """The Python that Vesper generates for this node."""
        from vesper.codegen.module import generate_module

        return generate_module(self._compiled.node, traced=False).text

    # -- what a call comes to ---------------------------------------------------------------------

    def _run(self, given: Any, inputs: dict[str, Any]) -> AnyOutcome:
        """Run a call with all its arguments."""
        if self._entries is None:
            asked = self._run_arguments(given, inputs)
            if isinstance(asked, Outcome):
                return asked
            host = self.host
            return self._named_outcome(asked[0], host.run(self._prepare(host), *asked[1]))
        given, now = self._resolve_inputs(given, inputs)
        return self._run_pure(self._entries, given, now)

    def _run_at(self, given: Any, now: datetime | None) -> AnyOutcome:
        """Run a call of one object, at this time."""
        if self._entries is not None:
            return self._run_pure(self._entries, given, now)
        plain = self._to_plain(given)
        if plain.refused:
            return outcome_of(self._compiled, _refusal(plain.refused), {}, plain)
        host = self.host
        ran = host.run(self._prepare(host), plain.inputs, now or self._start(None), self._limits)
        return self._named_outcome(plain, ran)

    def _with_call(self, outcome: AnyOutcome, inputs: Any, now: datetime | None) -> AnyOutcome:
        outcome.is_call(self, inputs, now)
        return outcome

    def _run_pure(self, entries: Entries, given: Any, now: datetime | None) -> AnyOutcome:
        return self._with_call(self._pure_outcome(entries, given, now), given, now)

    def _pure_outcome(self, entries: Entries, given: Any, now: datetime | None) -> AnyOutcome:
        if not is_a(given, dict):
            plain = self._to_plain(given)
            if plain.refused:
                return outcome_of(self._compiled, _refusal(plain.refused), {}, plain)
            call = entries.engine_call if entries.spans is None else entries.spans.engine_call
            outcome = count_outcome(self._program, self.id, call(plain.inputs, now, self._limits))
            return outcome_of(self._compiled, outcome, plain.inputs, plain)
        try:
            return new_outcome(self.call(given) if now is None else self.call(given, now=now))
        except Exception as error:  # noqa: BLE001  # as above
            return self._outcome_of_exception(given, now, error)

    def _resolve_inputs(self, given: Any, inputs: dict[str, Any]) -> tuple[Any, datetime | None]:
        """Return the inputs of a call and its start time."""
        now = None
        if self._takes_now:
            # An input of this name takes precedence; the start is then an argument of `call`.
            now = self._start(None if "now" in self.inputs else inputs.pop("now", None))
        if given is _NOTHING:
            given = inputs
        elif inputs:
            raise TypeError(f"{self.id} takes its inputs as keywords or as one object, not both: {', '.join(inputs)}")
        return given, now

    def _start(self, now: object) -> datetime:
        """Return the start time of a run: from the caller, the Host or the clock."""
        return self.host.moment() if now is None and self._entries is None else _start_time(now)

    def _shared_start(self, now: object) -> datetime | None:
        """Return one start time for many runs.

        A function has none, but a value that is no time is refused.
        """
        if self._takes_now:
            return self._start(now)
        if now is not None:
            _start_time(now)
        return None

    # -- on a Host --------------------------------------------------------------------------------

    @property
    def host(self) -> Host:
        """The Host that performs the effects: that of `load`, or of the nearest `vesper.toml` at the first call."""
        return self._host.get()

    def _prepare(self, host: Host) -> Prepared:
        return host.prepare(self._compiled, self._program, self.engine)

    def _run_arguments(
        self, given: Any, inputs: dict[str, Any]
    ) -> AnyOutcome | tuple[Plain, tuple[Mapping[str, Any], datetime, Limits | None]]:
        """Return the arguments of a run, or an outcome where the inputs are refused."""
        given, now = self._resolve_inputs(given, inputs)
        plain = self._to_plain(given)
        if plain.refused:
            return outcome_of(self._compiled, _refusal(plain.refused), {}, plain)
        return plain, (plain.inputs, now or self._start(None), self._limits)

    def _named_outcome(self, plain: Plain, ran: Ran) -> AnyOutcome:
        outcome = outcome_of(ran.definition or self._compiled, ran.outcome, plain.inputs, plain)
        outcome.is_execution(ran.execution)
        return self._with_call(outcome, plain.inputs, None)

    async def _hosted_arun(self, given: Any, inputs: dict[str, Any]) -> AnyOutcome:
        asked = self._run_arguments(given, inputs)
        if isinstance(asked, Outcome):
            return asked
        host = self.host
        return self._named_outcome(asked[0], await host.arun(self._prepare(host), *asked[1]))

    def _hosted_call(self, inputs: dict[str, Any], *, now: datetime | None = None) -> dict[str, Any]:
        """Run `call` of a node with effects."""
        if not is_a(inputs, dict):
            raise NotInputs(f"{self.id}.call takes a dict of inputs, not {type(inputs).__name__}")
        plain = self._to_plain(inputs)
        host = self.host
        ran = host.run(self._prepare(host), plain.inputs, self._start(now), self._limits)
        return dict(self._named_outcome(plain, ran).unwrap())

    def _outcome_of_exception(self, inputs: Mapping[str, Any], now: datetime | None, error: Exception) -> AnyOutcome:
        """Return the outcome of a call that raised.

        Where the exception does not have the whole outcome, the engine runs the node again: it is a function of its
        inputs and its start.
        """
        if isinstance(error, RemoteException):
            if type(error) is not BadInput or not self._may_convert(inputs):
                return new_outcome(None, error.info)
        elif isinstance(error, raised.DeclaredError):
            return outcome_of(self._compiled, ended.DeclaredError(_to_caller(error.values)), inputs)
        elif isinstance(error, raised.ContractBroken):
            broken = ended.ContractBroken(error.phase, error.index, _to_caller(error.values))
            return outcome_of(self._compiled, broken, inputs)
        elif isinstance(error, Stopped):
            return outcome_of(self._compiled, error.outcome, inputs)
        elif isinstance(error, raised.BadInput) and not self._may_convert(inputs):
            return outcome_of(self._compiled, ended.Failed(ErrorCode.BAD_INPUT, None, error.problems), inputs)
        assert self._entries is not None  # only calls of a node without effects raise into this method
        rerun = self._program.rerun if isinstance(self._program, Repeatable) else self._entries.engine_call
        if type(error) is raised.Raised:
            from vesper.api.error_info import ErrorInfo
            from vesper.api.explain import FailedEnding, snapshot

            given = snapshot(inputs)
            again = partial(rerun, given, now, self._limits)
            return new_outcome(None, ErrorInfo(FailedEnding(self._compiled, error.code, again)))
        found = self._to_plain(inputs)
        outcome = rerun(found.inputs if found.changed else inputs, now, self._limits)
        return outcome_of(self._compiled, outcome, found.inputs, found)

    def _may_convert(self, inputs: Mapping[str, Any]) -> bool:
        """Return whether an input may hold an object that only the API converts."""
        for name in self._object_inputs:  # noqa: SIM110  # `any` takes longer than the call
            if type(inputs.get(name)) is not str:
                return True
        return False

    @cached_property
    def _object_inputs(self) -> tuple[str, ...]:
        from vesper.api.input_conversion import holds_objects

        return tuple(name for name, type_ in self._types.items() if holds_objects(type_))

    def _to_plain(self, given: object) -> Plain:
        """Return the inputs as plain objects."""
        from vesper.api.input_conversion import declared_fields, inputs_of_json, plain_inputs

        if is_a(given, dict):
            return plain_inputs(self._types, dict(dict.items(given)))
        if is_a(given, str) or is_a(given, bytes) or is_a(given, bytearray):
            return inputs_of_json(self._compiled.node.inputs, given)
        found = declared_fields(given, self._types)
        if found is None:
            raise TypeError(
                f"{self.id} takes its inputs as keywords, a dict, a dataclass instance, a pydantic model or JSON text, "
                f"not as {type(given).__name__}"
            )
        plain = plain_inputs(self._types, found)
        plain.changed = True
        return plain

    # -- being an object --------------------------------------------------------------------------

    def __repr__(self) -> str:
        return f"<Node {self.id} on {self.engine}: {', '.join(self.inputs)} -> {', '.join(self.outputs)}>"

    def _repr_html_(self) -> str:
        from vesper.api.forms.html import node_html

        return node_html(self)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a node does not change: cannot set `{name}`")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a node does not change: cannot delete `{name}`")

    def __copy__(self) -> Node:
        return self

    def __deepcopy__(self, memo: object) -> Node:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{self.id} cannot be pickled: load it in the process that calls it")

    _compiled: Compiled
    _program: Program
    _entries: Entries | None
    """None for a node with effects: a Host runs it."""
    _limits: Limits | None
    _takes_now: bool
    _host: _GivenHost | _DefaultHost
    _is_simple: bool
    """True where keyword inputs go to `call` as they are."""
    _is_short: bool
    _load_direct: Callable[[], Program] | None


def outcome_of(
    compiled: Compiled, outcome: ended.Outcome, inputs: Mapping[str, Any], plain: Plain | None = None
) -> AnyOutcome:
    """Return the outcome for the caller; imports `vesper.api.explain` only for an explanation."""
    from vesper.api.explain import outcome_of as explained

    return explained(compiled, outcome, inputs, plain)


def _to_caller(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return values of generated code for callers: json as plain objects."""
    return {name: plain(value) for name, value in values.items()}


def _refusal(problems: tuple[Problem, ...]) -> ended.Failed:
    return ended.Failed(ErrorCode.BAD_INPUT, None, problems)


def _start_time(now: object) -> datetime:
    """Return the start of an execution: the given time, or else the current one."""
    if now is None:
        return datetime.now(UTC)
    try:
        found = accept(TIMESTAMP, now)
    except ValueProblem as problem:
        raise ValueError(
            f"now={show(now)}: {problem.kind.value.replace('_', ' ')}; give a datetime with a time zone"
        ) from None
    assert isinstance(found, datetime)
    return found


# -- what the node says of itself -----------------------------------------------------------------


def _signature(node: Node, takes_now: bool) -> Signature:
    """Return the keywords of a call. An input named like a Python keyword can only be given in a dict."""
    from inspect import Parameter, Signature

    parameters = [
        Parameter(
            each.name,
            Parameter.KEYWORD_ONLY,
            default=Parameter.empty if each.required else each.default,
            annotation=each.type,
        )
        for each in node.inputs.values()
        if not iskeyword(each.name)
    ]
    if takes_now and "now" not in node.inputs:
        parameters.append(Parameter("now", Parameter.KEYWORD_ONLY, default=None, annotation="timestamp"))
    if any(iskeyword(name) for name in node.inputs):
        parameters.append(Parameter("_inputs", Parameter.VAR_KEYWORD))
    return Signature(parameters, return_annotation="Outcome")


def _documentation(node: Node) -> str:
    lines = [node.intent, "", f"{node.id}, {node.type}, from {node.path}"]
    for title, fields in (("Inputs", node.inputs), ("Outputs", node.outputs), ("Errors", node.errors)):
        if fields:
            width = max(map(len, fields))
            lines += ["", f"{title}:"]
            for each in fields.values():
                default = "" if each.required else f" = {show(each.default)}"
                lines.append(f"    {each.name:<{width}}  {each.type}{default}")
    return "\n".join(lines)
