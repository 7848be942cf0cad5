"""Explanations as text for a terminal and as Markdown for a report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from vesper.api.explanation.model import Condition, Explanation, MatchedRow, NamedValue, Nearest, UsedParameter
from vesper.engines.outcome import ContractBroken, DeclaredError, Failed, Outcome, Returned
from vesper.language.ir.nodes import Node
from vesper.values.model import printable, show

_MAX_VALUE = 80
_MARKDOWN = str.maketrans({"|": "\\|", "\n": " ", "`": "'"})


def text_of(explanation: Explanation) -> str:
    """Render an explanation on lines; parts without entries are left out."""
    lines = [f"{explanation.node_id}: {_outcome(explanation.node, explanation.outcome)}"]
    if explanation.reasons:
        lines.append(f"reasons: {', '.join(explanation.reasons)}")
    for title, entries in (
        ("rows", [_row_text(each) for each in explanation.rows]),
        ("conditions", [_condition_text(each) for each in explanation.conditions if each.kind != "parameter"]),
        ("parameters", [_parameter_text(each) for each in explanation.parameters]),
    ):
        if entries:
            lines += ["", f"{title}:", *(f"  {entry}" for entry in entries)]
    if explanation.omitted:
        lines.append(f"  and {explanation.omitted:,} more")
    if explanation.nearest is not None:
        lines += ["", *_nearest_lines(explanation, explanation.nearest)]
    return "\n".join(lines)


def markdown_of(explanation: Explanation) -> str:
    """Render an explanation as a Markdown document with one table for each part."""
    outcome = _outcome(explanation.node, explanation.outcome)
    lines = [f"# {explanation.node_id}", "", _cell(outcome)]
    if explanation.reasons:
        lines += ["", f"Reasons: {', '.join(map(_cell, explanation.reasons))}"]
    rows = [
        (each.table, each.row, each.text, each.annotation or "", each.reason or "", each.times)
        for each in explanation.rows
    ]
    lines += _table("Rows", ("table", "row", "condition", "annotation", "reason", "times"), rows)
    conditions = [
        (each.line, each.kind, each.text, show(each.holds), _values(each.values), each.reason or "", each.times)
        for each in explanation.conditions
        if each.kind != "parameter"
    ]
    lines += _table("Conditions", ("line", "kind", "condition", "holds", "values", "reason", "times"), conditions)
    parameters = [
        (each.name, each.date or "", each.since or "", _short(each.value.value), each.reference or "")
        for each in explanation.parameters
    ]
    lines += _table("Parameters", ("parameter", "date", "since", "value", "reference"), parameters)
    if explanation.nearest is not None:
        lines += ["", "## Nearest input with another outcome", ""]
        lines += [_cell(line.strip()) for line in _nearest_lines(explanation, explanation.nearest)]
    return "\n".join(lines) + "\n"


def _table(title: str, names: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> list[str]:
    cells = [f"| {' | '.join(_cell(each) for each in row)} |" for row in rows]
    if not cells:
        return []
    return ["", f"## {title}", "", f"| {' | '.join(names)} |", f"|{'---|' * len(names)}", *cells]


def _cell(value: object) -> str:
    return printable(str(value)).translate(_MARKDOWN)


def _row_text(row: MatchedRow) -> str:
    cells = ", ".join(f"{name} {cell}" for name, cell in row.cells.items())
    text = f"{row.table} row {row.row} (line {row.line}): {printable(cells or row.text)}"
    if row.annotation:
        text += f" — {printable(row.annotation)}"
    if row.reason:
        text += f" [{row.reason}]"
    return text + _times(row.times)


def _condition_text(condition: Condition) -> str:
    values = _values(condition.values)
    text = f"line {condition.line} {condition.kind} `{printable(condition.text)}` is {show(condition.holds)}"
    text += f" ({values})" if values else ""
    text += f" [{condition.reason}]" if condition.reason else ""
    return text + _times(condition.times)


def _times(times: int) -> str:
    return f" ×{times:,}" if times > 1 else ""


def _parameter_text(parameter: UsedParameter) -> str:
    text = parameter.name
    text += "" if parameter.date is None else f" at {parameter.date}"
    text += f": {_short(parameter.value.value)}" + (f" {parameter.unit}" if parameter.unit else "")
    text += ", not in force" if parameter.since is None else f", in force since {parameter.since}"
    return text + (f" ({printable(parameter.reference)})" if parameter.reference else "")


def _values(values: Mapping[str, NamedValue]) -> str:
    return ", ".join(f"{name} {_short(each.value)}" for name, each in values.items())


def _short(value: object) -> str:
    text = show(value)
    return text if len(text) <= _MAX_VALUE else f"{text[: _MAX_VALUE - 1]}…"


def _outcome(node: Node | None, outcome: Outcome | None) -> str:
    match outcome:
        case None:
            return "has not ended"
        case Returned(value):
            return ", ".join(f"{name} {_short(each)}" for name, each in value.items())
        case DeclaredError(value):
            return "error " + ", ".join(f"{name} {_short(each)}" for name, each in value.items())
        case ContractBroken(phase, index):
            clause = "" if node is None else f" `{dict(node.phases())[phase][index].text}`"
            return f"{phase}{clause} does not hold"
        case Failed(code, _, problems):
            named = ", ".join(f"{each.path} {each.kind.value.replace('_', ' ')}" for each in problems)
            return f"failed with {code}" + (f": {named}" if named else "")
        case _:
            return outcome.kind.replace("_", " ")


def _nearest_lines(explanation: Explanation, nearest: Nearest) -> list[str]:
    if nearest.outcome is None:
        return [f"no input with another outcome found within {nearest.tries:,} tries"]
    changes = [f"  {each.path} {_short(each.after)} instead of {_short(each.before)}" for each in nearest.changes]
    return [
        f"the nearest input found with another outcome ({nearest.tries:,} tries):",
        *changes,
        f"  gives {_outcome(explanation.node, nearest.outcome)}",
    ]
