"""Canonical JSON of values in the journal, in which every value has a visible type.

Texts, whole numbers, finite floats, booleans, null, lists and dicts with text keys are plain JSON. Every other value is
an object with a single name that starts with `$` (docs/spec/journal.md). A dict with a name of that form, or with keys
that are no texts, is written as `{"$map": [[key, value], ...]}`, so that no stored value can be mistaken for a tag.

Equal values of one type have equal bytes if they also look equal: the scale of a decimal is part of its bytes, the
order of the keys of a dict is not. The bytes of a digest differ in one respect: the numbers of a `Json` lose their
trailing zeros, because the language regards them as equal.

This runs for every step. This module is the reference; the Rust extension writes equal texts for the common types
(`direct_runtime/crates/vesper-py/src/journal/text.rs`), which a test compares.
"""

from __future__ import annotations

import hashlib
import json
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from json.encoder import encode_basestring
from math import isfinite
from typing import Any

from vesper.journal.errors import JournalError, TooLarge
from vesper.values.json_value import Json, exact_text, parse_json, text_as_string
from vesper.values.period import Period
from vesper.values.problem import ValueProblem
from vesper.values.times import parse_time, time_text

_native: Callable[[object, Callable[[Any], str]], str | None] | None
try:
    from vesper._direct import journal_text as _native
except ImportError:  # an installation without the Rust engine writes the same texts, six times as slowly
    _native = None

MAX_TEXT = 64 << 20
"""Characters of one value. Parts of a value may be shared, so that a small one can have a text that no memory holds:
the writer looks at the length of every list and dict that it finishes, and stops."""

_Writer = Callable[[Any], str]
_quoted: Callable[[str], str] = encode_basestring
_MICROSECOND = timedelta(microseconds=1)
_IN_ORDER = frozenset({bool, int, str, bytes, date, datetime, timedelta, time, Period})


def encode(value: object) -> bytes:
    """Return the canonical bytes of a value. Raises `JournalError` for an object that is no value."""
    return as_bytes(encode_text(value))


def encode_text(value: object) -> str:
    """Return the canonical form of a value as text. A lone surrogate is unchanged in it."""
    try:
        return _EXACT(value)
    except RecursionError:
        raise _too_deep() from None


def digest_bytes(
    effect: str, effect_class: str, fixed: Mapping[str, str], arguments: Mapping[str, object], key: str | None
) -> bytes:
    """Return the bytes over which the digest of a request is computed."""
    try:
        of_values = f"{_DIGESTED(fixed)},{_DIGESTED(arguments)}"
    except RecursionError:
        raise _too_deep() from None
    name = "null" if key is None else _quoted(key)
    return as_bytes(f"[{_quoted(effect)},{_quoted(effect_class)},{of_values},{name}]")


def digest_of(
    effect: str, effect_class: str, fixed: Mapping[str, str], arguments: Mapping[str, object], key: str | None
) -> str:
    """Return the digest of a request; it is equal for two requests for one effect."""
    return hashlib.sha256(digest_bytes(effect, effect_class, fixed, arguments, key)).hexdigest()


def decode(data: bytes) -> Any:
    """Return the value of canonical bytes. Raises `JournalError` for bytes that no value has."""
    if len(data) > 4 * MAX_TEXT:
        raise JournalError(f"a value in the journal is too large: {len(data):,} bytes")
    try:
        return _DECODER.decode(data.decode())
    except RecursionError:
        raise JournalError("a value in the journal is nested too deeply") from None
    except (ValueError, TypeError, ArithmeticError) as error:  # of json, of UTF-8, of the readers of tags
        raise JournalError(f"a value in the journal cannot be read: {str(error)[:200]}") from None


# -- writing --------------------------------------------------------------------------------------


def _too_deep() -> JournalError:
    return JournalError("a value is nested too deeply, or contains itself, and cannot be written")


def as_bytes(text: str) -> bytes:
    """Return a text as UTF-8, with a lone surrogate as its JSON escape `\\udc80`.

    Two escapes that form a pair are read back as the character that they encode.
    """
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace")


def _writer(json_text: Callable[[Json], str]) -> _Writer:
    """Return a writer of values; `json_text` returns the text of a `Json`."""

    def of_dict(value: dict[Any, Any]) -> str:
        keys = tuple(value)
        names = _NAMES.get(keys)
        if names is None:
            names = _names_of(keys)
            if names is None:
                return of_map(value)
        parts = []
        for key, name in names:
            item = value[key]
            kind = type(item)
            if kind is str:
                parts.append(name + _quoted(item))
            elif kind in table:
                parts.append(name + table[kind](item))
            else:
                parts.append(name + of_other(item))
        return "{" + bounded(parts) + "}"

    def of_map(value: dict[Any, Any]) -> str:
        # In the order of the language where the keys have one; otherwise in the order of their texts.
        if len({type(key) for key in value}) == 1 and type(next(iter(value))) in _IN_ORDER:
            pairs = [f"[{of(key)},{of(value[key])}]" for key in sorted(value)]
        else:
            pairs = sorted(f"[{of(key)},{of(item)}]" for key, item in value.items())
        return '{"$map":[' + bounded(pairs) + "]}"

    def of_list(value: Iterable[Any]) -> str:
        return (
            "[" + bounded([table[type(item)](item) if type(item) in table else of_other(item) for item in value]) + "]"
        )

    def of_set(value: frozenset[Any]) -> str:
        if len({type(item) for item in value}) == 1 and type(next(iter(value))) in _IN_ORDER:
            return '{"$set":[' + bounded([of(item) for item in sorted(value)]) + "]}"
        return '{"$set":[' + bounded(sorted(of(item) for item in value)) + "]}"

    def bounded(parts: list[str]) -> str:
        text = ",".join(parts)
        if len(text) > MAX_TEXT:
            raise TooLarge(f"a value is too large for the journal: its text has more than {MAX_TEXT:,} characters")
        return text

    def of_json(value: Json) -> str:
        try:
            text_as_string(value)  # refuses one whose text would be over the limit of the language
        except ValueProblem:
            raise TooLarge("a json value is too large for the journal: its text is over the limit") from None
        return '{"$json":' + _quoted(json_text(value)) + "}"

    def of_other(value: object) -> str:
        """Write a value of a subclass as a value of its base type. Enums are texts or numbers."""
        match value:
            case str():
                return _quoted(str.__str__(value))
            case int():
                return _of_integer(int.__int__(value))
            case float():
                return _of_float(float.__float__(value))
            case datetime():
                return _of_datetime(value)
            case date() | timedelta() | time() | Decimal():
                for kind in (date, timedelta, time, Decimal):
                    if isinstance(value, kind):
                        return table[kind](value)
            case bytearray() | memoryview():
                return _of_bytes(bytes(value))
            case list() | tuple():
                return of_list(value)
            case set() | frozenset():
                return of_set(frozenset(value))
            case Mapping():
                return of_dict(dict(value))
        raise JournalError(
            f"a value of type `{type(value).__name__}` cannot be written into the journal: it is no value"
        )

    def of(value: object) -> str:
        kind = type(value)
        return table[kind](value) if kind in table else of_other(value)

    table: dict[type, _Writer] = {
        str: _quoted,
        int: _of_integer,
        bool: lambda value: "true" if value else "false",
        type(None): lambda _: "null",
        float: _of_float,
        bytes: _of_bytes,
        Decimal: lambda value: '{"$decimal":"' + str(value) + '"}',  # `format` takes three times as long
        datetime: _of_datetime,
        date: lambda value: f'{{"$date":"{value.isoformat()}"}}',
        timedelta: lambda value: f'{{"$duration":{value // _MICROSECOND}}}',
        time: lambda value: f'{{"$clock":"{time_text(value)}"}}',
        Period: lambda value: f'{{"$period":{value.months}}}',
        Json: of_json,
        dict: of_dict,
        list: of_list,
        tuple: of_list,
        frozenset: of_set,
    }
    return of


_Names = tuple[tuple[str, str], ...]
_NAMES: dict[tuple[Any, ...], _Names] = {}
"""Steps write the same few names over and over: the keys of a dict, to the same in order and as they are written."""
_MAX_NAMES = 2000


def _names_of(keys: tuple[Any, ...]) -> _Names | None:
    """Return the sorted keys of an object, each with its JSON text. None if they cannot be those of an object."""
    if not all(isinstance(key, str) and not key.startswith("$") for key in keys):
        return None
    names = tuple((key, f"{_quoted(str.__str__(key))}:") for key in sorted(keys))
    if len(keys) <= 32 and sum(map(len, keys)) <= 1000:
        if len(_NAMES) >= _MAX_NAMES:
            _NAMES.clear()
        _NAMES[keys] = names
    return names


def _of_integer(value: int) -> str:
    try:
        return int.__repr__(value)
    except ValueError:  # Python refuses to write a number of more than 4,300 digits
        raise JournalError("a whole number is too large for the journal") from None


def _of_float(value: float) -> str:
    return float.__repr__(value) if isfinite(value) else f'{{"$float":"{float.__repr__(value)}"}}'


def _of_bytes(value: bytes) -> str:
    return f'{{"$bytes":"{b64encode(value).decode("ascii")}"}}'


def _of_datetime(value: datetime) -> str:
    if value.tzinfo is None:
        raise JournalError(f"the time {value} has no time zone: the journal keeps moments in UTC")
    if value.tzinfo is not UTC:
        try:
            value = value.astimezone(UTC)
        except OverflowError:
            raise JournalError(f"the time {value} is out of range: in UTC it is no year from 1 to 9999") from None
    return f'{{"$time":"{value.isoformat(timespec="microseconds")[:-6]}Z"}}'


def _with_native_writer(write: _Writer) -> _Writer:
    """Return a writer that leaves the common types to the Rust extension, if that is installed."""
    if _native is None:
        return write
    quick = _native

    def of(value: object) -> str:
        text = quick(value, write)
        return write(value) if text is None else text

    return of


EXACT_IN_PYTHON = _writer(exact_text)
DIGESTED_IN_PYTHON = _writer(text_as_string)
_EXACT = _with_native_writer(EXACT_IN_PYTHON)
_DIGESTED = _with_native_writer(DIGESTED_IN_PYTHON)


# -- reading --------------------------------------------------------------------------------------


def _of_object(pairs: list[tuple[str, Any]]) -> Any:
    if len(pairs) == 1 and pairs[0][0].startswith("$"):
        tag, content = pairs[0]
        reader = _READERS.get(tag)
        if reader is None:
            raise ValueError(f"nobody knows the tag {tag[:40]!r}")
        return reader(content)
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("an object has a name twice")
    if any(name.startswith("$") for name in found):
        raise ValueError("a name that starts with `$` stands beside others")
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not isfinite(value):
        raise ValueError(f"the number {text[:40]} is out of range")
    return value


def _text_tag(tag: str, read: Callable[[str], Any]) -> Callable[[Any], Any]:
    """Return the reader of a tag with a text in it. It accepts only the canonical spelling."""

    def reader(content: Any) -> Any:
        if type(content) is not str:
            raise ValueError(f"`{tag}` holds something else than a text")
        value = read(content)
        if _EXACT(value) != f'{{"{tag}":{_quoted(content)}}}':
            raise ValueError(f"{content[:60]!r} is not how the journal writes a `{tag}`")
        return value

    return reader


def _decimal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:
        raise ValueError(f"{text[:60]!r} is no decimal") from None


def _moment(text: str) -> datetime:
    if not text.endswith("Z"):
        raise ValueError(f"{text[:60]!r} is no moment in UTC")
    return datetime.fromisoformat(text).astimezone(UTC)


def _bytes_of(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except Base64Error:
        raise ValueError("bytes are not in base64") from None


def _special_float(text: str) -> float:
    if text not in ("nan", "inf", "-inf"):
        raise ValueError(f"{text[:40]!r} is not a special float")
    return float(text)


def _duration(content: Any) -> timedelta:
    if type(content) is not int:
        raise ValueError("a duration is no whole number")
    return timedelta(microseconds=content)


def _clock(text: str) -> time:
    try:
        return parse_time(text)
    except ValueProblem:
        raise ValueError(f"{text[:60]!r} is no time of day") from None


def _period(content: Any) -> Period:
    if type(content) is not int:
        raise ValueError("a period is no whole number")
    return Period(content)


def _json(content: Any) -> Json:
    if type(content) is not str:
        raise ValueError("a json value is no text")
    try:
        return parse_json(content)
    except ValueProblem:
        raise ValueError("a json value is no JSON") from None


def _listed(content: Any) -> list[Any]:
    if type(content) is not list:
        raise ValueError("a tag holds something else than a list")
    return content


def _set(content: Any) -> frozenset[Any]:
    found = frozenset(_listed(content))
    if len(found) != len(content):
        raise ValueError("a set has a member twice")
    return found


def _map(content: Any) -> dict[Any, Any]:
    if not all(type(pair) is list and len(pair) == 2 for pair in _listed(content)):
        raise ValueError("a map is not made of pairs")
    found = dict(content)
    if len(found) != len(content):
        raise ValueError("a map has a key twice")
    return found


_READERS: dict[str, Callable[[Any], Any]] = {
    "$decimal": _text_tag("$decimal", _decimal),
    "$float": _text_tag("$float", _special_float),
    "$bytes": _text_tag("$bytes", _bytes_of),
    "$date": _text_tag("$date", date.fromisoformat),
    "$time": _text_tag("$time", _moment),
    "$duration": _duration,
    "$clock": _text_tag("$clock", _clock),
    "$period": _period,
    "$json": _json,
    "$set": _set,
    "$map": _map,
}
_DECODER = json.JSONDecoder(object_pairs_hook=_of_object, parse_float=_finite, parse_constant=_no_constant)
