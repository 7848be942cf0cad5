"""The shape of the generated tables: one row an operation, one level an operator precedence."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OpSpec:
    """What everybody but the two kernels knows about an operation. Types are text, as `Type.parse` reads it."""

    name: str
    type_params: tuple[tuple[str, str], ...]
    params: tuple[tuple[str, str], ...]
    returns: str
    raises: tuple[str, ...]
    effects: str
    operator: str | None
    function: str | None = None
    """The short name by which expressions call it; overloads share one and differ in the types of their arguments."""
    defaults: tuple[tuple[str, str], ...] = ()
    """Trailing parameters that a call may leave out, each with the JSON text of its value."""
    literals: tuple[str, ...] = ()
    """Parameters whose argument must be a literal, because it is read when the node is checked."""
    form: str | None = None
    """Of an operation that computes something for each item: the kind of `for` that it is in the IR."""
    call: str | None = None
    """Of a form: how it is written."""
    status: str = "implemented"

    @property
    def is_implemented(self) -> bool:
        """False for what the specification has and no engine has yet; a node that uses it is refused by name."""
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
    """Operators that bind equally tight; `associates` is left, none or prefix."""

    operators: tuple[str, ...]
    associates: str
