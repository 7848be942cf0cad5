"""Texts in the formats that operations parse: valid ones, and ones that just fail.

A text drawn by its type is almost never a number, a date or JSON, so only refusals of the parsers would be compared.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

from vesper.language.ir.nodes import Call, Node

_CHANGED_SHARE = 0.25
_SAFE = 4
"""Number of leading texts of each format that are valid."""
_INSERTED = ("", "", " ", "0", "-", "+", ".", ":", "e", "_", "\n", "٣", "T", "=")
_INTEGERS = (
    "0", "1", "-1", "12", "-0", "+1", "007", " 1", "1 ", "", "-", "+", "1_000", "0x1", "1.0", "1e3", "٣", "--1", "+-1",
    "2147483648", "9007199254740993", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
    "-9223372036854775809", "00000000000000000000000000000000001", "18446744073709551616", "1" * 40,
)  # fmt: skip
_DECIMALS = (
    *_INTEGERS, "1.5", "-1.50", "0.0", "-0.00", "00.50", ".5", "5.", "1.2.3", "1e3", "1E-3", "1e+2", "1e", "1e1001",
    "NaN", "Infinity", "1,5", "0.000000000000000001", "0.0000000000000000001", "9223372036854775.807",
    "922337203685477580.8", "170141183460469231731687303715884105727", "170141183460469231731687303715884105728.0",
    "-0.1e-1",
    "0." + "0" * 999 + "1", "0." + "0" * 1000 + "1", "9" * 1000, "9" * 1001, "1e999", "1e1000", "1E-1000",
)  # fmt: skip
_FLOATS = (
    *_DECIMALS, "0e0", "-0e0", "1.5e300", "1e308", "1.7976931348623157e308", "1.7976931348623159e308", "1e309",
    "5e-324", "2e-324", "4.9406564584124654e-324", "2.2250738585072011e-308", "9007199254740993", "inf", "-Infinity",
    "nan",
    "0.1", "1e-400", "1e23", "8.5e22", "0x1p3",
)  # fmt: skip
_DATES = (
    "2024-02-29", "2000-02-29", "2023-02-28", "1969-12-31", "2023-02-29", "1900-02-29", "0001-01-01", "0000-12-31",
    "9999-12-31",
    "10000-01-01", "2024-04-31", "2024-12-31", "2024-13-01", "2024-00-10", "2024-01-00", "2024-1-1", "24-01-01",
    "20240229", "2024-02-29T00:00:00", "2024-W09-4", "2024/02/29", " 2024-02-29", "2024-02-29 ", "-2024-02-29", "",
)  # fmt: skip
_TIMESTAMPS = (
    "2024-02-29T12:30:00Z", "2024-02-29T12:30:00.5Z", "2024-02-29T12:30:00+02:00", "1969-12-31T23:59:59.999999Z",
    "2024-02-29t12:30:00z", "2024-02-29 12:30:00Z", "2024-02-29T12:30:00", "2024-02-29T12:30Z",
    "2024-02-29T24:00:00Z", "2024-02-29T23:59:60Z", "2024-02-29T23:59:59.999999Z", "2024-02-29T23:59:59.9999999Z",
    "2024-02-29T12:30:00.Z", "2024-02-29T12:30:00-00:00",
    "2024-02-29T12:30:00+0200", "2024-02-29T12:30:00+24:00", "2024-02-29T12:30:00+23:59", "2024-02-29T12:60:00Z",
    "2024-02-29T12:30:00+14:00", "0001-01-01T00:00:00Z", "0001-01-01T00:00:00+00:01", "0001-01-01T00:00:00-00:01",
    "9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59-00:01", "2023-02-29T00:00:00Z",
    "2024-02-29", "20240229T123000Z", "",
)  # fmt: skip
_DURATIONS = (
    "PT0S", "P1D", "P1DT2H3M4.5S", "-P1D", "-PT0.000001S", "PT0.0000001S", "P1W", "P1M", "P1Y", "PT", "P", "P1DT",
    "1d2h3m4.5s", "90s", "1h30m", "30m1h", "200ms", "1us", "1.5us", "1ms1s", "-1h", "+1h", "P3652059D", "P3652060D",
    "-P3652059D",
    "P3652059DT0.000001S", "87649416h", "999999999999999999us", "9999999999999999999us", "pt1s", "1 h", "", "1.5h",
    "0s", "PT60M",
)  # fmt: skip
_CLOCKS = (
    "00:00:00", "23:59:59.999999", "08:30:00.5", "24:00:00", "12:60:00", "12:30", "8:30:00", "08:30:00Z", "",
    "08:30:00.",
    "08:30:00.0000001", "08:30:00.000000000", "12:00:60",
)  # fmt: skip
_PERIODS = (
    "P0M", "P1Y", "P1Y2M", "P14M", "-P1M", "+P1Y", "P", "P1D", "P1M1Y", "P9999Y", "P9999Y1M", "-P9999Y", "p1y", "",
    "P99999999999999999999Y", "P00000000000000000001M", "P1Y2", "P-1M",
)  # fmt: skip
_BOOLEANS = ("true", "false", "True", " true", "", "1", "TRUE", "no")
_HEXES = ("", "00", "ff", "FF", "fF0a", "0", "0g", "61 62", "0x61", "6162636465666768", "00" * 33, " 00", "é0", "6")
_BASE64 = (
    "", "AA==", "YQ==", "YWI=", "AA=", "AA", "AAA=", "AAAA", "YR==", "YWJ=", "_w==", "/w==", "+/+/", "A===", "====",
    "YQ==YQ==", "Y Q==", "YQ==\n", "YWJj" * 11, "é===",
)  # fmt: skip
_JSONS = (
    "null", "true", "false", "0", "-0", "-0.0", "1.50", "1e3", "1E-2", "01", "1.", ".5", "+1", "1e1000", "1e1001",
    "NaN",
    "9223372036854775807", "9223372036854775808", "-9223372036854775809", '""', '"a"', '"\\u0000"', '"\\ud83d\\ude00"',
    '"\\ud800"', '"\\x"', '"', "[]", "[1,]", "[1, 2]", "[[[]]]", "{}", '{"a":1}',
    '{"a":1,"a":2}', '{"a":{"b":[null,1.0]}}',
    '{"a" :1 }', '{a:1}', "{'a':1}", " 1 ", "1 2", "\ufeff1", '"\\n\\t\\"\\\\\\/\\b\\f\\r"', '"\\u00e9\\u00E9"',
    '"\\ud83d"', '"\\ude00"',
    "[1 ,\t2 ]", "\n{ }\r\n", '{"b":1,"a":2}', "[true,false,null]", '{"a":[{"b":1},{"b":2}]}', "-", "1E+2", "-1.5e-3",
    "[", "{", '{"a"}',
    '{"a":}', "[1", "nul", "'a'", '"a\tb"', '"\x7f"', "[1][2]", "", "[" * 128 + "]" * 128, "[" * 129 + "]" * 129, "tru",
)  # fmt: skip
PARSED: Mapping[str, tuple[str, ...]] = {
    "integer.parse": _INTEGERS,
    "decimal.parse": _DECIMALS,
    "float.parse": _FLOATS,
    "date.parse": _DATES,
    "timestamp.parse": _TIMESTAMPS,
    "duration.parse": _DURATIONS,
    "time_of_day.parse": _CLOCKS,
    "period.parse": _PERIODS,
    "boolean.parse": _BOOLEANS,
    "bytes.parse_hex": _HEXES,
    "bytes.parse_base64": _BASE64,
    "json.parse": _JSONS,
}
"""Texts by the operation that parses them."""


def parsers_of(node: Node) -> list[str]:
    """Return the operations of a node that parse texts."""
    return list(dict.fromkeys(each.op for each in node.expressions() if isinstance(each, Call) and each.op in PARSED))


def draw_format(source: random.Random, operation: str, is_safe: bool = False) -> str:
    """Draw a text for an operation that parses it; one in four has one character changed, unless it is safe."""
    if is_safe:
        return source.choice(PARSED[operation][:_SAFE])
    text = source.choice(PARSED[operation])
    if source.random() >= _CHANGED_SHARE:
        return text
    at = source.randint(0, len(text))
    return text[:at] + source.choice(_INSERTED) + text[at + source.randrange(2) :]
