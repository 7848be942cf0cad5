"""Claims of `testing.properties`, checked on drawn inputs; a counterexample is shrunk.

Runs that do not return, and runs to which the claim does not apply, are no examples. Both runs of a claim about two
have the same start time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from vesper.compiler import Compiled
from vesper.engines.engine import Engine, Program
from vesper.engines.outcome import Outcome, Returned
from vesper.language.check.properties import RUNS, Property
from vesper.language.ir.encode import encode_and_hash
from vesper.values.inputs import accept_inputs
from vesper.values.model import plain
from vesper.verify.inputs.generator import InputGenerator
from vesper.verify.shrink.inputs import shrink

MAX_DRAWS_PER_EXAMPLE = 20
_NEAR_SHARE = 3
"""One in this many second runs has varied inputs that are similar to those of the first."""
_NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class ClaimFailure:
    """The smallest inputs found that break a property."""

    claim: Property
    runs: tuple[dict[str, object], ...]
    """Inputs of the one or the two runs."""
    outcomes: tuple[Outcome, ...]
    engine: str
    tried: int
    code: str | None
    """Failure of the claim itself; None where it is false."""


@dataclass(frozen=True, slots=True)
class ClaimResult:
    """Result of one property."""

    claim: Property
    examples: int
    drawn: int
    failure: ClaimFailure | None

    @property
    def passed(self) -> bool:
        return self.failure is None and self.examples > 0


def check_claim(
    compiled: Compiled, claim: Property, engines: Mapping[str, Engine], programs: Mapping[str, Program], wanted: int,
    seed: int,
) -> ClaimResult:  # fmt: skip
    """Draw inputs until there are enough examples, or one breaks the claim on an engine."""
    written = encode_and_hash(claim.claim)
    assert written is not None, "a claim is smaller than a node may be"
    function = Compiled(compiled.source, claim.claim, (), *written)
    checks = {
        name: _Check(compiled, claim, program, engines[name].load(function)) for name, program in programs.items()
    }
    draw = _Draw(compiled, claim, seed)
    examples = 0
    for drawn in range(1, wanted * MAX_DRAWS_PER_EXAMPLE + 1):
        runs = draw.next()
        for name, check in checks.items():
            found = check.verdict(runs)
            if found is None:
                continue
            examples += name == next(iter(checks))
            if found is not True:
                small = draw.shrink_runs(runs, check)
                code = check.verdict(small)
                outcomes = tuple(check.outcomes(small))
                shown = code if isinstance(code, str) else None
                return ClaimResult(claim, examples, drawn, ClaimFailure(claim, small, outcomes, name, drawn, shown))
        if examples >= wanted:
            return ClaimResult(claim, examples, drawn, None)
    return ClaimResult(claim, examples, wanted * MAX_DRAWS_PER_EXAMPLE, None)


class _Check:
    """Runs the node and the claim on one engine."""

    def __init__(self, compiled: Compiled, claim: Property, program: Program, function: Program) -> None:
        self._node = compiled.node
        self._claim = claim
        self._program = program
        self._function = function
        self._declared = [(each.name, each.type, each.default) for each in compiled.node.inputs]
        self._now = None if compiled.node.type == "function" else _NOW

    def outcomes(self, runs: tuple[dict[str, object], ...]) -> list[Outcome]:
        return [self._program.call(run, self._now) for run in runs]

    def verdict(self, runs: tuple[dict[str, object], ...]) -> bool | str | None:
        """Return whether the claim holds, or the code of its failure. None if it does not apply to the runs."""
        outputs: list[Mapping[str, Any]] = []
        for outcome in self.outcomes(runs):
            if not isinstance(outcome, Returned):
                return None
            outputs.append(outcome.value)
        inputs = [self._inputs(run) for run in runs]
        given = {f"input_{name}": value for name, value in inputs[0].items()}
        if self._claim.varied is None:
            given |= {f"output_{name}": value for name, value in outputs[0].items()}
        else:
            given = {name: value for name, value in given.items() if name[6:] not in self._claim.varied}
            for name, own, found in zip(RUNS, inputs, outputs, strict=True):
                given[name] = {**found, "input": own} if own else dict(found)
        result = self._function.call(given)
        if not isinstance(result, Returned):
            return str(getattr(result, "code", result.kind))
        return result.value["holds"] is True if result.value["applies"] is True else None

    def _inputs(self, run: dict[str, object]) -> dict[str, Any]:
        values, _ = accept_inputs(self._declared, run)
        return {name: plain(value) for name, value in values.items()}


class _Draw:
    """Draws the inputs of one or two runs, and shrinks them."""

    def __init__(self, compiled: Compiled, claim: Property, seed: int) -> None:
        self._compiled = compiled
        self._claim = claim
        self._generator = InputGenerator(compiled.node, seed, examples=[each.inputs for each in compiled.cases])
        self._types = {each.name: each.type for each in compiled.node.inputs}
        self._drawn = 0

    def next(self) -> tuple[dict[str, object], ...]:
        self._drawn += 1
        first = {**self._generator.draw(), **self._claim.given}
        if self._claim.varied is None:
            return (first,)
        if self._drawn % _NEAR_SHARE == 0:
            other = {
                name: self._generator.vary_value(first[name], self._types[name], f"{self._drawn} {name}")
                for name in self._claim.varied
                if name in first
            }
        else:
            drawn = self._generator.draw()
            other = {name: drawn[name] for name in self._claim.varied if name in drawn}
        return first, {**first, **other}

    def shrink_runs(self, runs: tuple[dict[str, object], ...], check: _Check) -> tuple[dict[str, object], ...]:
        """Return the smallest runs for which the claim still fails."""
        varied = self._claim.varied or ()
        merged = {name: value for name, value in runs[0].items() if name not in varied}
        for run, inputs in zip(RUNS, runs, strict=False):
            merged |= {f"{run} {name}": inputs[name] for name in varied if name in inputs}

        def split(given: dict[str, object]) -> tuple[dict[str, object], ...]:
            same = {name: value for name, value in given.items() if " " not in name} | self._claim.given
            return tuple(
                same | {name: given[f"{run} {name}"] for name in varied if f"{run} {name}" in given}
                for run, _ in zip(RUNS, runs, strict=False)
            )

        return split(shrink(self._compiled.node, merged, lambda given: check.verdict(split(given)) not in (None, True)))
