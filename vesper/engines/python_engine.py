"""The reference engine: generates Python from the IR, loads it, and converts its exceptions to outcomes."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from decimal import Decimal, DecimalException
from functools import cached_property, partial
from time import monotonic
from types import CodeType, SimpleNamespace, TracebackType
from typing import TYPE_CHECKING, Any, cast

from vesper.engines.engine import (
    DEFAULT_LIMITS,
    PYTHON,
    Blocked,
    Completion,
    Done,
    EngineUnavailable,
    FastEntry,
    Limits,
    NowMissing,
    Observer,
    Raises,
    Request,
    Unwrap,
)
from vesper.engines.outcome import ContractBroken, DeclaredError, EngineFault, Failed, LimitHit, Outcome, Returned
from vesper.kernels import raised
from vesper.kernels.runtime.flow import Request as AskedFor
from vesper.kernels.runtime.flow import Wave, code_of
from vesper.kernels.runtime.meter import LimitExceeded, Meter
from vesper.kernels.work import FORM, LargeCall
from vesper.values.generated.errors import ErrorCode
from vesper.values.inputs import Declared, NotInputs, accept_inputs
from vesper.values.model import Value, ValueProblem, accept, plain
from vesper.values.period import Period
from vesper.values.types import Primitive

if TYPE_CHECKING:
    from vesper.codegen.module import GeneratedModule
    from vesper.compiler import Compiled
    from vesper.language.ir.nodes import Expression, Node
    from vesper.values.types import Type


def generate_module(node: Node, traced: bool = False, metered: bool = False) -> GeneratedModule:
    """Generate a module; imports the generator only for a node without cached text."""
    from vesper.codegen.module import generate_module as generate

    return generate(node, traced, metered)


class PythonEngine:
    name = "python"

    def __init__(self, prepares: bool = True) -> None:
        """Without `prepares`, each form is generated at its first use: for callers that only observe."""
        self._prepares = prepares

    def load(self, compiled: Compiled) -> PythonProgram:
        if not _has_code_positions():
            raise EngineUnavailable(
                "Python runs without code positions (PYTHONNODEBUGRANGES or -X no_debug_ranges); "
                "the python engine needs them to say where a node fails"
            )
        return PythonProgram(compiled, self._prepares)


def _provide_table(ir: bytes, table: str) -> None:
    """Make a table known to the kernels; imports them only for a node with tables."""
    from vesper.kernels.lookup import provide
    from vesper.language.ir.lookup_tables import read_table

    provide(table, partial(read_table, ir, table))


def _has_code_positions() -> bool:
    """Return whether code objects have column positions."""
    return all(column is not None for _, _, column, _ in list(compile("a + b", "", "eval").co_positions())[1:])


class _LoadedFunction:
    """One form of the generated function: plain, metered or traced."""

    def __init__(self, compiled: Compiled, node_id: str, form: str, callees: Mapping[str, Callable[..., Any]]) -> None:
        # No file has this name, so tracebacks request the lines from the loader below.
        self.filename = f"vesper:{node_id}{'' if form == 'plain' else f':{form}'}"
        self.text, function, self.parameters, self.sites, code = compiled.kept.fact(
            f"python.{form}", lambda: _generate_form(compiled, form, self.filename)
        )
        self._lines = self.text.splitlines()
        namespace: dict[str, Any] = {
            "__name__": f"vesper.generated.{node_id}",
            FORM: form,
            "__loader__": _Text(self.text),
            "__builtins__": {**vars(builtins), "__import__": _importer(callees)},
        }
        # The generator built the text as a tree and checked it against the allow-list of forms (codegen/vocabulary.py).
        # Cached text has a MAC that only this user can make.
        exec(code, namespace)  # noqa: S102
        self.function: Callable[..., Any] = namespace[function]
        self.entry: Callable[..., Any] = namespace["call"]

    def arguments(self, values: Mapping[str, Value]) -> dict[str, Value]:
        return dict(zip(self.parameters, values.values(), strict=True))

    def site(self, traceback: TracebackType | None) -> int | None:
        """Return the IR expression that was being evaluated when this was raised."""
        found = None
        while traceback is not None:
            code = traceback.tb_frame.f_code
            if code.co_filename == self.filename:
                found = self._site_in(code, traceback.tb_lasti)
            traceback = traceback.tb_next
        return found

    def has_raised(self, error: Exception) -> bool:
        """Return whether the exception comes from this form."""
        traceback = error.__traceback__
        while traceback is not None:
            if traceback.tb_frame.f_code.co_filename == self.filename:
                return True
            traceback = traceback.tb_next
        return False

    def _site_in(self, code: CodeType, instruction: int) -> int | None:
        for offset, position in enumerate(code.co_positions()):
            if offset * 2 == instruction:
                line, end_line, column, end_column = position
                if line is None or end_line is None or column is None or end_column is None:
                    return None
                start, end = self._characters(line, column), self._characters(end_line, end_column)
                return self.sites.get((line, start, end_line, end))
        return None

    def _characters(self, line: int, column: int) -> int:
        """Convert a column in UTF-8 bytes to a column in characters. Python counts bytes, the map counts characters."""
        return len(self._lines[line - 1].encode("utf-8")[:column].decode("utf-8"))


def _generate_form(
    compiled: Compiled, form: str, filename: str
) -> tuple[str, str, tuple[str, ...], dict[tuple[int, int, int, int], int], CodeType]:
    """Return text, function name, parameters, map to the IR and code of a form. All are plain data for the cache."""
    made = generate_module(compiled.node, form == "traced", form == "metered")
    # Compiled under `annotations` of this module: annotations stay text.
    return made.text, made.function, made.parameters, made.sites, compile(made.text, filename, "exec")


class _Text:
    """A loader for `linecache`, so that tracebacks and debuggers show lines of generated text."""

    def __init__(self, text: str) -> None:
        self._text = text

    def get_source(self, name: str) -> str:  # one loader for one module
        return self._text


def _importer(callees: Mapping[str, Callable[..., Any]]) -> Callable[..., Any]:
    """Return the `__import__` of generated code: called nodes are those of this program."""

    def import_(name: str, globals_: Any = None, locals_: Any = None, names: Any = (), level: int = 0) -> Any:
        if level == 1:
            return SimpleNamespace(**{name: callees[name]})
        return builtins.__import__(name, globals_, locals_, names, level)

    return import_


class PythonProgram(FastEntry):
    """A node as generated Python. The metered and the traced form are made at their first use."""

    execution_path = PYTHON

    def __init__(self, compiled: Compiled, prepares: bool = True) -> None:
        self._compiled = compiled
        self.semantic_hash = compiled.semantic_hash
        programs = [PythonProgram(each, prepares) for each in compiled.callees]
        self._callees = {each.node_id: each for each in programs}
        self.node_id: str
        self.takes_now: bool
        self.is_plain: bool
        """True where generated code is a plain function."""
        self.has_json: bool
        self._copies: bool
        self.fuel_bound: int
        self.memory_bound: int
        self.has_work: bool
        """True where an operation may be a large call."""
        (
            self.node_id,
            self.takes_now,
            self.is_plain,
            self.has_json,
            self._copies,
            self.fuel_bound,
            self.memory_bound,
            self.has_work,
        ) = compiled.kept.fact("python.facts", lambda: _facts(compiled.node, self._callees))
        self.is_always_plain: bool = not self.counts_loops(DEFAULT_LIMITS) and (self.is_plain or not self.has_work)
        """True where nothing has to be counted until a call is large: loops cannot exceed the default limits."""
        for table in compiled.kept.fact("python.tables", lambda: [each.hash for each in compiled.node.lookup_tables]):
            _provide_table(compiled.ir, table)
        self._forms: dict[str, _LoadedFunction] = {}
        if prepares:
            self._forms["plain"] = self._load("plain")

    @cached_property
    def _plain(self) -> _LoadedFunction:
        return self.form("plain")

    @cached_property
    def function(self) -> Callable[..., Any]:
        """The generated function: takes and returns values."""
        return self._plain.function

    @cached_property
    def entry(self) -> Callable[..., Any]:
        """The generated `call`: takes a dict, returns the outputs or raises an exception of `vesper.kernels.raised`.

        A node with effects returns its generator. A node that is no function has the keyword `now`. A node that could
        exceed the default fuel has the `call` of the metered form.
        """
        if not self.is_always_plain:
            return self._metered_entry
        return self._retried_entry if self.has_work else self._plain.entry

    def _retried_entry(self, inputs: Mapping[str, object], **now: datetime) -> Any:
        """Run the plain form; after a large call, the metered form from the start."""
        try:
            return self._plain.entry(inputs, **now)
        except LargeCall:
            return self._metered_entry(inputs, **now)

    def fast_entry(
        self, unwrap: Unwrap, takes_now: bool, raises: Raises | None = None
    ) -> Callable[..., dict[str, Any]] | None:
        """Return the generated `call` itself, where no call could spend the default fuel."""
        return self.entry if self.is_always_plain else None

    @property
    def node(self) -> Node:
        return self._compiled.node

    @cached_property
    def _declared(self) -> Declared:
        return self.node.declared_inputs

    @cached_property
    def _request_types(self) -> tuple[dict[str, Type], dict[str, str]]:
        """The result type of each request, by step, and the node of each call."""
        from vesper.language.ir.statements import CallNode, all_statements
        from vesper.language.ir.statements import Request as Asked

        statements = list(all_statements(self.node.body))
        results = {each.name: each.result.type for each in statements if isinstance(each, Asked)}
        return results, {each.name: each.node for each in statements if isinstance(each, CallNode)}

    def _load(self, form: str) -> _LoadedFunction:
        called = PythonProgram.callable if form == "plain" else PythonProgram.metered_callable
        callees = {each: called(program) for each, program in self._callees.items()}
        return _LoadedFunction(self._compiled, self.node_id, form, callees)

    def has_form(self, name: str) -> bool:
        """Return whether the form was made."""
        return name in self._forms

    def form(self, name: str) -> _LoadedFunction:
        """Return the plain, metered or traced form. Two threads may both make it; either result is valid."""
        if name not in self._forms:
            self._forms[name] = self._load(name)
            self._compiled.kept.save()
        return self._forms[name]

    def callable(self) -> Callable[..., Any]:
        """Return the function for calling nodes: inputs by name, values unconverted."""
        defaults = {name: default for name, _, default in self._declared}
        parameters = dict(zip(defaults, self._plain.parameters, strict=True))
        function = self._plain.function

        def call(*, now: datetime | None = None, **inputs: Any) -> Any:
            given = {parameters[name]: inputs.get(name, default) for name, default in defaults.items()}
            return function(**given, now=now) if self.takes_now else function(**given)

        call.takes_now = self.takes_now  # type: ignore[attr-defined]
        return call

    def metered_callable(self) -> Callable[..., Any]:
        """Return the `callable` of the metered form; its first argument is the caller's meter."""
        loaded = self.form("metered")
        parameters = list(zip(self._declared, loaded.parameters, strict=True))

        def call(meter: Meter, /, *, now: datetime | None = None, **inputs: Any) -> Any:
            given = {each: inputs.get(name, default) for (name, _, default), each in parameters}
            return loaded.function(**given, meter=meter, **({"now": now} if self.takes_now else {}))

        call.takes_now = self.takes_now  # type: ignore[attr-defined]
        return call

    def call(self, inputs: Mapping[str, object], now: datetime | None = None, limits: Limits | None = None) -> Outcome:
        if limits is not None or not self.is_always_plain:
            return self._call_within(limits or DEFAULT_LIMITS, inputs, now)
        if not self.is_plain:
            raise ValueError(f"{self.node_id} may ask for effects: start it, and complete what it asks for")
        if now is None and self.takes_now:
            accepted = self.accept(inputs)
            if isinstance(accepted, Failed):
                return accepted
            raise NowMissing(self.node_id)
        try:
            return Returned(self.entry(inputs, now=now) if self.takes_now else self.entry(inputs))
        except NotInputs:
            raise
        except Exception as error:  # noqa: BLE001  # every exception becomes an outcome
            return self.ended(self._plain if self._plain.has_raised(error) else self.form("metered"), error)

    def _call_within(self, limits: Limits, inputs: Mapping[str, object], now: datetime | None) -> Outcome:
        """Run within limits; counts only where they could be hit."""
        if not self.is_plain:
            raise ValueError(f"{self.node_id} may ask for effects: start it, and complete what it asks for")
        accepted = self.accept(inputs)
        if isinstance(accepted, Failed):
            return accepted
        if not self.counts_loops(limits):
            plain = self.form("plain")
            arguments = self.arguments(plain, accepted, now)
            with suppress(LargeCall):
                return self.outcome(plain, lambda: plain.function(**arguments))
        loaded = self.form("metered")
        arguments = self.arguments(loaded, accepted, now) | {"meter": _Budget(limits).meter}
        return self.outcome(loaded, lambda: loaded.function(**arguments))

    def result_type(self, path: str) -> Type:
        """Return the result type of the request at this path, also of a called node's request."""
        results, called = self._request_types
        found = results.get(path)
        if found is None:
            head, _, rest = path.partition("/")
            name = head.partition("[")[0]
            found = self._callees[called[name]].result_type(rest) if rest else results[name]
        return found

    def _metered_entry(self, inputs: Mapping[str, object], **now: datetime) -> Any:
        return self.form("metered").entry(inputs, **now, meter=_Budget(DEFAULT_LIMITS).meter)

    def start(
        self,
        inputs: Mapping[str, object],
        now: datetime | None = None,
        limits: Limits | None = None,
        observe: Observer | None = None,
        is_traced: bool = True,
    ) -> PythonExecution:
        given = limits or DEFAULT_LIMITS
        form = "traced" if is_traced else "metered" if self.is_counted(given) else "plain"
        return PythonExecution(self, self.form(form), form, inputs, now, given, observe)

    def is_counted(self, limits: Limits) -> bool:
        """Return whether an execution could hit the limits."""
        return self.has_work or self.counts_loops(limits)

    def counts_loops(self, limits: Limits) -> bool:
        """Return whether loops could hit the limits, without large calls."""
        is_counted = self.fuel_bound > limits.fuel or self.memory_bound > limits.memory
        return is_counted or (limits.seconds is not None and self.fuel_bound > 0)

    def accept(self, inputs: Mapping[str, object]) -> Mapping[str, Value] | Failed:
        values, problems = accept_inputs(self._declared, inputs)
        return Failed(ErrorCode.BAD_INPUT, None, tuple(problems)) if problems else values

    def arguments(self, loaded: _LoadedFunction, values: Mapping[str, Value], now: datetime | None) -> dict[str, Any]:
        arguments: dict[str, Any] = loaded.arguments(values)
        if self.takes_now:
            if now is None:
                raise NowMissing(self.node_id)
            arguments["now"] = now
        return arguments

    def outcome(self, loaded: _LoadedFunction, run: Callable[[], Any]) -> Outcome:
        """Return the outcome of a run, also where it raises."""
        try:
            return Returned(self.outside(run()))
        except (_ObserverRaised, LargeCall):
            raise
        except Exception as error:  # noqa: BLE001  # every exception becomes an outcome
            return self.ended(loaded, error)

    def ended(self, loaded: _LoadedFunction, error: Exception) -> Outcome:
        """Return the outcome of an exception of generated code."""
        match error:
            case raised.DeclaredError():
                return DeclaredError(self.outside(cast(dict[str, Value], error.values)))
            case raised.ContractBroken():
                # Values in their Python form; mypy keeps the TypedDict of a record apart.
                return ContractBroken(error.phase, error.index, self.outside(cast(dict[str, Value], error.values)))
            case raised.BadInput():
                return Failed(ErrorCode.BAD_INPUT, None, error.problems)
            case raised.Raised() | raised.ClauseFailed() | DecimalException() | KeyError():
                return self._failed(loaded, code_of(error), error)
            case LimitExceeded():
                return LimitHit(error.limit)
            case _:  # generated code raises nothing else: this is a bug of the engine
                return EngineFault(f"{type(error).__name__}: {error}")

    def outside(self, values: Mapping[str, Value]) -> Mapping[str, Value]:
        """Return values for a caller, with a json as plain objects. No object is shared with the module."""
        if not self._copies:
            return values
        found: dict[str, Value] = {}
        for name, value in values.items():
            kind = type(value)
            found[name] = value if kind in _THEMSELVES else _plain_values(value) if kind is dict else plain(value)
        return found

    def _failed(self, loaded: _LoadedFunction, code: str, error: Exception) -> Outcome:
        at = loaded.site(error.__traceback__)
        if at is None:
            return EngineFault(f"{code} was raised where generated code cannot fail")
        return Failed(ErrorCode(code) if code in _CODES else code, at)


_CODES = frozenset(code.value for code in ErrorCode)
_THEMSELVES = frozenset({str, int, Decimal, bool, type(None), float, bytes, date, datetime, timedelta, time, Period})
"""Types of values that need no conversion."""


def _plain_values(value: Any) -> dict[str, Value]:
    """Return `plain` of a dict, without the call for values that need no conversion."""
    found: dict[str, Value] = value.copy()
    for name, each in found.items():
        if type(each) not in _THEMSELVES:
            found[name] = plain(each)
    return found


def _facts(node: Node, callees: Mapping[str, PythonProgram]) -> tuple[str, bool, bool, bool, bool, int, int, bool]:
    """Return the facts that a program needs before the first call."""
    from vesper.codegen.function import takes_now
    from vesper.engines.fuel_bound import fuel_bound, memory_bound
    from vesper.values.types import JSON, is_changeable, mentions

    types = [each.type for each in node.inputs] + [each.type for each in node.constants]
    types += [each.type for each in node.expressions()]
    # Of a called node too: its requests carry the name of this node.
    calls_json = any(callee.has_json for callee in callees.values())
    has_json = calls_json or any(mentions(each, JSON) for each in types)
    shown = [each.type for each in node.inputs]
    shown += [each.type for each in (*node.outputs, *node.errors)]
    # Results share no objects with the module, the inputs or each other.
    copies = has_json or bool(callees) or any(map(is_changeable, shown))
    bound = fuel_bound(node, {each: at.fuel_bound for each, at in callees.items()})
    memory = memory_bound(node, {each: at.memory_bound for each, at in callees.items()})
    has_work = any(callee.has_work for callee in callees.values()) or any(map(_is_work, node.expressions()))
    return node.node_id, takes_now(node), node.is_pure(), has_json, copies, bound, memory, has_work


def _is_work(expression: Expression) -> bool:
    """Return whether an expression may be a large call."""
    from vesper.language.ir.nodes import Call
    from vesper.values.generated.operations import OPERATIONS

    return isinstance(expression, Call) and (
        bool(OPERATIONS[expression.op].work) or expression.op in ("json.cast", "json.from_value", "json.parse")
    )


class _ObserverRaised(Exception):
    """An exception of an observer: it propagates from `advance` and is no outcome."""


class _Budget:
    """The limits of an execution; the clock runs only while it computes."""

    def __init__(self, limits: Limits) -> None:
        self._seconds = limits.seconds
        self._since = monotonic()
        self.meter = Meter(limits.fuel, None if limits.seconds is None else self._is_overdue, limits.memory)

    def _is_overdue(self) -> bool:
        assert self._seconds is not None
        return monotonic() - self._since >= self._seconds

    def go(self) -> None:
        self._since = monotonic()

    def wait(self) -> None:
        assert self._seconds is not None
        self._seconds -= monotonic() - self._since


class PythonExecution:
    """One observed run, advanced with completions until it is done."""

    def __init__(
        self,
        program: PythonProgram,
        loaded: _LoadedFunction,
        form: str,
        inputs: Mapping[str, object],
        now: datetime | None,
        limits: Limits,
        observe: Observer | None,
    ) -> None:
        self._program = program
        self._loaded = loaded
        self._form = form
        self._inputs = inputs
        self._now = now
        self._budget = _Budget(limits)
        self._is_timed = limits.seconds is not None
        self._observe = observe
        self._marks: list[tuple[int, Value]] = []
        self._steps: Generator[AskedFor | Wave, Any, Any] | None = None
        self._asked: tuple[AskedFor, ...] = ()
        """The requests of the current wave."""
        self._is_wave = False
        self._waiting: tuple[Request, ...] = ()
        """Those of them that were not completed yet."""
        self._answers: list[object] = []
        self._requests = 0
        self._is_done = False

    def advance(self, completions: Sequence[Completion]) -> Blocked | Done:
        if self._is_done:
            raise ValueError("this execution has ended")
        if self._is_timed:
            self._budget.go()
        try:
            return self._advance(completions)
        except _ObserverRaised as raised_there:
            self._is_done = True
            assert raised_there.__cause__ is not None
            raise raised_there.__cause__ from None
        finally:
            if self._is_timed:
                self._budget.wait()

    def _advance(self, completions: Sequence[Completion]) -> Blocked | Done:
        if not self._asked:
            if completions:
                raise ValueError("nothing was asked for that could be completed")
            return self._begin()
        waiting = self._waiting
        given = [each.id for each in completions]
        if not given or given != [each.id for each in waiting[: len(given)]]:
            shown = ", ".join(str(each.id) for each in waiting)
            raise ValueError(f"the execution waits for the completion of request {shown}, in this order")
        first = len(self._answers)
        self._answers += [
            self._read_completion(asked, completion)
            for asked, completion in zip(self._asked[first : first + len(given)], completions, strict=True)
        ]
        self._waiting = waiting[len(given) :]
        if self._waiting:
            return Blocked(self._waiting)
        answers, self._answers = self._answers, []
        return self._resume(answers if self._is_wave else answers[0])

    def _read_completion(self, asked: AskedFor, completion: Completion) -> object:
        """Return the value of a completion, or the failure."""
        if completion.failure is not None:
            return raised.Raised(completion.failure)
        value, is_sound = self._accept_result(asked, completion.result)
        return value if is_sound else raised.Raised(ErrorCode.BAD_RESPONSE.value)

    def _make_quick_mark(self) -> Callable[[int, Value], Value]:
        """Return a callback that appends marks without calling an observer. A loop marks millions of values."""
        note = self._marks.append

        def mark(index: int, value: Value) -> Value:
            note((index, value))
            return value

        return mark

    def _mark(self, index: int, value: Value) -> Value:
        shown = plain(value) if self._program.has_json else value
        self._marks.append((index, shown))
        if self._observe is not None:
            try:
                self._observe(index, shown)
            except Exception as error:
                raise _ObserverRaised from error
        return value

    def _begin(self) -> Blocked | Done:
        program = self._program
        accepted = program.accept(self._inputs)
        if isinstance(accepted, Failed):
            return self._done(accepted)
        arguments = program.arguments(self._loaded, accepted, self._now)
        if self._form == "traced":
            arguments["mark"] = (
                self._make_quick_mark() if self._observe is None and not program.has_json else self._mark
            )
        if self._form != "plain":
            arguments["meter"] = self._budget.meter
        if program.is_plain:
            return self._done(program.outcome(self._loaded, partial(self._loaded.function, **arguments)))
        self._steps = self._loaded.function(**arguments)
        return self._resume(None)

    def _accept_result(self, asked: AskedFor, result: object) -> tuple[object, bool]:
        """Return the result as a value of the declared type, and whether it is one."""
        type_ = self._program.result_type(asked.path)
        if type(type_) is Primitive:  # as below, without a list of inputs and one of problems for a single value
            try:
                return accept(type_, result), True
            except ValueProblem:
                return None, False
        values, problems = accept_inputs([("result", type_, None)], {"result": result})
        return values.get("result"), not problems

    def _resume(self, answer: object) -> Blocked | Done:
        """Resume with a result, a failure or those of a wave. Returns the next requests, or the end."""
        steps, program = self._steps, self._program
        assert steps is not None
        try:
            asked = steps.throw(answer) if isinstance(answer, raised.Raised) else steps.send(answer)
        except StopIteration as end:
            result = end.value
        except _ObserverRaised:
            raise
        except Exception as error:  # noqa: BLE001  # every exception becomes an outcome
            return self._done(program.ended(self._loaded, error))
        else:
            self._is_wave = isinstance(asked, Wave)
            self._asked = asked.requests if isinstance(asked, Wave) else (asked,)
            self._waiting = tuple([self._number(each) for each in self._asked])
            return Blocked(self._waiting)
        return self._done(program.outcome(self._loaded, lambda: result))

    def _number(self, asked: AskedFor) -> Request:
        number, self._requests = self._requests, self._requests + 1
        arguments = self._program.outside(cast("Mapping[str, Value]", asked.arguments))
        return Request(number, asked.path, asked.effect, asked.effect_class, asked.fixed, arguments, asked.key)

    def _done(self, outcome: Outcome) -> Done:
        self._is_done = True
        return Done(outcome, tuple(self._marks))
