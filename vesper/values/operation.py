"""Row types of the generated tables of operations and operator precedence."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OpSpec:
    """Declaration of an operation, without its kernels. Types are texts that `declared_type` reads."""

    name: str
    type_params: tuple[tuple[str, str], ...]
    params: tuple[tuple[str, str], ...]
    returns: str
    raises: tuple[str, ...]
    effects: str
    operator: str | None
    function: str | None = None
    """Short name in expressions. Overloads share one and differ in argument types."""
    defaults: tuple[tuple[str, str], ...] = ()
    """Trailing parameters that a call may omit, each with the JSON text of its value."""
    literals: tuple[str, ...] = ()
    """Parameters whose argument must be a literal, because it is read at check time."""
    form: str | None = None
    """Kind of `for` in the IR, for an operation that is evaluated for each item."""
    call: str | None = None
    """Notation of a form in expressions."""
    status: str = "implemented"
    work: tuple[str, ...] = ()
    """Parameters whose size counts as work, and `result` (docs/spec/limits.md)."""

    @property
    def is_implemented(self) -> bool:
        """False for an operation that is specified and that no engine has. Nodes that use it are rejected."""
        return self.status == "implemented"

    @property
    def has_kernel(self) -> bool:
        return self.is_implemented and self.form is None

    @property
    def family(self) -> str:
        return self.name.partition(".")[0]

    @property
    def verb(self) -> str:
        return self.name.partition(".")[2]


@dataclass(frozen=True, slots=True)
class OperatorLevel:
    """Operators of equal precedence; `associates` is left, right, none or prefix."""

    operators: tuple[str, ...]
    associates: str
