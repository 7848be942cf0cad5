# AUTO-GENERATED - DO NOT EDIT
# access_log_line_v1, from nodes/logs/access_log_line_v1.vsp
# semantic hash e3c0d8daa66c6e2cd7316ff4b600ea83fbbd6cbe940884f4f19a0db982014cea
"""Read a line of a web server's access log and say what happened, when and for how many bytes."""

from datetime import datetime, timedelta
from typing import Any, Final, Literal, TypedDict

from vesper.kernels.array import (
    at as array_at,
    distinct as array_distinct,
    drop as array_drop,
    first as array_first,
)
from vesper.kernels.decimal import exact_decimals, exact_entry
from vesper.kernels.duration import (
    from_microseconds as duration_from_microseconds,
    from_minutes as duration_from_minutes,
)
from vesper.kernels.integer import parse as integer_parse, text as integer_text
from vesper.kernels.map import map_of
from vesper.kernels.optional import require as optional_require
from vesper.kernels.raised import ContractBroken
from vesper.kernels.regex import groups as regex_groups, matches as regex_matches
from vesper.kernels.runtime.entry import (
    MAX_TEXT,
    NOT_PLAIN,
    Inputs,
    NotPlain,
    is_ascii,
    is_text,
    new_objects,
    read_inputs,
    undecorated,
)
from vesper.kernels.runtime.source import Source
from vesper.kernels.text import (
    concat as text_concat,
    contains as text_contains,
    join as text_join,
    pad_start as text_pad_start,
    slice as text_slice,
    split as text_split,
    trim as text_trim,
)
from vesper.kernels.timestamp import (
    epoch_seconds as timestamp_epoch_seconds,
    from_epoch_seconds as timestamp_from_epoch_seconds,
    parse as timestamp_parse,
    truncate as timestamp_truncate,
)


class Success(TypedDict):
    host: str
    user: str | None
    at: datetime
    method: str
    path: str
    query: dict[str, str]
    status: int
    outcome: Literal["fine", "moved", "client_fault", "server_fault"]
    size: int
    took: timedelta | None
    minute_of: datetime
    epoch: int


MONTHS: Final[dict[str, int]] = {
    "Apr": 4,
    "Aug": 8,
    "Dec": 12,
    "Feb": 2,
    "Jan": 1,
    "Jul": 7,
    "Jun": 6,
    "Mar": 3,
    "May": 5,
    "Nov": 11,
    "Oct": 10,
    "Sep": 9,
}


@exact_decimals
def access_log_line_v1(line: str) -> Success:
    """Read a line of a web server's access log and say what happened, when and for how many
    bytes."""

    # constraint, line 9: matches(line, "^[^ ]+ [^ ]+ [^ ]+
    #   \[([0-2][0-9]|3[01])/(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)/[0-9]{4}:([01][0-9]|2[0-3])(:[0-5][0-9]){2}
    #   [+-]0[0-9][0-5][0-9]\] "[A-Z]{3,7} [^ "]+ HTTP/[0-9.]+" [1-5][0-9]{2} ([0-9]{1,12}|-)(
    #   [0-9]{1,9})?$")
    if not regex_matches(
        line,
        '^[^ ]+ [^ ]+ [^ ]+ \\[([0-2][0-9]|3[01])/(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)/[0-9]{4}:([01][0-9]|2[0-3])(:[0-5][0-9]){2} [+-]0[0-9][0-5][0-9]\\] "[A-Z]{3,7} [^ "]+ HTTP/[0-9.]+" [1-5][0-9]{2} ([0-9]{1,12}|-)( [0-9]{1,9})?$',
    ):
        raise ContractBroken("constraint", 0, {"line": line})

    # precondition, line 31: NOT matches(line, '/000[01]:') AND NOT matches(line, '\[00/')
    if not (not regex_matches(line, "/000[01]:") and not regex_matches(line, "\\[00/")):
        raise ContractBroken("precondition", 0, {"line": line})

    # step parts, line 40
    parts = optional_require(
        regex_groups(
            line,
            '^([^ ]+) [^ ]+ ([^ ]+) \\[([0-9]+)/([A-Z][a-z]+)/([0-9]+):([0-9:]+) ([+-][0-9]{2})([0-9]{2})\\] "([A-Z]+) ([^ "?]+)(\\?[^ "]*)? HTTP/[0-9.]+" ([0-9]+) ([0-9]+|-)( [0-9]+)?$',
        )
    )

    # step part, line 41
    part = ["" if p is None else p for p in parts]

    # step month_number, line 42
    month_number = text_pad_start(integer_text(MONTHS[array_at(part, 4)]), 2, "0")

    # step at, line 43
    at = timestamp_parse(
        text_concat(
            text_concat(
                text_concat(
                    text_concat(
                        text_concat(
                            text_concat(
                                text_concat(
                                    text_concat(text_concat(array_at(part, 5), "-"), month_number),
                                    "-",
                                ),
                                array_at(part, 3),
                            ),
                            "T",
                        ),
                        array_at(part, 6),
                    ),
                    array_at(part, 7),
                ),
                ":",
            ),
            array_at(part, 8),
        )
    )

    # step pairs, line 44
    pairs = [
        text_split(pair, "=")
        for pair in text_split(text_slice(array_at(part, 11), 1, 9223372036854775807), "&")
        if text_contains(pair, "=")
    ]

    # step names, line 46
    names = array_distinct([array_at(pair, 0) for pair in pairs])

    # step query, line 47
    query = map_of(
        (
            name,
            optional_require(
                array_first(
                    [
                        text_join(array_drop(pair, 1), "=")
                        for pair in pairs
                        if array_at(pair, 0) == name
                    ]
                )
            ),
        )
        for name in names
    )

    # step status, line 48
    status = integer_parse(array_at(part, 12))

    # step size, line 49
    size = 0 if array_at(part, 13) == "-" else integer_parse(array_at(part, 13))

    # step took, line 50
    took = (
        None
        if array_at(part, 14) == ""
        else duration_from_microseconds(integer_parse(text_trim(array_at(part, 14))))
    )

    # step outcome, line 52
    outcome: Literal["fine", "moved", "client_fault", "server_fault"]
    if status < 300:
        outcome = "fine"
    elif status < 400:
        outcome = "moved"
    elif status < 500:
        outcome = "client_fault"
    else:
        outcome = "server_fault"

    # output host, line 62
    host = array_at(part, 1)

    # output user, line 63
    user: str | None = None if array_at(part, 2) == "-" else array_at(part, 2)

    # output method, line 65
    method = array_at(part, 9)

    # output path, line 66
    path_ = array_at(part, 10)

    # output minute_of, line 72
    minute_of = timestamp_truncate(at, "minute")

    # output epoch, line 73
    epoch = timestamp_epoch_seconds(at)

    # postcondition, line 33: from_epoch_seconds(epoch) == at
    if timestamp_from_epoch_seconds(epoch) != at:
        raise ContractBroken("postcondition", 0, {"epoch": epoch, "at": at})

    # postcondition, line 34: minute_of <= at AND at - minute_of < minutes(1)
    if not (minute_of <= at and at - minute_of < duration_from_minutes(1)):
        raise ContractBroken("postcondition", 1, {"minute_of": minute_of, "at": at})

    # postcondition, line 35: status >= 500 => outcome == server_fault
    if not (not status >= 500 or outcome == "server_fault"):
        raise ContractBroken("postcondition", 2, {"status": status, "outcome": outcome})

    return {
        "host": host,
        "user": user,
        "at": at,
        "method": method,
        "path": path_,
        "query": query,
        "status": status,
        "outcome": outcome,
        "size": size,
        "took": took,
        "minute_of": minute_of,
        "epoch": epoch,
    }


INPUTS: Final = Inputs({"line": "string"}, {})
RUN: Final = undecorated(access_log_line_v1)


@exact_entry
def call(inputs: dict[str, Any]) -> Success:
    """The same for a caller's own objects: each is checked and made a value first."""
    try:
        if type(inputs) is not dict:
            raise NotPlain
        for name in inputs:
            if type(name) is not str:
                raise NotPlain
        if len(inputs) != 1:
            raise NotPlain
        line = inputs["line"]
        if type(line) is not str or not (is_ascii(line) or is_text(line)) or len(line) > MAX_TEXT:
            raise NotPlain
    except NOT_PLAIN:
        (line,) = read_inputs(INPUTS, inputs)
    return new_objects(RUN(line))


SOURCE: Final = Source(
    "nodes/logs/access_log_line_v1.vsp",
    lines={
        98: 9, 102: 31, 105: 40, 116: 42, 119: 43, 120: 43, 121: 43, 122: 43, 123: 43, 124: 43,
        125: 43, 126: 43, 127: 43, 130: 43, 134: 43, 136: 43, 140: 43, 146: 44, 147: 44, 152: 46,
        155: 47, 158: 47, 161: 47, 163: 47, 172: 48, 175: 49, 180: 50, 181: 50, 196: 62, 199: 63,
        202: 65, 205: 66, 214: 33, 215: 33, 218: 34, 219: 34, 223: 35,
    },
    clauses={
        "constraint": [
            'matches(line, "^[^ ]+ [^ ]+ [^ ]+ \\[([0-2][0-9]|3[01])/(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)/[0-9]{4}:([01][0-9]|2[0-3])(:[0-5][0-9]){2} [+-]0[0-9][0-5][0-9]\\] "[A-Z]{3,7} [^ "]+ HTTP/[0-9.]+" [1-5][0-9]{2} ([0-9]{1,12}|-)( [0-9]{1,9})?$")',
        ],
        "precondition": [
            "NOT matches(line, '/000[01]:') AND NOT matches(line, '\\[00/')",
        ],
        "postcondition": [
            "from_epoch_seconds(epoch) == at",
            "minute_of <= at AND at - minute_of < minutes(1)",
            "status >= 500 => outcome == server_fault",
        ],
    },
)  # fmt: skip
