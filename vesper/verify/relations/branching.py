"""Relations of branches: tables, conditionals and early returns for each other."""

from __future__ import annotations

import random

from vesper.language.syntax import ast
from vesper.language.syntax.yaml_tree import Mapping, Scalar, Sequence, Tree
from vesper.verify.relations.rewritings import Relation, Rewriting, edited
from vesper.verify.relations.step_order import has_only, step_lists, word_of
from vesper.verify.relations.subject import NOWHERE, Data, Edits, Subject, entry, to_tree

_LEAVING = ("return", "raise")
_ALWAYS = ("true", "1 < 2", "NOT (2 < 1)")


def _steps(subject: Subject) -> list[Mapping]:
    return [item for items in step_lists(subject) for item in items.items if isinstance(item, Mapping)]


def _with(step: Mapping, changes: dict[str, Data], *dropped: str) -> Mapping:
    """Return a step with fields replaced or added, and without those dropped."""
    kept = tuple((key, value) for key, value in step.entries if key.text not in changes and key.text not in dropped)
    return Mapping((*kept, *((Scalar(key, "", NOWHERE), to_tree(value)) for key, value in changes.items())), NOWHERE)


def _write_table_as_if(subject: Subject, chance: random.Random) -> Rewriting | None:
    edits, has_any = Edits(subject), False
    for step in _steps(subject):
        rows = entry(step, "rows")
        if word_of(entry(step, "operation")) != "decision_table" or not isinstance(rows, Sequence):
            continue
        text = _nested_ifs(rows)
        if text is not None and (not has_any or chance.random() < 0.7):
            edits.put(step, _with(step, {"operation": "compute", "value": text}, "rows", "otherwise"))
            has_any = True
    return edited(edits) if has_any else None


def _nested_ifs(rows: Sequence) -> str | None:
    """Return rows as nested IFs; None where a cell is no expression on its own."""
    *first, last = rows.items
    otherwise = entry(last, "otherwise")
    if not isinstance(otherwise, Scalar):
        return None
    text = otherwise.text
    for row in reversed(first):
        when, then = entry(row, "when"), entry(row, "then")
        if not isinstance(when, Scalar) or not isinstance(then, Scalar):
            return None
        text = f"IF ({when.text}) THEN ({then.text}) ELSE ({text})"
    return " ".join(text.split()) if "'" not in text and '"' not in text else text.replace("\n", " ")


def _write_if_as_table(subject: Subject, chance: random.Random) -> Rewriting | None:
    edits, has_any = Edits(subject), False
    values = {site.span.start: site for site in subject.of_kind(ast.If) if site.is_root}
    for step in _steps(subject):
        value = entry(step, "value")
        if word_of(entry(step, "operation")) != "compute" or not isinstance(value, Scalar):
            continue
        site = next((each for start, each in values.items() if value.span.start <= start < value.span.end), None)
        if site is None or not subject.is_all_of(site.span, value) or (has_any and chance.random() > 0.7):
            continue
        rows: list[Data] = []
        part: ast.Expression = site.expression
        while isinstance(part, ast.If) and subject.source.text[part.span.start] != "(":
            rows.append({"when": subject.text_of(part.condition.span), "then": subject.text_of(part.then.span)})
            part = part.otherwise
        rows.append({"otherwise": subject.text_of(part.span)})
        if len(rows) > 1:
            edits.put(step, _with(step, {"operation": "decision_table", "rows": rows}, "value"))
            has_any = True
    return edited(edits) if has_any else None


def _swap_blocks(subject: Subject, chance: random.Random) -> Rewriting | None:
    """Negate the condition of conditional steps and swap their blocks."""
    edits, has_any = Edits(subject), False
    for step in _steps(subject):
        then, otherwise, condition = (entry(step, key) for key in ("then", "else", "condition"))
        if word_of(entry(step, "operation")) != "conditional" or then is None or not isinstance(condition, Scalar):
            continue
        if otherwise is None or (has_any and chance.random() > 0.7):
            continue
        edits.put(step, _with(step, {"condition": f"NOT ({condition.text})", "then": otherwise, "else": then}))
        has_any = True
    return edited(edits) if has_any else None


def _write_when_as_conditional(subject: Subject, chance: random.Random) -> Rewriting | None:
    """Turn a conditional end into a conditional whose `else` has the later steps."""
    if subject.has_numbered_requests:
        return None
    lists = step_lists(subject)
    chance.shuffle(lists)
    for items in lists:
        for index, item in enumerate(items.items):
            made = _as_conditional(item, items.items[index + 1 :])
            if made is not None:
                edits = Edits(subject)
                edits.put(items, Sequence((*items.items[:index], made), NOWHERE))
                return edited(edits)
    return None


def _as_conditional(item: Tree, rest: tuple[Tree, ...]) -> Tree | None:
    if not rest or not isinstance(item, Mapping):
        return None
    operation, when, condition = (entry(item, key) for key in ("operation", "when", "condition"))
    if word_of(operation) in _LEAVING and when is not None and has_only(item, "operation", "when", "success", "error"):
        then: Data = [_with(item, {}, "when")]
        return to_tree({"operation": "conditional", "condition": when, "then": then, "else": [*rest]})
    block = entry(item, "then")
    if word_of(operation) != "conditional" or not has_only(item, "operation", "condition", "then"):
        return None
    if condition is None or not isinstance(block, Sequence) or not block.items:
        return None
    last = block.items[-1]
    if word_of(entry(last, "operation")) not in _LEAVING or entry(last, "when") is not None:
        return None
    return to_tree({"operation": "conditional", "condition": condition, "then": block, "else": [*rest]})


def _add_early_return(subject: Subject, chance: random.Random) -> Rewriting | None:
    """Return before the last return under a condition that always holds."""
    if subject.has_numbered_requests:
        return None
    edits, has_any = Edits(subject), False
    for items in step_lists(subject):
        last = items.items[-1]
        if word_of(entry(last, "operation")) not in _LEAVING or not has_only(last, "operation", "success", "error"):
            continue
        early: Data = {"operation": "conditional", "condition": chance.choice(_ALWAYS), "then": [last]}
        edits.put(items, Sequence((*items.items[:-1], to_tree(early), last), NOWHERE))
        has_any = True
    return edited(edits) if has_any else None


RELATIONS = (
    Relation("tables_as_ifs", "a decision table is nested IFs", _write_table_as_if),
    Relation("ifs_as_tables", "an IF is a decision table", _write_if_as_table),
    Relation("swapped_blocks", "a conditional has swapped blocks under NOT", _swap_blocks),
    Relation("else_branches", "the steps after an early end are an else branch", _write_when_as_conditional),
    Relation("early_returns", "an early return that is always taken keeps the outcomes", _add_early_return),
)
