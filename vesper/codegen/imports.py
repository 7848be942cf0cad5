"""The import statements of a module: those of the template that it uses, and those of its kernels."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache

import libcst as cst

from vesper.codegen.layout.expressions import render_code
from vesper.codegen.naming import kernel_name


def write_imports(
    template: Iterable[cst.BaseStatement], used: Collection[str], kernels: Iterable[str]
) -> list[cst.BaseStatement]:
    """Write imports in the order of import sorters: the standard library, a blank line, Vesper."""
    names: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
    for line in template:
        assert isinstance(line, cst.SimpleStatementLine)
        statement = line.body[0]
        assert isinstance(statement, cst.ImportFrom)
        assert statement.module is not None
        assert not isinstance(statement.names, cst.ImportStar)
        found = {render_code(each.name) for each in statement.names}
        names[render_code(statement.module)] |= {(name, name) for name in found if name in used}
    for op in kernels:
        family, _, verb = op.partition(".")
        names[f"vesper.kernels.{family}"].add((verb, kernel_name(op)))
    modules = sorted((module for module in names if names[module]), key=lambda module: (_is_ours(module), module))
    firsts = {modules[0]} if modules else set()
    firsts |= {module for module in [next(filter(_is_ours, modules), None)] if module is not None}
    return [
        statement
        for module in modules
        for statement in _write_statements(module, names[module], has_blank_before=module in firsts)
    ]


def _is_ours(module: str) -> bool:
    return module.startswith("vesper")


def _write_statements(
    module: str, names: Collection[tuple[str, str]], has_blank_before: bool
) -> Iterator[cst.SimpleStatementLine]:
    """Write one statement for all plain names and one for each alias.

    They are in the order of their first names.
    """
    plain = sorted((name for name in names if name[0] == name[1]), key=_sort_key)
    groups = [plain, *([name] for name in names if name[0] != name[1])]
    for group in sorted((group for group in groups if group), key=lambda group: _sort_key(group[0])):
        shown = [name if name == called else f"{name} as {called}" for name, called in group]
        statement = _parse(f"from {module} import {', '.join(shown)}\n")
        yield statement.with_changes(leading_lines=[cst.EmptyLine(indent=False)] if has_blank_before else [])
        has_blank_before = False


@lru_cache(maxsize=1024)
def _parse(line: str) -> cst.SimpleStatementLine:
    """Parse an import line. Cached, because most modules share most of their imports."""
    statement = cst.parse_statement(line)
    assert isinstance(statement, cst.SimpleStatementLine)
    return statement


def _sort_key(name: tuple[str, str]) -> tuple[int, str, str]:
    """Return the sort key of a name: constants, then classes, then functions."""
    kind = 0 if name[0].isupper() and len(name[0]) > 1 else 1 if name[0][0].isupper() else 2
    return kind, name[0], name[1]
