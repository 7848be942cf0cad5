"""Recorder of performed runs as test cases in the node's own form.

The case comes from a second execution on the first one's completions, with placeholders for sensitive values
(`vesper.testing.placeholders`). A case is therefore only written if it passes.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from vesper.compiler import Compiled
from vesper.compiler.callees import interface_of
from vesper.engines.engine import Blocked, Completion, Limits, Program, Request
from vesper.engines.outcome import ContractBroken, DeclaredError, Failed, Outcome, Returned
from vesper.host.host import Host
from vesper.host.masking import Masks, sensitive_steps
from vesper.host.outcomes import recorded_outcome, says_not_done
from vesper.host.prepared import Prepared, Ran, Recovered
from vesper.host.stub_answers import plain_step
from vesper.journal.entry import Entry, Kind
from vesper.journal.journal import Journal
from vesper.language.diagnostics.source import SourceFile
from vesper.language.ir.nodes import Output
from vesper.language.ir.nodes import Request as RequestOfNode
from vesper.storage.file_access import temporary_beside
from vesper.testing.case_yaml import Entries, Node, lines, scalar, to_yaml
from vesper.testing.conversation_cases import questions_of_agents, short_answer, short_request
from vesper.testing.placeholders import Placeholders
from vesper.testing.replay_host import ReplayMismatch, differs, read_cases
from vesper.values.inputs import accept_inputs
from vesper.values.model import Value, plain, same
from vesper.values.times import timestamp_text
from vesper.values.types import Type
from vesper.values.vesper_error import VesperError

if TYPE_CHECKING:
    from vesper._direct import Running
    from vesper.host.plans import Plans

HEADER = "# Recorded by Vesper"
_ITERATION = re.compile(r"\[[0-9]+\]")
_OTHER_VALUES = (
    "choose other ones (`Recorder(…, placeholders={NAME: VALUE})`), or keep the values (`--reveal`, "
    "`Recorder(…, reveals=True)`)"
)
_COMPLETING_KINDS = (Kind.RESULT, Kind.FAILED, Kind.RESOLVED)


class NotRecorded(VesperError):
    """The run was performed, but cannot be written as a case; the message gives the reason.

    `ran` is the result of the run.
    """

    ran: Ran | None = None


# -- from a run to a case -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Exchange:
    """A request of the second execution with its completion."""

    request: Request
    value: Value
    failure: str | None
    is_question: bool = False
    """True where an agent asks its model: the case has the parts that matter."""


class CaseNode(Protocol):
    """The parts of a prepared node that a case is written from."""

    @property
    def compiled(self) -> Compiled: ...
    @property
    def program(self) -> Program: ...
    @property
    def plans(self) -> Plans: ...


def case_lines(
    prepared: CaseNode,
    entries: Sequence[Entry],
    name: str,
    redact: Callable[[str], str] = lambda text: text,
    placeholders: Mapping[str, object] | None = None,
    reveals: bool = False,
) -> list[str]:
    """Return the lines of a case for an ended run, indented for `testing: test_cases:`.

    A case that `reveals` has the sensitive values as they were.
    """
    compiled = prepared.compiled
    outcome = recorded_outcome(entries[-1].body)
    if not isinstance(outcome, Returned | DeclaredError | Failed | ContractBroken):
        raise NotRecorded(f"a run that ends as {outcome.kind} cannot be a case: the Host ended it, not the node")
    hiding = Placeholders(redact)
    inputs = _inputs(compiled, entries[0], hiding, placeholders or {}, reveals)
    now = entries[0].body["now"]
    assert isinstance(now, datetime)
    exchanges, ended = _rerun(prepared, inputs, now, entries, hiding, None if reveals else Masks(compiled))
    if (ended.kind, _code(ended)) != (outcome.kind, _code(outcome)):
        hidden = () if reveals else (*compiled.node.grants.sensitive, *sensitive_steps(compiled))
        shown = _code(Masks(compiled).outcome(outcome))
        raise NotRecorded(
            f"with placeholders for {', '.join(f'`{each}`' for each in hidden) or 'secrets'} the node ends as "
            f"{ended.kind} {_code(ended)}, but it ended as {outcome.kind} {shown}; {_OTHER_VALUES}"
        )
    types = {each.name: each.type for each in compiled.node.inputs}
    requests = interface_of(compiled).requests
    pairs: list[tuple[str, Node]] = [
        ("inputs", Entries([(each, to_yaml(types[each], value)) for each, value in inputs.items()])),
        ("now", timestamp_text(now)),
    ]
    if exchanges:
        pairs.append(("effects", [_effect(each, requests[_step(each.request.path)]) for each in exchanges]))
    pairs.append(("expect", _expect(compiled, ended)))
    found = [f"    - name: {scalar(name)}"]
    for key, node in pairs:
        found += lines(key, node, 6)
    _check_reading(compiled, found, inputs, exchanges, ended)
    return found


def placeholder_notes(compiled: Compiled, reveals: bool) -> list[str]:
    """Return the comments of a recording about its sensitive values."""
    inputs, steps = ", ".join(compiled.node.grants.sensitive), ", ".join(sensitive_steps(compiled))
    if reveals:
        return ["# It shows sensitive values."] if inputs or steps else []
    found = [f"# Sensitive inputs, replaced by placeholders of the same shape: {inputs}."] if inputs else []
    if steps:
        found.append(f"# Steps whose sensitive answers are replaced by placeholders of the same shape: {steps}.")
    return found


def _inputs(
    compiled: Compiled, start: Entry, hiding: Placeholders, chosen: Mapping[str, object], reveals: bool
) -> dict[str, Value]:
    """Return the given inputs, with placeholders for sensitive ones unless the case reveals them."""
    given = start.body["inputs"]
    assert isinstance(given, Mapping)
    declared = compiled.node.declared_inputs
    sensitive = compiled.node.grants.sensitive
    for name in chosen:
        if name not in sensitive:
            raise NotRecorded(f"a placeholder is given for `{name}`, which is not a sensitive input of the node")
    values, refused = accept_inputs(declared, dict(given))
    if refused:
        told = ", ".join(f"{each.path}: {each.kind.value}" for each in refused)
        raise NotRecorded(f"the node rejected its inputs, so there is nothing to record ({told})")
    instead, problems = accept_inputs(declared, {**given, **chosen})
    if problems:
        raise NotRecorded(f"the placeholder for `{problems[0].path}` has the wrong type")
    types = {name: type_ for name, type_, _ in declared if name in given}
    sensitive = tuple(chosen) if reveals else sensitive
    for name, type_ in types.items():
        if name in sensitive:
            values[name] = hiding.replace(type_, values[name], instead[name] if name in chosen else None)
    return {
        name: values[name] if name in sensitive else hiding.hide(type_, values[name]) for name, type_ in types.items()
    }


def _rerun(
    prepared: CaseNode,
    inputs: Mapping[str, Value],
    now: datetime,
    entries: Sequence[Entry],
    hiding: Placeholders,
    masks: Masks | None,
) -> tuple[list[_Exchange], Outcome]:
    """Run a second execution on the recorded completions; performs nothing.

    What `masks` hide of a completion is replaced.
    """
    settled = [each for each in entries if each.kind in _COMPLETING_KINDS and not says_not_done(each)]
    execution = prepared.program.start({name: plain(value) for name, value in inputs.items()}, now, is_traced=False)
    found: list[_Exchange] = []
    questions = questions_of_agents(prepared.compiled)
    step = execution.advance(())
    while isinstance(step, Blocked):
        request = step.requests[0]
        if not settled or settled[0].path != request.path:
            asked = settled[0].path if settled else "nothing more"
            raise NotRecorded(
                f"with placeholders the node requests `{request.path}`, but the run requested {asked}; {_OTHER_VALUES}"
            )
        known = settled.pop(0)
        code = known.body.get("code")
        gives = prepared.plans.of(request.path).gives
        value = None if code is not None else _accept(gives, known.body.get("value"))
        if code is None and masks is not None:
            value = hiding.replace_parts(gives, value, masks.request(request.path).sensitive_answer)
        value = value if code is not None else hiding.hide(gives, value)
        is_question = _step(request.path) in questions
        value = short_answer(value) if is_question else value
        found.append(_Exchange(request, value, None if code is None else str(code), is_question))
        step = execution.advance((Completion(request.id, plain(value), None if code is None else str(code)),))
    return found, step.outcome


def _accept(type_: Type, value: object) -> Value:
    """Return a performer's plain object as a value of the language."""
    values, problems = accept_inputs([("value", type_, None)], {"value": value})
    if problems:
        raise NotRecorded(f"the recorded value is not a {type_}: {problems[0].kind}")
    return values["value"]


def _effect(exchange: _Exchange, of_node: RequestOfNode) -> Node:
    request = exchange.request
    types = {name: value.type for name, value in of_node.arguments}
    parts: list[tuple[str, Node]] = [(name, scalar(text)) for name, text in request.fixed.items()]
    parts += [("key", scalar(request.key))] if request.key is not None and "key" not in types else []
    for name, value in request.arguments.items():
        accepted = _accept(types[name], value)
        parts.append((name, to_yaml(types[name], short_request(accepted) if exchange.is_question else accepted)))
    found: list[tuple[str, Node]] = [("step", scalar(plain_step(request.path)))]
    found += [("request", Entries(parts))] if parts else []
    if exchange.failure is not None:
        found.append(("fails", exchange.failure))
    else:
        found.append(("returns", to_yaml(of_node.result.type, exchange.value)))
    return Entries(found)


def _expect(compiled: Compiled, outcome: Outcome) -> Node:
    match outcome:
        case Returned(value):
            return _fields(compiled.node.outputs, value)
        case DeclaredError(value):
            return Entries([("error", _fields(compiled.node.errors, value))])
        case Failed(code):
            return Entries([("fails", str(code))])
        case ContractBroken(phase, index):
            return Entries([("breaks", scalar(dict(compiled.node.phases())[phase][index].text))])
        case _:
            raise AssertionError(f"{outcome.kind} cannot be a case")


def _fields(declared: Sequence[Output], values: Mapping[str, Value]) -> Entries:
    types = {each.name: each.type for each in declared}
    return Entries([(name, to_yaml(types[name], _accept(types[name], value))) for name, value in values.items()])


def _code(outcome: Outcome) -> str:
    match outcome:
        case Failed(code):
            return str(code)
        case DeclaredError(value):
            return str(value.get("error_code", ""))
        case ContractBroken(phase, index):
            return f"{phase} {index}"
        case _:
            return ""


def _step(path: str) -> str:
    return _ITERATION.sub("", path)


def _check_reading(
    compiled: Compiled,
    written: Sequence[str],
    inputs: Mapping[str, Value],
    exchanges: Sequence[_Exchange],
    outcome: Outcome,
) -> None:
    """Check that the written case reads back as the run. Raises `NotRecorded`."""
    text = "\n".join(["test_cases:", *written, ""])
    try:
        (case,) = read_cases(compiled, SourceFile("the recording", text))
    except ReplayMismatch as problem:
        raise NotRecorded(f"the run cannot be written as a case:\n{problem}") from None
    is_same = same(dict(case.inputs), {name: plain(value) for name, value in inputs.items()})
    is_same &= len(case.effects) == len(exchanges)
    for expected, exchange in zip(case.effects, exchanges, strict=False):
        is_same &= expected.fails == exchange.failure and same(plain(expected.returns), plain(exchange.value))
        is_same &= differs(exchange.request, expected) is None
    values = case.expect if isinstance(outcome, Returned) else case.error if isinstance(outcome, DeclaredError) else {}
    told = dict(outcome.value) if isinstance(outcome, Returned | DeclaredError) else {}
    if not is_same or not same(values, told):
        raise NotRecorded("the run cannot be written as a case: it does not read back as the same values")


# -- the Host --------------------------------------------------------------------------------------


class Recorder(Host):
    """A Host that lets another Host perform and writes every run to a file of cases.

        node = vesper.load("payment_handler", host=Recorder(host, "tests/recorded/payment.yaml"))

    The file is overwritten; a file that is not a recording is never touched. Sensitive inputs are written as
    `placeholders` gives them, otherwise as placeholders of the same shape, like the sensitive parts of answers; with
    `reveals` both are written as they were. A run that cannot be written as a case raises `NotRecorded`, after it was
    performed.
    """

    def __init__(
        self,
        host: Host,
        path: str | os.PathLike[str],
        *,
        name: str | None = None,
        placeholders: Mapping[str, object] | None = None,
        reveals: bool = False,
    ) -> None:
        if not isinstance(host, Host):
            raise TypeError(
                f"a Recorder records what a Host performs: Recorder(host, path), not a {type(host).__name__}"
            )
        if isinstance(host, Recorder):
            raise TypeError("a Recorder records what a Host performs, and not what another Recorder does")
        # No super().__init__: every attribute of the Host is that of the wrapped one.
        self._host = host
        self._performers = host._performers
        self.config = host.config
        self.path = Path(path)
        self._name = name
        self._placeholders = dict(placeholders or {})
        self._reveals = reveals
        self._node: str | None = None
        self._cases: list[list[str]] = []
        self._writing = threading.Lock()
        _check_file(self.path)

    def prepare(self, compiled: Compiled, program: Program, engine: str) -> Prepared:
        node_id = compiled.node.node_id
        if self._node not in (None, node_id):
            raise NotRecorded(f"{self.path} records {self._node}: record {node_id} into another file")
        return self._host.prepare(compiled, program, engine)

    def moment(self) -> datetime:
        return self._host.moment()

    def run(
        self,
        prepared: Prepared,
        inputs: Mapping[str, object],
        now: datetime,
        limits: Limits | None = None,
        on_begun: Callable[[Running], None] | None = None,
    ) -> Ran:
        return self._record(prepared, self._host.run(prepared, inputs, now, limits, on_begun))

    async def arun(
        self,
        prepared: Prepared,
        inputs: Mapping[str, object],
        now: datetime,
        limits: Limits | None = None,
        on_begun: Callable[[Running], None] | None = None,
    ) -> Ran:
        return self._record(prepared, await self._host.arun(prepared, inputs, now, limits, on_begun))

    def recover(self, engine: str | None = None, limit: int = 100) -> list[Recovered]:
        return self._host.recover(engine, limit)

    def resume(self, execution: str, engine: str | None = None) -> Recovered:
        return self._host.resume(execution, engine)

    @property
    def journal(self) -> Journal:
        return self._host.journal

    def knows(self, execution: str) -> bool:
        return self._host.knows(execution)

    def start(self) -> None:
        self._host.start()

    @property
    def is_closed(self) -> bool:
        return self._host.is_closed

    def close(self, timeout: float | None = None) -> None:
        self._host.close(timeout)

    def _record(self, prepared: Prepared, ran: Ran) -> Ran:
        try:
            self._write(prepared, ran)
        except NotRecorded as problem:
            problem.ran = ran
            raise
        return ran

    def _write(self, prepared: Prepared, ran: Ran) -> None:
        if not self._host.knows(ran.execution):
            raise NotRecorded("the node rejected its inputs, so there is nothing to record")
        entries = [each.entry for each in self._host.journal.read(ran.execution).entries]
        with self._writing:
            name = self._name or f"recorded {timestamp_text(cast(datetime, entries[0].body['now']))}"
            name += f" {len(self._cases) + 1}" if self._cases else ""
            redact = self._host._performers.secrets.redact
            written = case_lines(prepared, entries, name, redact, self._placeholders, self._reveals)
            self._cases.append(written)
            self._node = prepared.compiled.node.node_id
            told = [
                f"{HEADER} from a real run of {self._node}. Paste the cases below `testing: test_cases:` of the node,",
                "# or answer a test from this file with `vesper.testing.Replay`.",
            ]
            told += [*placeholder_notes(prepared.compiled, self._reveals), "test_cases:"]
            _write_whole(self.path, "\n".join([*told, *(line for case in self._cases for line in case), ""]))


def _check_file(path: Path) -> None:
    """Check that the file can be written, before anything is performed."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            with path.open(encoding="utf-8", errors="replace") as file:
                if file.read(len(HEADER)) != HEADER:
                    raise NotRecorded(f"{path} exists and is not a recording: it is not overwritten")
        if not os.access(path if path.exists() else path.parent, os.W_OK):
            raise NotRecorded(f"{path} cannot be written: permission denied")
    except OSError as error:
        raise NotRecorded(f"{path} cannot be written: {error.strerror or error}") from None


def _write_whole(path: Path, text: str) -> None:
    """Write a file atomically."""
    try:
        beside = temporary_beside(path)
        try:
            beside.write_text(text, encoding="utf-8")
            beside.replace(path)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise NotRecorded(f"{path} cannot be written: {error.strerror or error}") from None
