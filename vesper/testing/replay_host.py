"""`vesper.testing.Replay`: a Host with answers from recorded cases, without a network."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from vesper.compiler import Compiled
from vesper.compiler.callees import interface_of
from vesper.effects.performer import Ask, EffectFailed
from vesper.engines.engine import Limits, Request
from vesper.host.driving import Steps
from vesper.host.prepared import Prepared, Ran
from vesper.host.stub_answers import plain_step
from vesper.language.check.case_effects import ExpectedRequest, includes
from vesper.language.check.cases import Case, check_cases
from vesper.language.diagnostics.diagnostic import CheckingStopped, DiagnosticBag
from vesper.language.diagnostics.render.full import render_full
from vesper.language.diagnostics.source import SourceFile
from vesper.language.syntax.yaml.reader import read_yaml
from vesper.language.syntax.yaml_to_ast import build_cases
from vesper.storage.file_access import read_regular
from vesper.testing.offline_host import OfflineHost, sleep
from vesper.values.inputs import accept_inputs
from vesper.values.model import Value, plain, same, show
from vesper.values.times import SleepClock
from vesper.values.vesper_error import VesperError

if TYPE_CHECKING:
    from vesper._direct import Running

_MAX_FILE = 8 << 20


class ReplayMismatch(VesperError):
    """A request or a case is not in the recording; nothing was sent."""


# -- from a file to cases -------------------------------------------------------------------------


def read_cases(compiled: Compiled, source: SourceFile) -> tuple[Case, ...]:
    """Read the cases of a file by the node's types. Raises `ReplayMismatch` with all problems."""
    bag = DiagnosticBag(source)
    found: tuple[Case, ...] = ()
    try:
        tree = read_yaml(bag)
        if tree is not None:
            listed = build_cases(tree, bag)
            called = {each.node.node_id: interface_of(each) for each in compiled.callees}
            found = check_cases(listed, compiled.node, called, bag)
    except CheckingStopped:
        pass  # the bag has the reason
    if bag.has_errors:
        told = "\n\n".join(render_full(source, each) for each in bag.sorted())
        raise ReplayMismatch(f"{source.path} has no cases of {compiled.node.node_id}\n\n{told}")
    return found


def differs(request: Request | Ask, expected: ExpectedRequest) -> str | None:
    """Return why a request differs from the expected one; None if they match."""
    if plain_step(request.path) != plain_step(expected.path):
        return f"the node requests `{plain_step(request.path)}`, but the next recorded request is `{expected.path}`"
    for name, wanted in expected.request.items():
        found: object = request.fixed.get(name)
        if name in request.arguments:
            found = request.arguments[name]
        elif name == "key" and request.key is not None:
            found = request.key
        if not includes(plain(cast(Value, found)), plain(wanted)):
            return f"`{expected.path}` has `{name}` {show(found)}, but the recording has {show(wanted)}"
    return None


# -- the Host --------------------------------------------------------------------------------------

_WAITING: ContextVar[tuple[list[ExpectedRequest], SleepClock]] = ContextVar("vesper_recorded_requests")
"""The requests of a case that the run has not made yet, and the clock of its sleeps."""
_NO_START = datetime(1970, 1, 1, tzinfo=UTC)
"""Start time of a caller that gave none, recognised by identity."""


class _LoadedNode(Protocol):
    """The part of `vesper.Node` that a replay reads."""

    @property
    def _compiled(self) -> Compiled: ...


class Replay(OfflineHost):
    """A Host that answers only from a file of recorded cases.

        replay = Replay("tests/recorded/payment.yaml")
        node = vesper.load("payment_handler", host=replay)
        outcome = node(replay.inputs(node))

    In a file with several cases, `case` names one, or the inputs of the call select it. Every request must be the next
    one of the case, with the fields that it lists; any other raises `ReplayMismatch`. A call without a start time
    starts at the time of the recording.
    """

    def __init__(self, path: str | os.PathLike[str], case: str | None = None) -> None:
        self.path = Path(path)
        self._case = case
        try:
            self._source = SourceFile(self.path.as_posix(), read_regular(self.path, _MAX_FILE).decode("utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise ReplayMismatch(f"{self.path} cannot be read: {reason}") from None
        super().__init__()
        self._read: dict[str, tuple[Case, ...]] = {}

    def inputs(self, node: _LoadedNode) -> dict[str, Any]:
        """Return the inputs of the recorded run, with placeholders for sensitive values."""
        return dict(self.choose_case(node._compiled).inputs)

    def moment(self) -> datetime:
        return _NO_START

    def cases(self, compiled: Compiled) -> tuple[Case, ...]:
        """Return the cases of the file, read by the node's types."""
        found = self._read.get(compiled.semantic_hash)
        if found is None:
            found = self._read[compiled.semantic_hash] = read_cases(compiled, self._source)
        return found

    def choose_case(self, compiled: Compiled, inputs: Mapping[str, object] | None = None) -> Case:
        """Return the case that answers a call."""
        cases = self.cases(compiled)
        names = ", ".join(f"`{each.name}`" for each in cases) or "none"
        if self._case is not None:
            named = [each for each in cases if each.name == self._case]
            if not named:
                raise ReplayMismatch(f"{self.path} has no case `{self._case}`; it has {names}")
            return named[0]
        if len(cases) == 1:
            return cases[0]
        declared = compiled.node.declared_inputs
        given, _ = accept_inputs(declared, dict(inputs or {}))
        fitting = [each for each in cases if same(accept_inputs(declared, dict(each.inputs))[0], given)]
        if not fitting:
            raise ReplayMismatch(f"{self.path} has no case with these inputs; it has {names}: Replay(path, case=NAME)")
        return fitting[0]

    def _run_steps(
        self,
        prepared: Prepared,
        inputs: Mapping[str, object],
        now: datetime,
        limits: Limits | None,
        on_begun: Callable[[Running], None] | None,
    ) -> Steps[Ran]:
        case = self.choose_case(prepared.compiled, inputs)
        if now is _NO_START:
            now = case.now if isinstance(case.now, datetime) else datetime.now(UTC)
        waiting = list(case.effects)
        outer = _WAITING.set((waiting, SleepClock(now)))
        try:
            ran = yield from super()._run_steps(prepared, inputs, now, limits, on_begun)
        finally:
            _WAITING.reset(outer)
        if waiting:
            left = waiting[0].path
            problem = f"case `{case.name}` of {self.path}: the node ended without the recorded request `{left}`"
            raise ReplayMismatch(problem)
        return ran

    def answered(self, ask: Ask) -> object:
        waiting, clock = _WAITING.get()
        is_next = bool(waiting) and plain_step(ask.path) == plain_step(waiting[0].path)
        if ask.effect == "sleep" and not is_next:
            return sleep(clock, ask)
        if not waiting:
            self.give_up(
                ReplayMismatch(f"{self.path}: the node requests `{plain_step(ask.path)}`, which was not recorded")
            )
        expected = waiting.pop(0)
        problem = differs(ask, expected)
        if problem is not None:
            self.give_up(ReplayMismatch(f"{self.path}: {problem}"))
        if expected.fails is not None:
            raise EffectFailed(expected.fails, f"as recorded in {self.path}")
        return sleep(clock, ask, expected.returns) if ask.effect == "sleep" else plain(expected.returns)
