"""Syntax tree of libraries, used libraries and parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from vesper.language.diagnostics.source import SourceFile
from vesper.language.syntax import ast
from vesper.language.syntax.yaml_tree import Tree


@dataclass(frozen=True, slots=True)
class Use:
    """A used library and the names to use; None for all of its names."""

    library: ast.Word
    names: tuple[ast.Word, ...] | None


@dataclass(frozen=True, slots=True)
class ParameterEntry:
    """The value of a parameter from a date on."""

    since: ast.Word
    value: Tree
    reference: ast.Word | None


OverlayEntries: TypeAlias = tuple[tuple[ast.Word, tuple[ParameterEntry, ...]], ...]
"""Entries of an overlay by the name of their parameter."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A value that changes with time. A scale has brackets instead of values of a type."""

    name: ast.Word
    type: ast.TypeText | None
    scale: str | None
    unit: str | None
    reference: str | None
    entries: tuple[ParameterEntry, ...]


@dataclass(frozen=True, slots=True)
class Library:
    """A library as written: definitions for nodes and other libraries."""

    source: SourceFile
    library_id: ast.Word
    intent: ast.Word
    uses: tuple[Use, ...]
    types: tuple[ast.RecordType | ast.NamedType, ...]
    constants: tuple[ast.Constant, ...]
    parameters: tuple[Parameter, ...]
    functions: tuple[ast.Function, ...]
