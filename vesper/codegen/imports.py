"""The imports of a module: those of the template that it needs and its kernels, one statement for each module."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from functools import lru_cache

import libcst as cst

from vesper.codegen.layout.expressions import code_of
from vesper.codegen.naming import kernel_name


def imports_of(
    template: Iterable[cst.BaseStatement], used: Collection[str], kernels: Iterable[str]
) -> list[cst.BaseStatement]:
    """In the order that linters want: Python's own, a blank line, ours; by module, and in one by kind and name."""
    names: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
    for line in template:
        assert isinstance(line, cst.SimpleStatementLine)
        statement = line.body[0]
        assert isinstance(statement, cst.ImportFrom)
        assert statement.module is not None
        assert not isinstance(statement.names, cst.ImportStar)
        found = {code_of(each.name) for each in statement.names}
        names[code_of(statement.module)] |= {(name, name) for name in found if name in used}
    for op in kernels:
        family, _, verb = op.partition(".")
        names[f"vesper.kernels.{family}"].add((verb, kernel_name(op)))
    modules = sorted((module for module in names if names[module]), key=lambda module: (_is_ours(module), module))
    firsts = {modules[0]} if modules else set()
    firsts |= {module for module in [next(filter(_is_ours, modules), None)] if module is not None}
    return [_import(module, names[module], has_blank_before=module in firsts) for module in modules]


def _is_ours(module: str) -> bool:
    return module.startswith("vesper")


def _import(module: str, names: Collection[tuple[str, str]], has_blank_before: bool) -> cst.BaseStatement:
    shown = [name if name == called else f"{name} as {called}" for name, called in sorted(names, key=_place)]
    return _parsed(f"from {module} import {', '.join(shown)}\n").with_changes(
        leading_lines=[cst.EmptyLine(indent=False)] if has_blank_before else []
    )


@lru_cache(maxsize=1024)
def _parsed(line: str) -> cst.SimpleStatementLine:
    """Most modules have most of their imports in common."""
    statement = cst.parse_statement(line)
    assert isinstance(statement, cst.SimpleStatementLine)
    return statement


def _place(name: tuple[str, str]) -> tuple[int, str, str]:
    """Constants, then classes, then functions."""
    kind = 0 if name[0].isupper() and len(name[0]) > 1 else 1 if name[0][0].isupper() else 2
    return kind, name[0], name[1]
