"""Engines that run the plain form, which is the one that is optimised: the verifier traces, and that form is not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from vesper import _direct
from vesper.compiler import Compiled
from vesper.engines.direct_engine import DirectProgram, all_callees
from vesper.engines.engine import Engine, Execution, Limits, Observer, Program
from vesper.engines.outcome import Outcome
from vesper.engines.python_engine import PythonEngine


def raw_program(compiled: Compiled, rules: Sequence[str] | None = None, *, optimise: bool = True) -> _direct.Program:
    callees = [each.ir for each in all_callees(compiled)]
    return _direct.Program.load(compiled.ir, callees, optimise=optimise, rules=rules)


class Direct:
    """The direct engine with these rules of the optimizer, or with all of them."""

    def __init__(self, name: str, rules: Sequence[str] | None = None, *, optimise: bool = True) -> None:
        self.name = name
        self._rules = rules
        self._optimise = optimise

    def load(self, compiled: Compiled) -> DirectProgram:
        return DirectProgram(raw_program(compiled, self._rules, optimise=self._optimise))


class Plain:
    """An engine whose executions are never traced."""

    def __init__(self, engine: Engine) -> None:
        self.name = engine.name
        self._engine = engine

    def load(self, compiled: Compiled) -> PlainProgram:
        return PlainProgram(self._engine.load(compiled))


class PlainProgram:
    def __init__(self, program: Program) -> None:
        self._program = program

    @property
    def semantic_hash(self) -> str:
        return self._program.semantic_hash

    def call(self, inputs: Mapping[str, object], now: datetime | None = None, limits: Limits | None = None) -> Outcome:
        return self._program.call(inputs, now, limits)

    def start(
        self,
        inputs: Mapping[str, object],
        now: datetime | None = None,
        limits: Limits | None = None,
        observe: Observer | None = None,
        is_traced: bool = True,
    ) -> Execution:
        """Never traced, whatever is asked for."""
        del is_traced
        return self._program.start(inputs, now, limits, observe, is_traced=False)


def plain_engines(rules: Sequence[str] | None = None) -> dict[str, Engine]:
    """The reference, the direct engine as it was before there was an optimizer, and with these rules."""
    each: list[Engine] = [PythonEngine(), Direct("unoptimised", optimise=False), Direct("optimised", rules)]
    return {engine.name: Plain(engine) for engine in each}
