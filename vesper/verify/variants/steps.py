"""Changes of a document's structure: steps, rows, clauses, bounds of loops, declared types.

Each function takes the tree and a `Drawing`, and returns another tree, or None where there is no place for the change.
Expressions that it adds come from the document before the change; the checker refuses those that do not fit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import TypeAlias

from vesper.values.types import BOOLEAN
from vesper.verify.variants.document import Keys, Leaf, Part, Site, part_at, replace_part, walk_parts
from vesper.verify.variants.expressions import NUMBERS, Drawing, other_number, spliced_text

StructureEdit: TypeAlias = "Callable[[Part, Drawing], Part | None]"
_WORD = re.compile(r"[A-Za-z_]\w*")
_CLAUSES = ("preconditions", "postconditions", "invariants")
_LISTS = ("rows", "require", "guards", "constraints", *_CLAUSES)
_TYPES = {"integer": "decimal", "decimal": "float", "string": "optional<string>", "array<": "set<", "set<": "array<"}
_MAXIMA = ("1", "2", "3", "5", "10", "100")
_BOUNDS = ("max", "min", "max_length", "min_length", "max_items", "min_items", "value", "default")


def _flows(tree: Part) -> list[tuple[Keys, list[Part]]]:
    """Return the lists of steps at any depth."""
    return [
        (path, part)
        for path, part in walk_parts(tree)
        if isinstance(part, list) and part and all(isinstance(each, dict) and "operation" in each for each in part)
    ]


def _steps(tree: Part, operation: str) -> list[tuple[Keys, dict[str, Part]]]:
    found = []
    for path, part in walk_parts(tree):
        named = part.get("operation") if isinstance(part, dict) else None
        if isinstance(part, dict) and isinstance(named, Leaf) and named.text == operation:
            found.append((path, part))
    return found


def _condition(drawing: Drawing, section: str = "flow") -> Leaf | None:
    """Return a condition that the document has, or one spliced in."""
    if drawing.random.random() < 0.3:
        paths = [each.path for each in drawing.document.sites if each.path[0] == section]
        text = spliced_text(drawing, BOOLEAN, drawing.random.choice(paths)) if paths else None
    else:
        texts = [each.text for each in drawing.document.sites if each.type == BOOLEAN and each.path[0] == section]
        text = drawing.random.choice(texts) if texts else None
    return None if text is None else Leaf(text, is_expression=True)


def _mentions(tree: Part, names: frozenset[str]) -> bool:
    """Return whether a text of the tree has one of the names as a word."""
    leaves = (part for _, part in walk_parts(tree) if isinstance(part, Leaf))
    return any(not names.isdisjoint(_WORD.findall(leaf.text)) for leaf in leaves)


def _declared(step: Part) -> frozenset[str]:
    """Return the names that a step declares for those after it."""
    assert isinstance(step, dict)
    name, block = step.get("step"), step.get("compute")
    found = [name.text] if isinstance(name, Leaf) else []
    return frozenset([*found, *(block if isinstance(block, dict) else ())])


def _ends(step: Part) -> bool:
    """Return whether no step can follow this one."""
    operation = step.get("operation") if isinstance(step, dict) else None
    is_end = isinstance(operation, Leaf) and operation.text in ("return", "raise")
    return is_end and isinstance(step, dict) and "when" not in step


def delete_step(tree: Part, drawing: Drawing) -> Part | None:
    """Delete a step that nothing refers to."""
    found: list[Part] = []
    for path, part in _flows(tree):
        for index, step in enumerate(part[:-1]):
            rest = replace_part(tree, (*path, index), None)
            if not _mentions(rest, _declared(step)):
                found.append(rest)
    return drawing.random.choice(found) if found else None


def move_step(tree: Part, drawing: Drawing) -> Part | None:
    """Exchange two steps, of which the second does not refer to the first."""
    found = [
        (path, part, place)
        for path, part in _flows(tree)
        for place, (first, second) in enumerate(pairwise(part))
        if not _mentions(second, _declared(first)) and not _ends(second)
    ]
    if not found:
        return None
    path, part, place = drawing.random.choice(found)
    return replace_part(tree, path, [*part[:place], part[place + 1], part[place], *part[place + 2 :]])


def duplicate_step(tree: Part, drawing: Drawing) -> Part | None:
    """Repeat a step, with other names for its declarations."""
    found = _flows(tree)
    if not found:
        return None
    path, part = drawing.random.choice(found)
    places = [place for place, step in enumerate(part) if not _ends(step)]
    if not places:
        return None
    place = drawing.random.choice(places)
    copied = part[place]
    assert isinstance(copied, dict)
    copy: dict[str, Part] = dict(copied)
    if isinstance(name := copy.get("step"), Leaf):
        copy["step"] = Leaf(f"{name.text}_again")
    if isinstance(block := copy.get("compute"), dict):
        copy["compute"] = {f"{key}_again": value for key, value in block.items()}
    return replace_part(tree, path, [*part[: place + 1], copy, *part[place + 1 :]])


def add_when(tree: Part, drawing: Drawing) -> Part | None:
    """Run a step only where a condition holds, if nothing needs its value."""
    condition = _condition(drawing)
    found = [
        ((*path, index), step)
        for path, part in _flows(tree)
        for index, step in enumerate(part)
        if not (_ends(step) or _mentions(part[index + 1 :], _declared(step)))
    ]
    if condition is None or not found:
        return None
    path, step = drawing.random.choice(found)
    assert isinstance(step, dict)
    return replace_part(tree, path, {**step, "when": condition})


def return_early(tree: Part, drawing: Drawing) -> Part | None:
    """Return the same outputs before the end, where a condition holds."""
    condition = _condition(drawing)
    assert isinstance(tree, dict)
    flow = tree.get("flow")
    if condition is None or not isinstance(flow, list) or not _ends(flow[-1]):
        return None
    last = flow[-1]
    assert isinstance(last, dict)
    first = len(flow) - 1
    while first > 0 and not _mentions(last, _declared(flow[first - 1])):
        first -= 1
    place = drawing.random.randrange(first, len(flow))
    early = {**{key: value for key, value in last.items() if key != "step"}, "when": condition}
    return {**tree, "flow": [*flow[:place], early, *flow[place:]]}


def add_step(tree: Part, drawing: Drawing) -> Part | None:
    """Compute an expression of any document in a step of its own."""
    typed = [each.type for donor in (*drawing.donors, drawing.document) for each in donor.sites if each.type]
    flows = _flows(tree)
    if not flows or not typed:
        return None
    path, part = drawing.random.choice(flows)
    place = drawing.random.randrange(len(part))
    near = [each.path for each in drawing.document.sites if each.path[: len(path) + 1] == (*path, place)]
    text = spliced_text(drawing, drawing.random.choice(typed), near[0]) if near else None
    if text is None:
        return None
    added: Part = {
        "step": Leaf("spliced"),
        "operation": Leaf("compute"),
        "value": Leaf(text, is_expression=True),
    }
    return replace_part(tree, path, [*part[:place], added, *part[place:]])


def change_loop(tree: Part, drawing: Drawing) -> Part | None:
    """Add or change `max`, `WHERE` or `stop_when` of a loop."""
    found = _steps(tree, "loop")
    if not found:
        return None
    path, step = drawing.random.choice(found)
    kind = drawing.random.choice(("max", "where", "stop_when"))
    if kind == "max":
        return replace_part(tree, path, {**step, "max": Leaf(drawing.random.choice(_MAXIMA))})
    over = step.get("over")
    on_item = None if not isinstance(over, Leaf) else _item_condition(over.text, path, drawing)
    if kind == "where":
        if on_item is None or not isinstance(over, Leaf) or " WHERE " in over.text:
            return None
        return replace_part(tree, path, {**step, "over": Leaf(f"{over.text} WHERE {on_item}", is_expression=True)})
    texts = [each.text for each in _inside(path, drawing) if each.type == BOOLEAN]
    text = drawing.random.choice([*texts, *([] if on_item is None else [on_item])] or ["false"])
    return replace_part(tree, path, {**step, "stop_when": Leaf(text, is_expression=True)})


def _inside(path: Keys, drawing: Drawing) -> list[Site]:
    return [each for each in drawing.document.sites if each.path[: len(path)] == path]


def _item_condition(over: str, path: Keys, drawing: Drawing) -> str | None:
    """Return a comparison of the item of a loop, or of a field of it, with a number on either side."""
    item = over.split(" IN ", maxsplit=1)[0].split(",", maxsplit=1)[0].strip()
    used = {each.text for each in _inside(path, drawing) if each.type in NUMBERS}
    numbers = sorted(each for each in used if each == item or each.startswith(f"{item}."))
    if not numbers:
        return None
    sides = [drawing.random.choice(numbers), drawing.random.choice(("0", "1", "2", "3", "7"))]
    drawing.random.shuffle(sides)
    return f"{sides[0]} {drawing.random.choice(('<', '<=', '>', '>=', '!=', '=='))} {sides[1]}"


def swap_branches(tree: Part, drawing: Drawing) -> Part | None:
    """Exchange the branches of a conditional."""
    found = [(path, step) for path, step in _steps(tree, "conditional") if "then" in step and "else" in step]
    if not found:
        return None
    path, step = drawing.random.choice(found)
    return replace_part(tree, path, {**step, "then": step["else"], "else": step["then"]})


def change_list(tree: Part, drawing: Drawing) -> Part | None:
    """Delete, repeat or move an entry of a table, of conditions or of constraints."""
    found = [
        (path, part)
        for path, part in walk_parts(tree)
        if isinstance(part, list) and part and path and path[-1] in _LISTS
    ]
    if not found:
        return None
    path, part = drawing.random.choice(found)
    place = drawing.random.randrange(len(part))
    other = drawing.random.randrange(len(part))
    match drawing.random.randrange(3):
        case 0:
            return replace_part(tree, (*path, place), None) if len(part) > 1 else replace_part(tree, path, None)
        case 1:
            return replace_part(tree, path, [*part[:place], part[place], *part[place:]])
        case _:
            moved = list(part)
            moved[place], moved[other] = moved[other], moved[place]
            return replace_part(tree, path, moved)


def add_clause(tree: Part, drawing: Drawing) -> Part | None:
    """Add a clause that repeats a condition of the flow or of another clause."""
    clause = _condition(drawing, drawing.random.choice(("flow", "contracts")))
    if clause is None:
        return None
    assert isinstance(tree, dict)
    contracts = tree.get("contracts", {})
    assert isinstance(contracts, dict)
    kind = drawing.random.choice(_CLAUSES)
    listed = contracts.get(kind, [])
    assert isinstance(listed, list)
    return {**tree, "contracts": {**contracts, kind: [*listed, clause]}}


def change_bound(tree: Part, drawing: Drawing) -> Part | None:
    """Change a number outside of expressions: the bound of a constraint or a loop, a constant, a default."""
    found = []
    for path, part in walk_parts(tree):
        is_bound = bool(path) and (path[-1] in _BOUNDS or path[0] == "constants") and path[0] != "testing"
        if is_bound and isinstance(part, Leaf) and part.style == "" and part.text.replace(".", "", 1).isdigit():
            found.append((path, part))
    if not found:
        return None
    path, part = drawing.random.choice(found)
    return replace_part(tree, path, Leaf(other_number(part.text, drawing.random), is_expression=part.is_expression))


def change_type(tree: Part, drawing: Drawing) -> Part | None:
    """Widen a declared type: an integer to a decimal, a text to an optional one."""
    found = []
    for path, part in walk_parts(tree):
        if isinstance(part, Leaf) and path[0] in ("inputs", "outputs", "types", "functions", "constants"):
            found += [(path, part, word) for word in _TYPES if word in part.text and not part.is_expression]
    if not found:
        return None
    path, part, word = drawing.random.choice(found)
    assert part_at(tree, path) is part
    return replace_part(tree, path, Leaf(part.text.replace(word, _TYPES[word], 1), part.style))


STRUCTURE_EDITS: Mapping[StructureEdit, int] = {
    delete_step: 2,
    move_step: 3,
    duplicate_step: 3,
    add_when: 2,
    return_early: 5,
    add_step: 3,
    change_loop: 6,
    swap_branches: 2,
    change_list: 4,
    add_clause: 4,
    change_bound: 5,
    change_type: 2,
}
"""Each with its weight."""
