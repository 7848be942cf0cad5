"""Libraries as the checker sees them: definitions that nodes and other libraries use by name.

A definition is checked once, in its own file, and inlined where it is used. An unused definition does not affect the
node.
"""

from __future__ import annotations

from dataclasses import dataclass

from vesper.language.check.expressions.functions import NodeFunction, qualified_name
from vesper.language.check.expressions.parameters import Parameter
from vesper.language.check.named_types import TypeResolver
from vesper.language.check.tables.lowered import LoweredTable
from vesper.language.diagnostics.source import SourceFile
from vesper.language.ir import nodes as ir
from vesper.language.ir.lookup_tables import Table


@dataclass(frozen=True, slots=True, eq=False)
class Library:
    """The definitions of a library without errors."""

    library_id: str
    source: SourceFile
    types: TypeResolver
    constants: dict[str, ir.Constant]
    parameters: dict[str, Parameter]
    functions: dict[str, NodeFunction]
    recursive: tuple[ir.Function, ...]
    """Functions with `max_depth`, under their qualified names."""
    tables: tuple[LoweredTable, ...]
    """Tables in the values of its functions."""
    local_count: int
    """Number of locals in its functions. Those of its users have higher numbers, so that none is bound twice."""
    lookup_tables: dict[str, Table]
    """Tables with the rows of files, by hash, of this library and of those that it uses."""
    files: tuple[tuple[str, str], ...]
    """Files with these rows: path and SHA-256."""
    used: tuple[Library, ...] = ()
    """Libraries that it uses."""

    def names(self) -> tuple[str, ...]:
        """Return the names of all definitions, in the order of the sections."""
        return (*self.types.declared_names(), *self.constants, *self.parameters, *self.functions)

    def all_functions(self) -> dict[str, ir.Function]:
        """Return the recursive functions of this library and its used libraries, by qualified name."""
        found = {name: each for library in self.used for name, each in library.all_functions().items()}
        return found | {each.name: each for each in self.recursive}

    def all_constants(self) -> dict[str, ir.Constant]:
        """Return the constants of this library and its used libraries, by qualified name."""
        found = {name: each for library in self.used for name, each in library.all_constants().items()}
        return found | {qualified_name(self.library_id, name): each for name, each in self.constants.items()}
