"""Exceptions with which a kernel or clause ends an execution. Engines turn them into outcomes.

Generated code is also called directly, so each exception describes its location in the `.vsp` file and what to do. The
text is built on demand, so that raising stays cheap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal

from vesper.kernels.runtime.source import Origin, origin
from vesper.values.generated.errors import ErrorCode
from vesper.values.inputs import Refusal
from vesper.values.model import Problem, ProblemKind, show
from vesper.values.period import Period
from vesper.values.types import DECIMAL, Type
from vesper.values.vesper_error import VesperError

_MAX_SHOWN_PROBLEMS = 8
_MAX_SHOWN_CODE_POINTS = 200


class _Ending(VesperError):
    """An exception that finds its location in a node from its traceback."""

    _help: str = ""

    def __str__(self) -> str:
        at = origin(self.__traceback__)
        if at is not None and at.line is None and self.__cause__ is not None:
            # A failure that became a declared error: the cause has a location, the error has none.
            at = origin(self.__cause__.__traceback__) or at
        return self._message(at) if at is None else f"{at}: {self._message(at)}"

    def _message(self, at: Origin | None) -> str:
        raise NotImplementedError

    @property
    def __notes__(self) -> list[str]:
        """Return the notes that Python prints below the message, created on first access."""
        notes: list[str] | None = vars(self).get("notes")
        if notes is None:
            notes = vars(self)["notes"] = [self._help] if self._help else []
        return notes

    @__notes__.setter
    def __notes__(self, notes: list[str]) -> None:
        vars(self)["notes"] = notes


class Raised(_Ending):
    """A failure with its code. Operations, effects and called nodes raise it."""

    def __init__(self, code: ErrorCode | str) -> None:
        super().__init__(str(code))
        self.code: str = str(code)

    def _message(self, at: Origin | None) -> str:
        return self.code

    @property
    def _help(self) -> str:  # type: ignore[override]  # depends on the code
        known = self.code in _CODES
        return f"help: `on_error` of the step can take `{self.code}`" + (
            "; docs/spec/errors.md lists when it is raised" if known else ""
        )


class ClauseFailed(_Ending):
    """A failure in a postcondition or invariant. It ends the execution, and no handler catches it."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code

    def _message(self, at: Origin | None) -> str:
        return f"{self.code} in a clause that is checked at the end"


class DeclaredError(_Ending):
    """An error that the node declares under `outputs.error`, with its fields."""

    def __init__(self, values: Mapping[str, object]) -> None:
        super().__init__(str(values["error_code"]))
        self.values = dict(values)

    def _message(self, at: Origin | None) -> str:
        rest = {name: value for name, value in self.values.items() if name != "error_code"}
        code = f"the node ends with its error `{self.values['error_code']}`"
        return f"{code}: {_show_values(rest)}" if rest else code


class ContractBroken(_Ending):
    """A clause that does not hold, with its phase, index and mentioned values."""

    def __init__(self, phase: str, index: int, values: Mapping[str, object]) -> None:
        super().__init__(phase, index)
        self.phase = phase
        self.index = index
        self.values = dict(values)

    def _message(self, at: Origin | None) -> str:
        text = None if at is None else at.source.clause(self.phase, self.index)
        clause = f"{self.phase} {self.index + 1}" if text is None else f"{self.phase} `{text}`"
        return f"{clause} does not hold" + (f": {_show_values(self.values)}" if self.values else "")

    @property
    def _help(self) -> str:  # type: ignore[override]  # depends on the phase
        if self.phase in ("constraint", "precondition", "validation"):
            return "help: the inputs violate the clause; change the inputs or the clause"
        return "help: the inputs are valid and the node is wrong: its flow violates the clause"


class BadInput(_Ending):
    """Inputs that the node cannot accept. Each problem has the expected type and the given object."""

    def __init__(self, refusals: Sequence[Refusal]) -> None:
        super().__init__(ErrorCode.BAD_INPUT.value)
        self.refusals = tuple(refusals)
        self.problems: tuple[Problem, ...] = tuple(each.problem for each in refusals)

    def _message(self, at: Origin | None) -> str:
        lines = [_refusal_text(each) for each in self.refusals[:_MAX_SHOWN_PROBLEMS]]
        if len(self.refusals) > _MAX_SHOWN_PROBLEMS:
            lines.append(f"and {len(self.refusals) - _MAX_SHOWN_PROBLEMS} more")
        if len(lines) == 1:
            return f"bad input: {lines[0]}"
        return "bad inputs:" + "".join(f"\n  {line}" for line in lines)


_CODES = frozenset(code.value for code in ErrorCode)


def _refusal_text(refusal: Refusal) -> str:
    path, kind = refusal.problem.path, refusal.problem.kind
    if kind is ProblemKind.MISSING:
        return f"{path} is missing; it is {_with_article(refusal.expected)}"
    if kind is ProblemKind.UNKNOWN:
        return f"{path} is unknown: nothing has this name"
    text = f"{path} is {_describe_given(refusal.given)}, and not {_with_article(refusal.expected)}: {_WHY[kind]}"
    if refusal.expected == DECIMAL and type(refusal.given) is float:
        text += '; a float is not exact, give a Decimal or a text ("0.10")'
    return text


_WHY = {
    ProblemKind.WRONG_TYPE: "an object of another type",
    ProblemKind.OUT_OF_RANGE: "it is over a limit of the type",
    ProblemKind.MALFORMED: "it is not in the form of the type",
    ProblemKind.NOT_A_MEMBER: "it is none of the members",
    ProblemKind.DUPLICATE: "two of its members or keys are equal",
    ProblemKind.TOO_DEEP: "it has too many levels",
}


def _with_article(type_: Type | None) -> str:
    name = str(type_)
    return f"an {name}" if name[0] in "aeio" else f"a {name}"


def _show_values(values: Mapping[str, object]) -> str:
    return ", ".join(f"{name} = {_show_value(value)}" for name, value in values.items())


def _show_value(value: object) -> str:
    """Return a value for a message, shortened if long."""
    text = show(value)
    return text if len(text) <= _MAX_SHOWN_CODE_POINTS else f"{text[:_MAX_SHOWN_CODE_POINTS]}…"


def _describe_given(given: object) -> str:
    """Describe the object of a caller. Only objects of simple built-in types are shown; others could run code."""
    kind = type(given)
    if given is None:
        return "null"
    if kind is int and isinstance(given, int) and given.bit_length() > _MAX_SHOWN_BITS:
        return f"an int of {given.bit_length()} bits"
    return f"{_show_value(given)} ({kind.__name__})" if kind in _SIMPLE else f"an object of type {kind.__name__}"


_MAX_SHOWN_BITS = 256
_SIMPLE = (bool, int, float, str, bytes, Decimal, date, datetime, timedelta, time, Period)
