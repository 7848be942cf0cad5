"""Help for one unknown word, from the table of habits. The table is loaded with the first such word."""

from __future__ import annotations

from collections.abc import Iterable

from vesper.language.diagnostics.suggest import did_you_mean


def known_field(where: str, key: str, allowed: tuple[str, ...]) -> str | None:
    """Return our field for one of another language, if it is one of the allowed ones."""
    from vesper.language.syntax.habits.table import FIELDS

    rows = FIELDS.get(where.strip("`"), {}) or (FIELDS["a step"] if "operation" in allowed else {})
    snake = "".join(f"_{each.lower()}" if each.isupper() else each for each in key).replace("-", "_").lstrip("_")
    meant = rows.get(key.lower(), snake)
    return meant if meant in allowed and meant != key else None


def help_for_type(name: str, known: Iterable[str]) -> str | None:
    """Return the help for an unknown name of a type."""
    from vesper.language.syntax.habits.table import TYPES

    meant = TYPES.get(name) or TYPES.get(name.lower())
    of = {"array": "array<T>", "map": "map<K, V>", "set": "set<T>", "optional": "optional<T>", "enum": "enum[a, b]"}
    if meant in of:
        return f"write `{of[meant]}`, with the types of what it holds" if meant != "enum" else "write `enum[a, b]`"
    return did_you_mean(name, known) if meant is None else f"write `{meant}`"


def help_for_name(name: str, candidates: Iterable[str]) -> str | None:
    """Return the help for an unknown bare word: null, true or false in another spelling, or a close name."""
    from vesper.language.syntax.habits.table import NAMES

    close = did_you_mean(name, candidates)
    return f"write `{NAMES[name]}`" if close is None and name in NAMES else close


def help_for_operation(name: str, known: Iterable[str]) -> str:
    """Return the help for an unknown operation of a step."""
    from vesper.language.syntax.habits.table import OPERATIONS

    known = tuple(known)
    meant = OPERATIONS.get(name.lower().replace("-", "_")) or (name.lower() if name.lower() in known else None)
    if meant is not None:
        return f"write `{meant}`"
    return did_you_mean(name, known) or f"the operations are {', '.join(known)}"


def meant_functions(name: str) -> tuple[str, ...]:
    """Return our functions for one of another language."""
    from vesper.language.syntax.habits.forms import FUNCTION_NAMES
    from vesper.language.syntax.habits.table import respelt_function

    return respelt_function(name, FUNCTION_NAMES)
