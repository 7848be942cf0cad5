"""Patterns of JSON Schema: for texts of values, decimals in a range, and Vesper's patterns."""

from __future__ import annotations

from decimal import Decimal

from vesper.language.json_schema.facts import Facts
from vesper.values.pattern import PatternProblem
from vesper.values.pattern_parser import parse_pattern

_FRACTION = r"(?:\.[0-9]{0,100})?"
_ANY_DECIMAL = rf"^[+-]?(?:[0-9]{{1,100}}{_FRACTION}|\.[0-9]{{1,100}})(?:[eE][+-]?[0-9]{{1,2}})?$"
WRITTEN_DECIMAL = r"^-?[0-9]+(?:\.[0-9]+)?$"
_MAX_DIGITS = 100
TEXTS = {
    "duration": (
        r"^[+-]?(?:P(?:[0-9]{1,6}D(?:T(?=[0-9])(?:[0-9]{1,6}H)?(?:[0-9]{1,6}M)?(?:[0-9]{1,6}(?:\.[0-9]{1,6})?S)?)?"
        r"|T(?=[0-9])(?:[0-9]{1,6}H)?(?:[0-9]{1,6}M)?(?:[0-9]{1,6}(?:\.[0-9]{1,6})?S)?)"
        r"|(?=[0-9])(?:[0-9]{1,6}d)?(?:[0-9]{1,6}h)?(?:[0-9]{1,6}m)?(?:[0-9]{1,6}(?:\.[0-9]{1,6})?s)?"
        r"(?:[0-9]{1,6}ms)?(?:[0-9]{1,6}us)?)$"
    ),
    "time_of_day": r"^(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,6}0{0,3})?$",
    "period": r"^[+-]?P(?=[0-9])(?:[0-9]{1,3}Y)?(?:[0-9]{1,4}M)?$",
    "bytes": r"^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$",
}
"""Accepted texts by type. Those of a duration and a period have fewer digits than the limits allow."""
_CLASSES = {"d": "0-9", "w": "A-Za-z0-9_", "s": r"\t\n\v\f\r "}
_SYNTAX = r"^$\.*+?()[]{}|/"


# -- decimals -------------------------------------------------------------------------------------


def decimal_pattern(facts: Facts) -> str:
    """Return a pattern of texts of decimals within bounds.

    The service accepts every text that matches. It also accepts texts with an exponent, a plus or leading zeros, which
    do not match. If no whole number lies between the bounds, only the bounds match, or any decimal.
    """
    low, high = facts.low, facts.high
    if low is None and high is None:
        return _ANY_DECIMAL
    parts = []
    if high is None or high > 0:
        is_open = facts.is_low_open and low is not None and low >= 0
        parts += _magnitudes(max(low or Decimal(0), Decimal(0)), is_open, high, facts.is_high_open)
    elif high == 0 and not facts.is_high_open:
        parts.append(_exact_pattern(high))
    if low is None or low < 0:
        is_open = high is None or high >= 0 or facts.is_high_open
        nearest = Decimal(0) if high is None or high > 0 else -high
        parts += [
            f"-(?:{each})" for each in _magnitudes(nearest, is_open, None if low is None else -low, facts.is_low_open)
        ]
    return f"^(?:{'|'.join(parts)})$" if parts else _ANY_DECIMAL


def _magnitudes(low: Decimal, is_low_open: bool, high: Decimal | None, is_high_open: bool) -> list[str]:
    """Return patterns of decimals without a sign from `low` to `high`."""
    edges = [(low, is_low_open), *([] if high is None else [(high, is_high_open)])]
    parts = [_exact_pattern(each) for each, is_open in edges if not is_open]
    if high is None or int(low) < int(high):
        parts.append(_whole_part_pattern(low, above=True))
        if high is not None and high != int(high):
            parts.append(_whole_part_pattern(high, above=False))
        last = None if high is None else int(high) - 1
        if last is None or int(low) + 1 <= last:
            parts.append(f"(?:{'|'.join(_integers(int(low) + 1, last))}){_FRACTION}")
    return list(dict.fromkeys(parts))


def _whole_part_pattern(bound: Decimal, above: bool) -> str:
    """Return the pattern of numbers above or below a bound with its whole part."""
    whole, _, fraction = f"{bound.normalize():f}".partition(".")
    found = [rf"{fraction}0{{0,50}}[1-9][0-9]{{0,50}}"] if above else [fraction[:end] for end in range(len(fraction))]
    for place, digit in enumerate(map(int, fraction)):
        first, last = (digit + 1, 9) if above else (0, digit - 1)
        if first <= last:
            found.append(f"{fraction[:place]}{_digits(first, last)}[0-9]{{0,50}}")
    return rf"{whole}\.(?:{'|'.join(found)})" if above else rf"{whole}(?:\.(?:{'|'.join(found)}))?"


def _exact_pattern(number: Decimal) -> str:
    """Return the pattern of one number, with any zeros behind its fraction."""
    whole, _, fraction = f"{number.normalize():f}".partition(".")
    return rf"{whole}\.{fraction}0{{0,50}}" if fraction else rf"{whole}(?:\.0{{0,50}})?"


def _integers(first: int, last: int | None) -> list[str]:
    """Return patterns of the integers of a range, without leading zeros."""
    if last is None:
        width = len(str(first))
        return [*_integers(first, 10**width - 1), f"[1-9][0-9]{{{width},{_MAX_DIGITS - 1}}}"]
    found = []
    while first <= last:
        # The longest run from `first` that ends in nines: 17..19, 20..99, 100..199.
        run = 0
        while first % 10 ** (run + 1) == 0 and first + 10 ** (run + 1) - 1 <= last and first:
            run += 1
        digit = first // 10**run % 10
        most = min(9, digit + (last - first + 1) // 10**run - 1)
        head = str(first // 10 ** (run + 1)) if first >= 10 ** (run + 1) else ""
        found.append(head + _digits(digit, most) + ("" if run == 0 else f"[0-9]{{{run}}}"))
        first += (most - digit + 1) * 10**run
    return found


def _digits(first: int, last: int) -> str:
    return str(first) if first == last else f"[{first}-{last}]"


# -- patterns of constraints ----------------------------------------------------------------------


def ecma_pattern(text: str) -> str | None:
    """Return a pattern with the same meaning in ECMAScript. None if it has flags, categories or wide escapes."""
    try:
        parse_pattern(text)
    except PatternProblem:
        return None
    if text.startswith("(?") and not text.startswith("(?:"):
        return None
    found, is_class, position = [], False, 0
    while position < len(text):
        character = text[position]
        position += 1
        if character == "\\":
            escaped = text[position]
            position += 1
            translated = _escape(escaped, is_class)
            if translated is None:
                return None
            found.append(translated)
        elif character == "." and not is_class:
            found.append(r"[^\n]")
        else:
            is_class = (is_class or character == "[") and character != "]"
            found.append(character)
    return "".join(found)


def _escape(escaped: str, is_class: bool) -> str | None:
    if escaped in _CLASSES:
        return _CLASSES[escaped] if is_class else f"[{_CLASSES[escaped]}]"
    if escaped.lower() in _CLASSES:
        return None if is_class else f"[^{_CLASSES[escaped.lower()]}]"
    if escaped in "pPu":
        return None
    is_kept = escaped.isalnum() or escaped in _SYNTAX or (is_class and escaped == "-")
    return f"\\{escaped}" if is_kept else escaped
