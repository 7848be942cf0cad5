"""The table at the end of a generated module.

It maps lines of the module to those of the node, and has the texts of clauses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from vesper.codegen.layout.lines import WIDTH
from vesper.codegen.layout.python_expression import write_string
from vesper.language.ir import nodes as ir

_INDENT = "    "


def write_source_table(node: ir.Node, lines: Mapping[int, int]) -> str:
    rows = ["SOURCE: Final = Source(", f"{_INDENT}{write_string(node.source.path)},"]
    rows += _fill_rows("lines={", (f"{line}: {of_node}," for line, of_node in sorted(lines.items())), "},")
    phases = {phase: clauses for phase, clauses in node.phases() if clauses}
    if phases:
        rows.append(f"{_INDENT}clauses={{")
        for phase, clauses in phases.items():
            rows.append(f"{_INDENT * 2}{write_string(phase)}: [")
            rows += [f"{_INDENT * 3}{write_string(clause.text)}," for clause in clauses]
            rows.append(f"{_INDENT * 2}],")
        rows.append(f"{_INDENT}}},")
    # A formatter would put each entry on a line; the packed table is shorter.
    return "\n".join([*rows, ")  # fmt: skip"]) + "\n"


def _fill_rows(head: str, entries: Iterable[str], end: str) -> list[str]:
    """Write the entries one after another, as many on a line as fit."""
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
