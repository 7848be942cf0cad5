"""The shape of the generated tables: one row an operation, one level an operator precedence."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OpSpec:
    """What everybody but the two kernels knows about an operation. Types are text, as `declared_type` reads it."""

    name: str
    type_params: tuple[tuple[str, str], ...]
    params: tuple[tuple[str, str], ...]
    returns: str
    raises: tuple[str, ...]
    effects: str
    operator: str | None
    function: str | None

    @property
    def family(self) -> str:
        return self.name.partition(".")[0]

    @property
    def verb(self) -> str:
        return self.name.partition(".")[2]


@dataclass(frozen=True, slots=True)
class OperatorLevel:
    """Operators that bind equally tight; `associates` is left, none or prefix."""

    operators: tuple[str, ...]
    associates: str
