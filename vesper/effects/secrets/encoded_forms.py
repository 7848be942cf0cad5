"""Search for secrets in values, in every form in which a program may have encoded them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

from vesper._direct import secret_forms

_MIN_IN_VALUES: Final = 8
"""A shorter secret is not looked for in what comes back: `test` stands in half of all answers."""


@lru_cache(maxsize=256)
def forms_of(secret: str) -> frozenset[str]:
    """Return the forms of a secret to search for. Forms that would occur in any text are left out."""
    return frozenset(secret_forms(secret))


def holds_any(value: object, secrets: Iterable[str]) -> bool:
    """Return whether a value contains a secret. Forms shorter than the secret are ignored."""
    forms = {
        form for text in secrets if len(text) >= _MIN_IN_VALUES for form in forms_of(text) if len(form) >= len(text)
    }
    if not forms:
        return False
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, Mapping):
            waiting += each.keys()
            waiting += each.values()
        elif isinstance(each, list | tuple | set | frozenset):
            waiting += each
        elif each is not None and not isinstance(each, bool):
            text = each.decode("latin-1") if isinstance(each, bytes) else str(each)
            if any(form in text for form in forms):
                return True
    return False
