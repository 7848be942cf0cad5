"""Search for witnesses by running a node on inputs from a generator and on inputs that a solver proposes.

A witness is accepted only if both engines agree on it. Inputs that the node refuses are no witnesses.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import cached_property

from vesper.compiler import Compiled
from vesper.engines.compare import Disagree, compare
from vesper.engines.engine import Done, Limits, Program
from vesper.engines.outcome import ContractBroken, Failed, Outcome
from vesper.engines.registry import FIRST_TIER, REFERENCE, engine_named
from vesper.language.ir.nodes import walk
from vesper.proof.claims.model import CLAUSE, CONDITION, OPERATION, ROW, ClaimKey, Witness
from vesper.values.model import show
from vesper.verify.differential.case_text import case_text
from vesper.verify.inputs.generator import InputGenerator
from vesper.verify.inputs.responses import NOON, GeneratedResponses, Responder, TooManyRequests, run_with
from vesper.verify.shrink.inputs import shrink

_LIMITS = Limits(fuel=200_000, seconds=1.0)
"""Limits of one run: a node that computes longer is no witness."""
_MAX_TEXT, _MAX_VALUE = 400, 100
_MAX_SHRINK_SECONDS = 0.5
Inputs = Mapping[str, object]


class NodeRuns:
    """One node on both engines, and the claims that its executions decide."""

    def __init__(self, compiled: Compiled) -> None:
        self.compiled = compiled
        node = compiled.node
        self._responses = GeneratedResponses(compiled)
        self._rows = {row.when: (table.name, number) for table in node.tables for number, row in enumerate(table.rows)}
        clauses = (*node.constraints, *node.preconditions)
        self._assumed = {each.index for clause in clauses for each in walk(clause.holds)}
        self._phases = dict(node.phases())

    @cached_property
    def _direct(self) -> Program:
        return engine_named(FIRST_TIER).load(self.compiled)

    @cached_property
    def _reference(self) -> Program:
        """The reference, loaded with the first witness: that takes longer than the search for it."""
        return engine_named(REFERENCE).load(self.compiled)

    def run(self, inputs: Inputs, now: datetime | None, respond: Responder) -> Done | None:
        """Run on both engines; None if they differ, or if an execution makes too many requests."""
        done: list[Done] = []
        for program in (self._direct, self._reference):
            try:
                done.append(run_with(program, dict(inputs), now or NOON, respond, _LIMITS))
            except TooManyRequests:
                return None
        return None if isinstance(compare(*done), Disagree) else done[0]

    def quick(self, inputs: Inputs, seed: str) -> Done | None:
        """Run on the direct engine alone, with generated completions."""
        try:
            return run_with(
                self._direct, dict(inputs), self._responses.now(seed), self.responder(seed, inputs), _LIMITS
            )
        except TooManyRequests:
            return None

    def responder(self, seed: str, inputs: Inputs) -> Responder:
        return self._responses.responder(seed, inputs)

    def now(self, seed: str) -> datetime:
        return self._responses.now(seed)

    def decided_claims(self, done: Done) -> Iterator[ClaimKey]:
        """Yield the claims that a run refutes, and the conditions and rows that it reaches."""
        outcome = done.outcome
        if self.is_refused(outcome):
            return
        if isinstance(outcome, ContractBroken):
            yield CLAUSE, outcome.phase, outcome.index, ""
        if isinstance(outcome, Failed) and outcome.at is not None:
            yield OPERATION, "", outcome.at, str(getattr(outcome.code, "value", outcome.code))
        for index, value in done.marks:
            if index in self._rows:
                if value is True:
                    table, number = self._rows[index]
                    yield ROW, table, number, ""
            elif value is True or value is False:
                yield CONDITION, "", index, "true" if value else "false"

    def is_refused(self, outcome: Outcome) -> bool:
        """Return whether the node refuses the input, so that no claim speaks of it."""
        if isinstance(outcome, ContractBroken):
            return outcome.phase in ("constraint", "precondition")
        return isinstance(outcome, Failed) and (outcome.at is None or outcome.at in self._assumed)

    def witness(
        self, key: ClaimKey, inputs: Inputs, now: datetime | None, respond: Responder, shrinks: bool = True
    ) -> Witness | None:
        """Return the witness of a claim, shrunk; None unless both engines show it."""
        done = self._showing(key, inputs, now, respond)
        if done is None:
            return None
        if shrinks and not done.requests:
            until = time.monotonic() + _MAX_SHRINK_SECONDS

            def still_shows(candidate: dict[str, object]) -> bool:
                return time.monotonic() < until and self._showing(key, candidate, now, respond) is not None

            inputs = shrink(self.compiled.node, dict(inputs), still_shows)
            done = self._showing(key, inputs, now, respond)
            assert done is not None
        return self.describe(inputs, now, done)

    def describe(self, inputs: Inputs, now: datetime | None, done: Done) -> Witness:
        """Return an input and its outcome on both engines as texts."""
        return Witness(_inputs_text(inputs), self._case(inputs, now, done), self._outcome_text(done.outcome))

    def _showing(self, key: ClaimKey, inputs: Inputs, now: datetime | None, respond: Responder) -> Done | None:
        done = self.run(inputs, now, respond)
        return done if done is not None and key in self.decided_claims(done) else None

    def _case(self, inputs: Inputs, now: datetime | None, done: Done) -> str | None:
        if done.requests:
            return None
        node = self.compiled.node
        try:
            return case_text(node, "witness", inputs, "{}", None if node.type == "function" else now)
        except (ValueError, TypeError):
            return None

    def _outcome_text(self, outcome: Outcome) -> str:
        match outcome:
            case ContractBroken(phase, index, values):
                shown = ", ".join(f"{name} = {_short(show(value))}" for name, value in values.items())
                return _cut(f"{phase} `{self._phases[phase][index].text}` broken" + (f" with {shown}" if shown else ""))
            case Failed(code, _, _):
                return f"fails with {getattr(code, 'value', code)}"
            case _:
                return outcome.kind.replace("_", " ")


def search(
    runs: NodeRuns, wanted: set[ClaimKey], max_inputs: int, is_over: Callable[[], bool], seed: int = 0
) -> Iterator[tuple[ClaimKey, Inputs, str, Done]]:
    """Yield claims that generated inputs decide, each once, with the input and the seed of its completions."""
    compiled = runs.compiled
    generator = InputGenerator(compiled.node, seed, examples=[each.inputs for each in compiled.cases])
    left = set(wanted)
    cases = [dict(each.inputs) for each in compiled.cases]
    for number in range(max_inputs):
        if not left or is_over():
            return
        inputs = cases[number] if number < len(cases) else generator.draw()
        done = runs.quick(inputs, f"{seed} {number}")
        if done is None:
            continue
        for key in set(runs.decided_claims(done)) & left:
            left.discard(key)
            yield key, inputs, f"{seed} {number}", done


def _inputs_text(inputs: Inputs) -> str:
    return _cut(", ".join(f"{name} = {_short(show(value))}" for name, value in sorted(inputs.items())) or "no inputs")


def _short(text: str) -> str:
    """Shorten the text of a value to one line. A decimal may have a thousand digits, which its case states in full."""
    return text if len(text) <= _MAX_VALUE else f"{text[: _MAX_VALUE - 20]}… ({len(text)} characters)"


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_TEXT else text[: _MAX_TEXT - 1] + "…"
