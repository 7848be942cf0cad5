"""Exceptions of `vesper.kernels.raised` for executions without a traceback: on the direct engine, or from a journal.

Exceptions of generated Python find their place in the node by their traceback. These have their message instead, and
are caught under the same names.
"""

from __future__ import annotations

from collections.abc import Mapping

from vesper.kernels import raised
from vesper.values.problem import Problem
from vesper.values.vesper_error import VesperError


class BadInput(raised.BadInput):
    def __init__(self, message: str, problems: tuple[Problem, ...]) -> None:
        VesperError.__init__(self, message, problems)
        self.problems = problems

    def __str__(self) -> str:
        return str(self.args[0])


class ContractBroken(raised.ContractBroken):
    def __init__(self, message: str, phase: str, index: int, values: Mapping[str, object]) -> None:
        VesperError.__init__(self, message, phase, index, values)
        self.phase, self.index, self.values = phase, index, dict(values)

    def __str__(self) -> str:
        return str(self.args[0])


class DeclaredError(raised.DeclaredError):
    def __init__(self, message: str, values: Mapping[str, object]) -> None:
        VesperError.__init__(self, message, values)
        self.values = dict(values)

    def __str__(self) -> str:
        return str(self.args[0])


class Raised(raised.Raised):
    def __init__(self, message: str, code: str) -> None:
        VesperError.__init__(self, message, code)
        self.code = code

    def __str__(self) -> str:
        return str(self.args[0])
