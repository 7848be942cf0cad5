"""The table at the end of a generated module: from its lines to those of the node, and the texts of the clauses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from vesper.codegen.layout.lines import WIDTH
from vesper.codegen.layout.python_expression import string_literal
from vesper.language.ir import nodes as ir

_INDENT = "    "


def source_table(node: ir.Node, lines: Mapping[int, int]) -> str:
    rows = ["SOURCE: Final = Source(", f"{_INDENT}{string_literal(node.source.path)},"]
    rows += _filled("lines={", (f"{line}: {of_node}," for line, of_node in sorted(lines.items())), "},")
    phases = {phase: clauses for phase, clauses in node.phases() if clauses}
    if phases:
        rows.append(f"{_INDENT}clauses={{")
        for phase, clauses in phases.items():
            rows.append(f"{_INDENT * 2}{string_literal(phase)}: [")
            rows += [f"{_INDENT * 3}{string_literal(clause.text)}," for clause in clauses]
            rows.append(f"{_INDENT * 2}],")
        rows.append(f"{_INDENT}}},")
    # Packed lines, which no formatter would leave: nobody reads them one by one.
    return "\n".join([*rows, ")  # fmt: skip"]) + "\n"


def _filled(head: str, entries: Iterable[str], end: str) -> list[str]:
    """The entries one after another, as many on a line as it holds."""
    rows = [f"{_INDENT}{head}"]
    row = ""
    for entry in entries:
        if row and len(_INDENT) * 2 + len(row) + 1 + len(entry) > WIDTH:
            rows.append(f"{_INDENT * 2}{row}")
            row = ""
        row = f"{row} {entry}" if row else entry
    if row:
        rows.append(f"{_INDENT * 2}{row}")
    return [*rows, f"{_INDENT}{end}"]
