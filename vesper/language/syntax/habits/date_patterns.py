"""Patterns of dates of other languages: `%d.%m.%Y` and `DD.MM.YYYY`."""

from __future__ import annotations

import re

_PERCENT = {
    "Y": "yyyy", "y": "yy", "m": "MM", "d": "dd", "H": "HH", "I": "hh", "M": "mm", "S": "ss", "p": "a", "B": "MMMM",
    "b": "MMM", "A": "EEEE", "a": "EEE", "f": "SSSSSS", "F": "yyyy-MM-dd", "T": "HH:mm:ss", "%": "%",
}  # fmt: skip
"""Fields of strftime."""
_LETTERS = {"Y": "y", "D": "d"}


def meant_pattern(text: str) -> str:
    """Return a pattern with the fields of other languages translated."""
    if "%" in text:
        parts = re.split(r"%[-#]?([A-Za-z%])", text)
        fields = [_PERCENT.get(each, f"%{each}") for each in parts[1::2]]
        literals = [f"'{each}'" if re.search("[A-Za-z]", each) else each for each in parts[::2]]
        return "".join(one + two for one, two in zip(literals, [*fields, ""], strict=True))
    if re.search("[YD]", text):
        meant = "".join(_LETTERS.get(each, each) for each in text)
        return re.sub(r"(?<=[-./ ])m+(?=[-./ ]y)|(?<=y[-./])m+(?=[-./])", lambda each: each[0].upper(), meant)
    if re.fullmatch(r"(?:[dmy]+[-./ ]?){3}", text):  # `dd.mm.yyyy`: a date has no minutes
        return text.replace("m", "M")
    return text
