"""The direct engine: hands canonical IR to the Rust interpreter. The only module that imports `vesper._direct`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from vesper import _direct
from vesper.compiler import Compiled
from vesper.engines.engine import Done, PureExecution
from vesper.engines.outcome import ContractBroken, EngineFault, Failed, Outcome, Returned
from vesper.spec.errors import ErrorCode
from vesper.spec.values import Problem, ProblemKind

if TYPE_CHECKING:
    from vesper._direct import _RawOutcome


class DirectEngine:
    name = "interp"

    def load(self, compiled: Compiled) -> DirectProgram:
        return DirectProgram(_direct.Program.load(compiled.ir))


class DirectProgram:
    def __init__(self, program: _direct.Program) -> None:
        self._program = program

    @property
    def semantic_hash(self) -> str:
        return self._program.semantic_hash

    def call(self, inputs: Mapping[str, object]) -> Outcome:
        return _outcome(self._program.call(inputs))  # type: ignore[arg-type]  # it refuses what is no dict by itself

    def start(self, inputs: Mapping[str, object]) -> PureExecution:
        return PureExecution(lambda: self._observe(inputs))

    def _observe(self, inputs: Mapping[str, object]) -> Done:
        marks, outcome = self._program.trace(inputs)  # type: ignore[arg-type]  # as above
        return Done(_outcome(outcome), tuple(marks))


def _outcome(raw: _RawOutcome) -> Outcome:
    match raw:
        case ("returned", value):
            return Returned(value)
        case ("failed", code, at, problems):
            found = tuple(Problem(path, ProblemKind(kind)) for path, kind in problems)
            return Failed(ErrorCode(code), at, found)
        case ("contract_broken", phase, index, values):
            return ContractBroken(phase, index, values)
        case ("engine_fault", message):
            return EngineFault(message)
