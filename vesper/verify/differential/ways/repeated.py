"""Ways that repeat executions in another form: from the cache, within exact limits, with a guard that fails."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

from vesper.compiler.load_cache import restore_from_bytes
from vesper.engines.compare import Disagree, compare
from vesper.engines.direct_engine import DirectEngine, DirectProgram
from vesper.engines.engine import DEFAULT_LIMITS, Done, Limits
from vesper.engines.outcome import COUNTED_LIMITS, EngineFault, LimitHit, Outcome
from vesper.engines.tiering import ALWAYS, INTERPRETED
from vesper.language.ir.encode import encode
from vesper.verify.differential.forms import FormsProgram
from vesper.verify.differential.ways.way import Answer, Given, Subject, Way

_PROGRAMS_PER_WARM_CACHE = 3
_METERED_SHARE = 50
_CACHED_SHARE = 10
_DEOPT_SHARE = 8


class WarmCache(Way):
    """The node as a warm start loads it."""

    name = "warm_cache"
    share = _CACHED_SHARE

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._loaded: tuple[bool, FormsProgram] | None = None

    def answers(self, given: Sequence[Given]) -> Iterator[Answer]:
        if self._loaded is None:
            stored = self._subject.compiled
            restored = restore_from_bytes(stored)
            is_restored = encode(restored.node) == stored.ir and restored.semantic_hash == stored.semantic_hash
            self._loaded = is_restored, FormsProgram(DirectEngine(INTERPRETED).load(restored))
        is_restored, program = self._loaded
        for each in given:
            if not is_restored:
                fault = EngineFault("the cache restores another node than was stored")
                yield Answer(each, fault, each.done.outcome)
            else:
                yield answer_of(each, self._subject.run(program, each))


class ForcedDeopt(Way):
    """Machine code in which one guard always fails, so that the interpreter continues."""

    name = "forced_deopt"
    share = _DEOPT_SHARE

    def __init__(self, subject: Subject, compiled_form: DirectProgram) -> None:
        self._subject = subject
        tier = compiled_form.tier()
        forms = [*tier.plain.values(), *([] if tier.pathed is None else [tier.pathed])]
        self.guards = max(form.guards for form in forms)

    def answers(self, given: Sequence[Given]) -> Iterator[Answer]:
        subject = self._subject
        chance = random.Random(f"{subject.seed} {self.name} {given[0].number}")
        guard = chance.randrange(self.guards)
        program = FormsProgram(DirectEngine(replace(ALWAYS, fail_guard=guard)).load(subject.compiled))
        for each in given:
            yield answer_of(each, subject.run(program, each), f"guard {guard}")


class Metered(Way):
    """Limits of fuel and memory one below the use of an execution, exactly at it, and one above."""

    name = "metered"
    share = _METERED_SHARE

    def __init__(self, subject: Subject) -> None:
        self._subject = subject

    def answers(self, given: Sequence[Given]) -> Iterator[Answer]:
        for each in given:
            if isinstance(each.done.outcome, LimitHit):
                continue
            for limit in sorted(COUNTED_LIMITS):
                used = self._find_use(each, limit)
                for amount in range(max(0, used - 1), used + 2):
                    yield from self._compare_at(each, limit, amount)

    def _compare_at(self, given: Given, limit: str, amount: int) -> Iterator[Answer]:
        subject, limits, detail = self._subject, limited(limit, amount), f"{limit} {amount}"
        wanted = subject.run(subject.reference, given, limits)
        program = subject.program(given.number)
        at = replace(given, done=wanted)
        yield answer_of(at, subject.run(program, given, limits), detail)
        yield answer_of(at, subject.run(FormsProgram(program), given, limits), detail)
        if not program.asks:
            yield Answer(at, program.call(given.inputs, subject.now(given), limits), wanted.outcome, detail)

    def _find_use(self, given: Given, limit: str) -> int:
        """Return the smallest amount with which the execution does not hit the limit."""
        program = self._subject.program(given.number)

        def suffices(amount: int) -> bool:
            return self._outcome(program, given, limited(limit, amount)) != LimitHit(limit)

        if suffices(0):
            return 0
        most, default = 1, int(getattr(DEFAULT_LIMITS, limit))
        while most < default and not suffices(most):
            most *= 2
        least = most // 2
        while most - least > 1:
            middle = (least + most) // 2
            least, most = (least, middle) if suffices(middle) else (middle, most)
        return most

    def _outcome(self, program: DirectProgram, given: Given, limits: Limits) -> Outcome:
        if program.asks:
            return self._subject.run(FormsProgram(program), given, limits).outcome
        return program.call(given.inputs, self._subject.now(given), limits)


def limited(limit: str, amount: int) -> Limits:
    return replace(DEFAULT_LIMITS, **{limit: amount})


def answer_of(given: Given, done: Done, detail: str = "") -> Answer:
    """Return the answer of an execution; other requests or marks than those of the reference are a fault."""
    wanted = given.done
    result = compare(wanted, done)
    if isinstance(result, Disagree) and result.what in ("what is asked for", "an intermediate value"):
        return Answer(given, EngineFault(f"other than the reference: {result.what}"), wanted.outcome, detail)
    return Answer(given, done.outcome, wanted.outcome, detail)


def repeated_ways(subject: Subject) -> Sequence[Way]:
    """Return the ways that only need the engines."""
    found: list[Way] = [Metered(subject)]
    if not subject.is_program or subject.seed % _PROGRAMS_PER_WARM_CACHE == 0:
        found.append(WarmCache(subject))
    compiled_form = subject.direct.get("jit")
    if compiled_form is not None:
        deopt = ForcedDeopt(subject, compiled_form)
        found += [deopt] if deopt.guards else []
    return found
