"""How a kernel or a clause ends an execution. The engine turns these into outcomes; nobody else catches them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vesper.spec.errors import ErrorCode
from vesper.spec.problem import Problem
from vesper.spec.vesper_error import VesperError


class Raised(VesperError):
    """A failure: a run-time error of the closed list, or what came of an effect or a called node."""

    def __init__(self, code: ErrorCode | str) -> None:
        super().__init__(str(code))
        self.code: str = str(code)


class DeclaredError(VesperError):
    """An error that the node declares under `outputs.error`, with its fields."""

    def __init__(self, values: Mapping[str, object]) -> None:
        super().__init__(str(values["error_code"]))
        self.values = dict(values)


class ContractBroken(VesperError):
    """A clause that does not hold: its phase, its index in the phase, and the values it mentions."""

    def __init__(self, phase: str, index: int, values: Mapping[str, object]) -> None:
        super().__init__(f"{phase} {index + 1} is broken")
        self.phase = phase
        self.index = index
        self.values = dict(values)


class BadInput(VesperError):
    """Inputs that do not fit: every problem that there is with them."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__(", ".join(f"{each.path}: {each.kind.value}" for each in problems))
        self.problems = tuple(problems)
