"""Words for capabilities: their form, their coverage, and the nearest valid word.

Nodes and the configuration use these words. A word that can match no capability is an error in every place: a void
`allow` refuses too much, and a void `deny` refuses nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from vesper.language.diagnostics.suggest import edit_distance
from vesper.values.generated.capabilities import CAPABILITIES

_TARGET = re.compile(r"\*|[a-zA-Z0-9_][a-zA-Z0-9_.-]*(?<![.-])(?:\.\*)?", re.ASCII)
_NO_SIGN = re.compile(r"[^a-zA-Z0-9_.*-]+")
_DOTS = re.compile(r"[./:]+")
_RESOURCES = frozenset(name.partition(".")[0] for name in CAPABILITIES)
_CLOSE = 2
"""Edits between two words that are taken for one word and its misspelling."""


def covers(granted: str, needed: str) -> bool:
    """Return whether the granted word covers the capability: by equality, or with `*`."""
    return granted in (needed, "*") or (granted.endswith(".*") and needed.startswith(granted[:-1]))


def denies(denied: str, needed: str) -> bool:
    """Return whether the word denies the capability: a prefix denies all below it.

    Letters count in either case: SQLite reads `"Orders"` as the table `orders`.
    """
    stem, needed = denied.lower().removesuffix(".*"), needed.lower()
    return stem in ("*", needed) or needed.startswith(f"{stem}.")


def is_word(word: str, takes_wildcards: bool, takes_prefix: bool) -> bool:
    """Return whether a word has the form of a capability. Wildcards and prefixes replace the target."""
    parts = word.split(".", 2)
    head = ".".join(parts[:2])
    if len(parts) == 3:
        return head in CAPABILITIES and _TARGET.fullmatch(parts[2]) is not None
    if word in _RESOURCES or word in CAPABILITIES:
        return takes_prefix
    return takes_wildcards and (word == "*" or (len(parts) == 2 and parts[1] == "*" and parts[0] in _RESOURCES))


def nearest_word(word: str, declared: Iterable[str] = ()) -> str:
    """Return the nearest valid word: one that a node declares, or a corrected form."""
    plain = _NO_SIGN.sub("", _DOTS.sub(".", word)).strip(".-")
    plain = plain.lower() if plain.isupper() else plain
    if not plain.strip("*"):
        return "*"
    close = min(declared, key=lambda each: _distance(plain, each), default=None)
    if close is not None and _distance(plain, close) <= max(_CLOSE, len(plain) // 5):
        return close
    parts = plain.split(".")
    operation = ".".join(parts[:2])
    head = min(CAPABILITIES, key=lambda each: _distance(operation, each))
    target = ".".join(parts[2:])
    return f"{head}.{target if _TARGET.fullmatch(target) else '*'}"


def is_misspelling(word: str, capability: str) -> bool:
    """Return whether a word is so close to a capability that it probably means it."""
    return word.partition(".")[0].lower() == capability.partition(".")[0] and _distance(word, capability) <= _CLOSE


def _distance(one: str, other: str) -> int:
    one, other = one.lower().replace("-", "_"), other.lower().replace("-", "_")
    return edit_distance(one, other, max(len(one), len(other)))
