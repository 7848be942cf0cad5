"""Strings: sequences of code points without normalisation. Limits are checked before a result is built."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice

from vesper.kernels.raised import Raised
from vesper.kernels.work import count_work
from vesper.values import unicode
from vesper.values.generated.errors import ErrorCode
from vesper.values.model import MAX_ENTRIES, MAX_TEXT

# SEMANTICS: the property White_Space of Unicode 15.0.0; Python's own definition also has U+001C-U+001F.
_WHITE_SPACE = (
    "\t\n\v\f\r \x85\xa0\u1680"
    "\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
_WORD = re.compile(f"[^{_WHITE_SPACE}]+")
_LAST_CODE_POINT = 0x10FFFF
_KEPT_IN_PATHS = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_SURROGATES = range(0xD800, 0xE000)


def length(value: str) -> int:
    return len(value)


def equal(left: str, right: str) -> bool:
    return left == right


def not_equal(left: str, right: str) -> bool:
    return left != right


def less(left: str, right: str) -> bool:
    return left < right


def less_or_equal(left: str, right: str) -> bool:
    return left <= right


def greater(left: str, right: str) -> bool:
    return left > right


def greater_or_equal(left: str, right: str) -> bool:
    return left >= right


def concat(left: str, right: str) -> str:
    _refuse_long(len(left) + len(right))
    return left + right


def _refuse_long(code_points: int) -> None:
    if code_points > MAX_TEXT:
        raise Raised(ErrorCode.TOO_LARGE)


def _refuse_many(items: int) -> None:
    if items > MAX_ENTRIES:
        raise Raised(ErrorCode.TOO_LARGE)


def _require(holds: bool) -> None:
    if not holds:
        raise Raised(ErrorCode.INVALID_ARGUMENT)


def at(value: str, index: int) -> str:
    # SEMANTICS: Python counts negative indices from the end; here they are out of range.
    if 0 <= index < len(value):
        return value[index]
    raise Raised(ErrorCode.INDEX_OUT_OF_RANGE)


def slice(value: str, start: int, end: int) -> str:
    _require(start >= 0 and end >= 0)
    return value[start:end]


def split(value: str, separator: str) -> list[str]:
    _require(separator != "")
    _refuse_many(value.count(separator) + 1)
    return value.split(separator)


def words(value: str) -> list[str]:
    found = [match[0] for match in islice(_WORD.finditer(value), MAX_ENTRIES + 1)]
    _refuse_many(len(found))
    return found


def join(parts: Sequence[str], separator: str) -> str:
    _refuse_long(sum(map(len, parts)) + len(separator) * max(len(parts) - 1, 0))
    return separator.join(parts)


def trim(value: str) -> str:
    return value.strip(_WHITE_SPACE)


def trim_start(value: str) -> str:
    return value.lstrip(_WHITE_SPACE)


def trim_end(value: str) -> str:
    return value.rstrip(_WHITE_SPACE)


def lower(value: str) -> str:
    # SEMANTICS: Python's `lower` uses another Unicode version and the context of a sigma.
    return _check_length(unicode.lower(value))


def upper(value: str) -> str:
    return _check_length(unicode.upper(value))


def _check_length(value: str) -> str:
    # One code point becomes at most three, so a result may be built before it is rejected.
    _refuse_long(len(value))
    return value


def starts_with(value: str, prefix: str) -> bool:
    return value.startswith(prefix)


def ends_with(value: str, suffix: str) -> bool:
    return value.endswith(suffix)


def contains(value: str, part: str) -> bool:
    return part in value


def index_of(value: str, part: str) -> int | None:
    found = value.find(part)
    return found if found >= 0 else None


def replace(value: str, old: str, new: str) -> str:
    _require(old != "")
    _refuse_long(len(value) + value.count(old) * (len(new) - len(old)))
    return value.replace(old, new)


def repeat(value: str, count: int) -> str:
    _require(count >= 0)
    _refuse_long(len(value) * count)
    return value * count if value else ""


def pad_start(value: str, width: int, fill: str) -> str:
    return _padding(value, width, fill) + value


def pad_end(value: str, width: int, fill: str) -> str:
    return value + _padding(value, width, fill)


def _padding(value: str, width: int, fill: str) -> str:
    _require(len(fill) == 1)
    _refuse_long(width)
    return fill * max(width - len(value), 0)


def reverse(value: str) -> str:
    return value[::-1]


def is_digits(value: str) -> bool:
    # SEMANTICS: Python's isdigit alone accepts digits of every script.
    return value.isascii() and value.isdigit()


def code_point(value: str) -> int:
    _require(len(value) == 1)
    return ord(value)


def from_code_point(number: int) -> str:
    _require(0 <= number <= _LAST_CODE_POINT and number not in _SURROGATES)
    return chr(number)


def code_points(value: str) -> list[int]:
    _refuse_many(len(value))
    return [ord(each) for each in value]


def percent_encode(value: str) -> str:
    encoded = "".join(chr(each) if each in _KEPT_IN_PATHS else f"%{each:02X}" for each in value.encode("utf-8"))
    _refuse_long(len(encoded))
    return encoded


def normalize(value: str, form: str) -> str:
    normal = unicode.normalize(value, form)
    _refuse_long(len(normal))
    return normal


count_work("text", globals())
