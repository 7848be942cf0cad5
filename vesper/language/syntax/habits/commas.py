"""Numbers with commas: grouped thousands, and a comma in place of the point."""

from __future__ import annotations

import re
from dataclasses import dataclass

_NUMBER = re.compile(
    r"(?<![\w,])(?<![^.]\.)(?P<whole>[0-9]+)(?P<groups>(?:,[0-9]+)+)(?P<point>\.[0-9]+)?(?!\w|\.(?!\.)|,[0-9])",
    re.ASCII,
)
_TEXT = re.compile(r"'[^']*'|\"[^\"]*\"")
_CALL_OR_LIST = re.compile(r"\w\(|\{|\[(?![^\[({]*\.\.)")
"""An open bracket after which commas separate. Inside `[0..10]` none does."""


@dataclass(frozen=True, slots=True)
class CommaNumber:
    """A number with commas in a text."""

    start: int
    end: int
    written: str
    help: str
    problem: str
    is_grouped: bool
    """Whether three digits follow a comma, so that it may separate thousands."""


def comma_numbers(text: str) -> list[CommaNumber]:
    """Return the numbers with commas in a text."""
    return [_number(each) for each in _NUMBER.finditer(text) if not re.search(r",[0-9]+,(?![0-9]{3})", each[0])]


def grouped_numbers(expression: str) -> list[CommaNumber]:
    """Return the numbers of an expression with grouped thousands, outside texts, calls and lists."""
    text = _TEXT.sub(lambda each: " " * len(each[0]), expression)
    return [each for each in comma_numbers(text) if each.is_grouped and not _is_inside(text[: each.start])]


def _is_inside(before: str) -> bool:
    """Return whether a comma after this text separates arguments or items."""
    rest = ""
    while before != rest:
        rest, before = before, re.sub(r"\([^()\[\]{}]*\)|\[[^()\[\]{}]*\]|\{[^()\[\]{}]*\}", " ", before)
    return _CALL_OR_LIST.search(before) is not None


def _number(found: re.Match[str]) -> CommaNumber:
    whole, groups, point = found["whole"], found["groups"][1:].split(","), found["point"] or ""
    is_grouped = all(len(each) == 3 for each in groups)
    plain, decimal = "".join((whole, *groups)), f"{whole}.{groups[0]}"
    problem = "has a decimal comma"
    if len(groups) > 1 or point:
        is_grouped, problem = True, "has a comma" if len(groups) == 1 else "has commas"
        help_ = f"write `{plain}{point}`: a number has no comma"
    elif not is_grouped:
        help_ = f"write `{decimal}`: a decimal has a point"
    elif whole.strip("0") == "" or len(whole) > 3:
        help_ = f"a decimal has a point: `{decimal}`"
    else:  # thousands, or a decimal: only the author knows
        meant = (f"{whole} thousand", whole) if groups[0] == "000" else ("a whole number", "a decimal")
        help_ = f"a number has no comma: write `{plain}` for {meant[0]}, or `{decimal}` for {meant[1]}"
        problem = "has a comma"
    return CommaNumber(*found.span(), found[0], help_, problem, is_grouped)
