"""Help for one unknown word, from the table of habits. The table is loaded with the first unknown word."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from vesper.language.diagnostics.suggest import did_you_mean

if TYPE_CHECKING:
    from vesper.language.syntax.habits.steps import StepNote
    from vesper.language.syntax.yaml_tree import Tree


def known_field(where: str, key: str, allowed: tuple[str, ...]) -> str | None:
    """Return the allowed field for a foreign field name, or None."""
    from vesper.language.syntax.habits.table import FIELDS

    rows = (FIELDS["a step"] if "operation" in allowed else {}) | FIELDS.get(where.strip("`"), {})
    snake = "".join(f"_{each.lower()}" if each.isupper() else each for each in key).replace("-", "_").lstrip("_")
    meant = rows.get(key.lower(), snake)
    return meant if meant in allowed and meant != key else None


def help_for_field(where: str, key: str, names: Iterable[str]) -> str | None:
    """Return the help for an unknown field that `known_field` does not translate."""
    from vesper.language.syntax.habits.table import FIELD_NOTES

    note = FIELD_NOTES.get(key) if where == "a node" else None
    return note or did_you_mean(key, names)


def note_on_field(where: str, key: str, value: Tree) -> StepNote | None:
    """Return the note on a field of another language in a step."""
    from vesper.language.syntax.habits.steps import note_on_step_field

    return note_on_step_field(where, key, value)


def help_for_missing(where: str, key: str) -> str:
    """Return the help for a missing field."""
    from vesper.language.syntax.habits.table import MISSING_FIELDS

    return MISSING_FIELDS.get((where, key)) or f"add `{key}: …`"


def help_for_type(name: str, known: Iterable[str]) -> str | None:
    """Return the help for an unknown name of a type."""
    from vesper.language.syntax.habits.table import TYPES

    meant = TYPES.get(name) or TYPES.get(name.lower())
    of = {"array": "array<T>", "map": "map<K, V>", "set": "set<T>", "optional": "optional<T>", "enum": "enum[a, b]"}
    if meant in of:
        return f"write `{of[meant]}`, with the types of what it holds" if meant != "enum" else "write `enum[a, b]`"
    return did_you_mean(name, known) if meant is None else f"write `{meant}`"


def help_for_name(name: str, candidates: Iterable[str]) -> str | None:
    """Return the help for an unknown bare word. The word may be null, true or false in a foreign spelling."""
    from vesper.language.syntax.habits.table import NAMES

    candidates = tuple(candidates)
    if name in NAMES and not any(each.lower() == name.lower() for each in candidates):
        return f"write `{NAMES[name]}`"
    inside = next((each for each in candidates if len(each) > 4 and name.lower().endswith(f"_{each}")), None)
    return did_you_mean(name, candidates) if inside is None else f"did you mean `{inside}`?"


def help_for_operation(name: str, known: Iterable[str]) -> str:
    """Return the help for an unknown operation of a step."""
    from vesper.language.syntax.habits.table import OPERATIONS

    known = tuple(known)
    meant = OPERATIONS.get(name.lower().replace("-", "_")) or (name.lower() if name.lower() in known else None)
    if meant is not None:
        return f"write `{meant}`"
    return did_you_mean(name, known) or f"the operations are {', '.join(known)}"


def note_on_function(name: str) -> str | None:
    """Return the note on a foreign function without a counterpart."""
    from vesper.language.syntax.habits.table import FUNCTION_NOTES

    return FUNCTION_NOTES.get(name.lower())


def meant_functions(name: str) -> tuple[str, ...]:
    """Return Vesper's functions for a foreign function name."""
    from vesper.language.syntax.habits.forms import FUNCTION_NAMES
    from vesper.language.syntax.habits.table import respelt_function

    return respelt_function(name, FUNCTION_NAMES)
