"""Explanation of a failure code: its meaning, what raises it, and how a node handles it."""

from __future__ import annotations

import re
import textwrap

from vesper.language.diagnostics.codes import Code
from vesper.values.generated.errors import ErrorCode

_HTTP = re.compile(r"http_(?:[1-5][0-9][0-9]|[45]xx)", re.ASCII)
_MOST_NAMES = 12


def failure_code(word: str) -> str | None:
    """Return the failure code that a word is, also for one status of HTTP such as `http_402`. None for another word."""
    word = word.strip()
    return word if word in set(ErrorCode) or _HTTP.fullmatch(word) else None


def failure_explanation(code: str, width: int) -> str:
    """Return the meaning of a failure code, the functions and steps that raise it, and its handling."""
    from vesper.values.generated.error_meanings import ERROR_MEANINGS

    declared = "http_error" if _HTTP.fullmatch(code) else code
    meaning = ERROR_MEANINGS[declared] if declared == code else f"The HTTP status is {code.removeprefix('http_')}."
    raised = [f"{what}: {', '.join(names)}." for what, names in _raised_by(declared) if names]
    handling = (
        "A step handles it:",
        f"    on_error:\n      {code}: {{value: …}}",
        "Or the node declares it, and callers get it as an error:",
        f'    outputs:\n      error: {{error_code: "enum[{code}]", message: string}}',
    )
    other = next((each for each in Code if each.title.replace("-", "_") == code), None)
    see = () if other is None else (f"The diagnostic {other.number} of the same name: `vesper explain {other.title}`.",)
    is_handled = code != ErrorCode.BAD_INPUT  # no step has begun
    parts = [f"{code}: a failure of a run", meaning, *raised, *(handling if is_handled else ()), *see]
    return "\n\n".join(each if each.startswith("    ") else textwrap.fill(each, width) for each in parts)


def _raised_by(code: str) -> list[tuple[str, list[str]]]:
    from vesper.values.generated.effects import EFFECTS
    from vesper.values.generated.operations import IMPLEMENTED

    raising = [spec for spec in IMPLEMENTED.values() if code in spec.raises]
    named = [f"`{spec.function or spec.operator}`" for spec in raising if spec.function or spec.operator]
    steps = [f"`{name}`" for spec in EFFECTS.values() if code in spec.codes() for name in spec.operations]
    return [("Functions and operators that raise it", _first(named)), ("Steps that fail with it", _first(steps))]


def _first(names: list[str]) -> list[str]:
    listed = list(dict.fromkeys(names))
    return listed if len(listed) <= _MOST_NAMES else [*listed[:_MOST_NAMES], f"and {len(listed) - _MOST_NAMES} more"]
