"""The Rust engine, as Python sees it. Only `vesper.engines.direct_engine` imports this module."""

from typing import Any, Final, Literal, TypeAlias, final

_Problem: TypeAlias = tuple[str, str]
"""A path and a kind of docs/spec/values.md, such as `("amount", "wrong_type")`."""

_RawOutcome: TypeAlias = (
    tuple[Literal["returned"], dict[str, Any]]
    | tuple[Literal["failed"], str, int | None, list[_Problem]]
    | tuple[Literal["contract_broken"], str, int, dict[str, Any]]
    | tuple[Literal["engine_fault"], str]
)
"""`failed`: code, index of the expression (None while converting), problems (only for `bad_input`).
`contract_broken`: phase (`constraint`, `precondition`, `postcondition`), index of the clause, values."""

__all__ = ["IR_VERSION", "IrRejected", "Program", "operation_names"]

IR_VERSION: Final[int]

class IrRejected(ValueError):
    """The bytes are not a well-formed IR document; the message says what and where."""

@final
class Program:
    """One loaded node: verified, compiled, immutable, safe to call from any thread."""

    @staticmethod
    def load(ir: bytes) -> Program: ...
    @property
    def node_id(self) -> str: ...
    @property
    def semantic_hash(self) -> str: ...
    def call(self, inputs: dict[str, Any], /) -> _RawOutcome: ...
    def trace(self, inputs: dict[str, Any], /) -> tuple[list[tuple[int, Any]], _RawOutcome]: ...

def operation_names() -> list[str]:
    """Every operation this build implements, sorted."""
