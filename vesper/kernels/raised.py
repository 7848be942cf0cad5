"""How a kernel or a clause ends an execution. The engine turns these into outcomes; nobody else catches them."""

from __future__ import annotations

from collections.abc import Mapping

from vesper.spec.errors import ErrorCode


class Raised(Exception):
    """A run-time error of the closed list."""

    def __init__(self, code: ErrorCode) -> None:
        super().__init__(code.value)
        self.code = code


class ContractBroken(Exception):
    """A clause that does not hold: its phase, its index in the phase, and the values it mentions."""

    def __init__(self, phase: str, index: int, values: Mapping[str, object]) -> None:
        super().__init__(f"{phase} {index + 1} is broken")
        self.phase = phase
        self.index = index
        self.values = dict(values)
