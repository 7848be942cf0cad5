"""Replays of one version on a case: requests get their recorded answers, and nothing is performed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

from vesper.changes.backtest.cases import Case
from vesper.compiler import Compiled
from vesper.engines.engine import Blocked, Completion, Limits
from vesper.engines.outcome import DeclaredError, Failed, Outcome
from vesper.engines.version_outcomes import ending
from vesper.trace.programs import program_of
from vesper.values.generated.errors import ErrorCode

ENGINE = "interp"
_ROUND = re.compile(r"\[[0-9]+\]")
_CODES = frozenset(str(each) for each in ErrorCode)


@dataclass(frozen=True, slots=True)
class Unanswered:
    """The version made a request that the record has no answer to."""

    step: str
    """The path of the request without the rounds of loops."""


Ended: TypeAlias = Outcome | Unanswered


class Version:
    """One version of a node, loaded to be replayed."""

    def __init__(self, compiled: Compiled, engine: str = ENGINE) -> None:
        self.compiled = compiled
        self._program = program_of(compiled, engine)
        self._names = frozenset(each.name for each in compiled.node.inputs)

    def replay(self, case: Case) -> Ended:
        """Return how the version ends on a case. An input that it does not declare takes no part."""
        inputs = {name: value for name, value in case.inputs.items() if name in self._names}
        execution = self._program.start(inputs, case.now, Limits(), is_traced=False)
        answers = dict(case.answers)
        step = execution.advance(())
        while isinstance(step, Blocked):
            request = step.requests[0]
            answer = answers.pop(request.path, None)
            if answer is None or not answer.is_for(request):
                return Unanswered(_ROUND.sub("", request.path))
            step = execution.advance((Completion(request.id, answer.value, answer.failure),))
        return step.outcome


def ending_text(ended: Ended, hides_codes: bool = False) -> str:
    """Return how a replay ended, with the code of a declared error. `hides_codes` leaves codes of nodes out."""
    match ended:
        case Unanswered(step):
            return f"asks something new at {step}"
        case DeclaredError(value) if not hides_codes and value.get("error_code") is not None:
            return f"declared error: {value['error_code']}"
        case Failed(code) if hides_codes and str(code) not in _CODES:
            return "failed"
        case _:
            return ending(ended)
