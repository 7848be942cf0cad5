"""Bytes. Decoders are strict: they accept only the output of their encoder."""

from __future__ import annotations

import hashlib
import re

from vesper.kernels.raised import Raised
from vesper.kernels.work import count_work
from vesper.values import model as values
from vesper.values.generated.errors import ErrorCode
from vesper.values.model import MAX_BYTES, MAX_TEXT, ValueProblem, base64_text

_HEX = re.compile(r"(?:[0-9A-Fa-f]{2})*")


def equal(left: bytes, right: bytes) -> bool:
    return left == right


def not_equal(left: bytes, right: bytes) -> bool:
    return left != right


def length(value: bytes) -> int:
    return len(value)


def at(value: bytes, index: int) -> int:
    # SEMANTICS: Python counts negative indices from the end; here they are out of range.
    if 0 <= index < len(value):
        return value[index]
    raise Raised(ErrorCode.INDEX_OUT_OF_RANGE)


def slice(value: bytes, start: int, end: int) -> bytes:
    if start < 0 or end < 0:
        raise Raised(ErrorCode.INVALID_ARGUMENT)
    return value[start:end]


def concat(left: bytes, right: bytes) -> bytes:
    _refuse_large(len(left) + len(right), MAX_BYTES)
    return left + right


def _refuse_large(size: int, limit: int) -> None:
    if size > limit:
        raise Raised(ErrorCode.TOO_LARGE)


def hex(value: bytes) -> str:
    _refuse_large(2 * len(value), MAX_TEXT)
    return value.hex()


def parse_hex(value: str) -> bytes:
    # SEMANTICS: Python's fromhex skips white space.
    if _HEX.fullmatch(value) is None:
        raise Raised(ErrorCode.BAD_FORMAT)
    return bytes.fromhex(value)


def base64(value: bytes) -> str:
    _refuse_large((len(value) + 2) // 3 * 4, MAX_TEXT)
    return base64_text(value)


def parse_base64(value: str) -> bytes:
    try:
        return values.parse_base64(value)
    except ValueProblem:
        raise Raised(ErrorCode.BAD_FORMAT) from None


def utf8(value: str) -> bytes:
    encoded = value.encode("utf-8")
    _refuse_large(len(encoded), MAX_BYTES)
    return encoded


def parse_utf8(value: bytes) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        raise Raised(ErrorCode.BAD_FORMAT) from None


def sha256(value: bytes) -> bytes:
    return hashlib.sha256(value).digest()


count_work("bytes", globals())
