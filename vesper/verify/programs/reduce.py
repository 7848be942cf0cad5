"""Greedy reduction of a failing program while it still fails.

Whole parts (clauses, steps, outputs, inputs) are removed first; then expressions are replaced by parts of the same type
or by the simplest literal. A candidate that the checker rejects is skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar

from vesper.values.types import BOOLEAN, BYTES, DECIMAL, FLOAT, INTEGER, JSON, STRING, OptionalOf, Type
from vesper.verify.programs.terms import TIGHTEST, Term
from vesper.verify.programs.text import Draft, DrawnCompute, DrawnFlow, DrawnStep, DrawnTable, Tree, Written

MAX_TRIES = 400
_Item = TypeVar("_Item")
_SIMPLEST: dict[Type, tuple[str, ...]] = {
    BOOLEAN: ("true", "false"),
    INTEGER: ("0", "1"),
    DECIMAL: ("0.0", "1.0"),
    STRING: ("''", "'a'"),
    FLOAT: ("0e0", "1e0"),
    BYTES: ("parse_hex('')", "parse_hex('61')"),
    JSON: ("parse_json('0')",),
}


def reduce_program(draft: Draft, still_fails: Callable[[Draft], bool], max_tries: int = MAX_TRIES) -> Draft:
    """Return the smallest program found for which `still_fails` holds, as it must for `draft`."""
    tries = position = 0
    improved = True
    while improved:
        improved = False
        # After a success, continue at the same place: candidates that failed before rarely succeed now.
        for index, candidate in enumerate(_smaller(draft)):
            if index < position:
                continue
            tries += 1
            if tries > max_tries:
                return draft
            if still_fails(candidate):
                draft, position, improved = candidate, index, True
                break
        else:
            improved, position = position > 0, 0
    return draft


def _smaller(draft: Draft) -> Iterator[Draft]:
    for steps in _without_one(draft.steps):
        yield replace(draft, steps=steps)
    if len(draft.outputs) > 1:
        for name, _ in draft.outputs:
            yield _without_output(draft, name)
    for clauses in _without_one(draft.preconditions):
        yield replace(draft, preconditions=clauses)
    for clauses in _without_one(draft.postconditions):
        yield replace(draft, postconditions=clauses)
    for clauses in _without_one(draft.invariants):
        yield replace(draft, invariants=clauses)
    for codes in _without_one(draft.error_codes):
        yield replace(draft, error_codes=codes)
    for constants in _without_one(draft.constants):
        yield replace(draft, constants=constants)
    for parameters in _without_one(draft.parameters):
        yield replace(draft, parameters=parameters)
    for inputs in _without_one(draft.inputs):
        yield replace(draft, inputs=inputs)
    for records in _without_one(draft.records):
        yield replace(draft, records=records)
    for functions in _without_one(draft.functions):
        yield replace(draft, functions=functions)
    for named in _without_one(draft.named):
        yield replace(draft, named=named)
    for index, record in enumerate(draft.records):
        for constraints in _without_one(record.constraints):
            yield replace(draft, records=_replace_at(draft.records, index, replace(record, constraints=constraints)))
    for index, each in enumerate(draft.inputs):
        if each.written is not None:
            yield replace(draft, inputs=_replace_at(draft.inputs, index, replace(each, written=None)))
        if each.constraints or each.default is not None:
            yield replace(draft, inputs=_replace_at(draft.inputs, index, replace(each, constraints=(), default=None)))
    for index, step in enumerate(draft.steps):
        for block in _inner_blocks(step):
            yield replace(draft, steps=(*draft.steps[:index], *block, *draft.steps[index + 1 :]))
        yield from (replace(draft, steps=_replace_at(draft.steps, index, simpler)) for simpler in _simpler_steps(step))
    yield from _simpler_expressions(draft)


def _without_output(draft: Draft, name: str) -> Draft:
    """Return the draft without an output, also in the returns inside of steps."""
    steps = tuple(
        DrawnFlow({key: _without_returned(value, key, name) for key, value in step.fields.items()})
        if isinstance(step, DrawnFlow)
        else step
        for step in draft.steps
    )
    outputs = tuple(each for each in draft.outputs if each[0] != name)
    returned = tuple(each for each in draft.returned if each[0] != name)
    return replace(draft, steps=steps, outputs=outputs, returned=returned)


def _without_returned(tree: Tree, key: str, name: str) -> Tree:
    if isinstance(tree, dict):
        is_return = key in ("success", "return")
        return {
            each: _without_returned(value, each, name)
            for each, value in tree.items()
            if not (is_return and each == name)
        }
    return [_without_returned(each, "", name) for each in tree] if isinstance(tree, list) else tree


def _inner_blocks(step: DrawnStep) -> Iterator[tuple[DrawnStep, ...]]:
    """Yield each way of a conditional or a match as steps in its place."""
    if not isinstance(step, DrawnFlow):
        return
    fields = step.fields
    cases = fields.get("cases")
    ways = [fields.get("then"), fields.get("else"), fields.get("otherwise")]
    ways += [case.get("then") for case in cases if isinstance(case, dict)] if isinstance(cases, list) else []
    for way in ways:
        steps, value = way, None
        if isinstance(way, dict):
            steps, value = way.get("steps", []), way.get("value")
        elif isinstance(way, Term):
            steps, value = [], way
        if not isinstance(steps, list):
            continue
        found: list[DrawnStep] = [DrawnFlow(each) for each in steps if isinstance(each, dict)]
        if value is not None and "step" in fields:
            found.append(DrawnFlow({"step": fields["step"], "operation": "compute", "value": value}))
        yield tuple(found)


def _simpler_steps(step: DrawnStep) -> Iterator[DrawnStep]:
    if isinstance(step, DrawnTable):
        for then in (step.otherwise, *(then for _, then in step.rows)):
            yield DrawnCompute(((step.name, then),), is_block=False)
        for rows in _without_one(step.rows):
            yield replace(step, rows=rows)
    elif isinstance(step, DrawnFlow):
        for fields in _smaller_trees(dict(step.fields)):
            assert isinstance(fields, dict)
            yield DrawnFlow(fields)
    elif len(step.values) > 1:
        for values in _without_one(step.values):
            yield replace(step, values=values)


def _simpler_expressions(draft: Draft) -> Iterator[Draft]:
    """Yield the draft with one expression simplified, at any depth."""
    for index, clause in enumerate(draft.preconditions):
        for term in _simpler_terms(clause):
            yield replace(draft, preconditions=_replace_at(draft.preconditions, index, term))
    for index, step in enumerate(draft.steps):
        for simpler in _simpler_in_step(step):
            yield replace(draft, steps=_replace_at(draft.steps, index, simpler))
    for index, (name, value) in enumerate(draft.returned):
        for term in () if value is None else _simpler_terms(value):
            yield replace(draft, returned=_replace_at(draft.returned, index, (name, term)))
    for index, clause in enumerate(draft.postconditions):
        for term in _simpler_terms(clause):
            yield replace(draft, postconditions=_replace_at(draft.postconditions, index, term))
    for index, function in enumerate(draft.functions):
        for term in _simpler_terms(function.value):
            yield replace(draft, functions=_replace_at(draft.functions, index, replace(function, value=term)))
    for index, record in enumerate(draft.records):
        for place, clause in enumerate(record.constraints):
            for term in _simpler_terms(clause):
                changed = replace(record, constraints=_replace_at(record.constraints, place, term))
                yield replace(draft, records=_replace_at(draft.records, index, changed))


def _simpler_in_step(step: DrawnStep) -> Iterator[DrawnStep]:
    if isinstance(step, DrawnCompute):
        for index, (name, value) in enumerate(step.values):
            for simpler in _simpler_values(value):
                yield replace(step, values=_replace_at(step.values, index, (name, simpler)))
        return
    if isinstance(step, DrawnFlow):
        for fields in _simpler_trees(dict(step.fields)):
            assert isinstance(fields, dict)
            yield DrawnFlow(fields)
        return
    for index, (when, then) in enumerate(step.rows):
        for term in _simpler_terms(when):
            yield replace(step, rows=_replace_at(step.rows, index, (term, then)))
        for term in _simpler_terms(then):
            yield replace(step, rows=_replace_at(step.rows, index, (when, term)))
    for term in _simpler_terms(step.otherwise):
        yield replace(step, otherwise=term)


def _smaller_trees(tree: Tree) -> Iterator[Tree]:
    """Yield the tree without one field or entry, at any depth; the checker rejects invalid ones."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield {name: each for name, each in tree.items() if name != key}
            yield from ({**tree, key: smaller} for smaller in _smaller_trees(value))
    elif isinstance(tree, list):
        for index, item in enumerate(tree):
            yield tree[:index] + tree[index + 1 :]
            yield from ([*tree[:index], smaller, *tree[index + 1 :]] for smaller in _smaller_trees(item))


def _simpler_trees(tree: Tree) -> Iterator[Tree]:
    """Yield the tree with one expression simplified."""
    if isinstance(tree, Term):
        yield from _simpler_terms(tree)
    elif isinstance(tree, dict):
        for key, value in tree.items():
            yield from ({**tree, key: simpler} for simpler in _simpler_trees(value))
    elif isinstance(tree, list):
        for index, item in enumerate(tree):
            yield from ([*tree[:index], simpler, *tree[index + 1 :]] for simpler in _simpler_trees(item))


def _simpler_values(value: Written) -> Iterator[Written]:
    match value:
        case Term():
            yield from _simpler_terms(value)
        case list():
            for index, item in enumerate(value):
                yield value[:index] + value[index + 1 :]
                yield from ([*value[:index], term, *value[index + 1 :]] for term in _simpler_terms(item))
        case _:
            for name, item in value.items():
                yield from ({**value, name: term} for term in _simpler_terms(item))


def _simpler_terms(term: Term) -> Iterator[Term]:
    """Yield simpler terms of the same type, simplest first; then the term with one part simplified."""
    texts = _SIMPLEST.get(term.type, ("null",) if isinstance(term.type, OptionalOf) else ())
    for text in texts:
        if str(term) in texts:
            break
        yield Term(term.type, (text,))
    yield from (part for part in _inside(term) if part.type == term.type)
    for index, part in enumerate(term.parts):
        if isinstance(part, Term):
            for simpler in _simpler_terms(part):
                yield replace(term, parts=_replace_at(term.parts, index, _parenthesise(simpler)))


def _inside(term: Term) -> Iterator[Term]:
    """Yield every term inside a term, outermost first."""
    for part in term.terms():
        yield part
        yield from _inside(part)


def _parenthesise(term: Term) -> Term:
    """Return a term for another term's place, in parentheses if needed."""
    return term if term.level == TIGHTEST else Term(term.type, ("(", term, ")"))


def _without_one(items: tuple[_Item, ...]) -> Iterator[tuple[_Item, ...]]:
    return (items[:index] + items[index + 1 :] for index in reversed(range(len(items))))


def _replace_at(items: tuple[_Item, ...], index: int, item: _Item) -> tuple[_Item, ...]:
    return (*items[:index], item, *items[index + 1 :])
