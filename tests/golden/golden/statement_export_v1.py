# AUTO-GENERATED - DO NOT EDIT
# statement_export_v1, from nodes/finance/statement_export_v1.vsp
# semantic hash 5b857f88699f10ada094e2ce3d0335335d3f1fa50d8815f224f90d971664a465
"""Write yesterday's bookings to a file for the bookkeeper and note it in the log."""

from datetime import datetime
from decimal import Decimal
from typing import Any, Final, Literal, TypedDict

from vesper.kernels.decimal import text as decimal_text
from vesper.kernels.integer import text as integer_text
from vesper.kernels.raised import ContractBroken, DeclaredError
from vesper.kernels.runtime.entry import Inputs, read_inputs
from vesper.kernels.runtime.flow import FAILURES, Asking, Request, code_of, exact_steps, one_of
from vesper.kernels.runtime.source import Source
from vesper.kernels.text import (
    concat as text_concat,
    from_code_point as text_from_code_point,
    join as text_join,
    replace as text_replace,
    trim_end as text_trim_end,
)

D_0: Final = Decimal("0")


class Booking(TypedDict):
    booking_id: str
    account: str
    amount: Decimal
    note: str | None


class Success(TypedDict):
    path: str
    lines: int
    total: Decimal
    bytes: int


@exact_steps
def statement_export_v1(
    account: str = "DE89370400440532013000",
    with_sum: bool = True,
    *,
    now: datetime,
) -> Asking[Success]:
    """Write yesterday's bookings to a file for the bookkeeper and note it in the log."""

    # constraint, line 12: length(account) > 0
    if not len(account) > 0:
        raise ContractBroken("constraint", 0, {"account": account})

    # constraint, line 12: length(account) <= 34
    if not len(account) <= 34:
        raise ContractBroken("constraint", 1, {"account": account})

    try:
        bookings: list[Booking] = yield Request(
            "bookings",
            "database_query",
            "read",
            {
                "database": "main",
                "sql": "SELECT booking_id, account, amount, note FROM bookings WHERE account = :account AND exported = FALSE ORDER BY booking_id",
                "rows": "all",
            },
            {"bind": {"account": account}},
        )

        # raise_1, line 41
        if len(bookings) == 0:
            message = text_join(["account ", account, " has no new bookings"], "")

            raise DeclaredError({"error_code": "nothing_to_export", "message": message})

        # step head, line 45
        try:
            head: str = yield Request(
                "head", "file_read", "read", {"root": "templates"}, {"path": "statements/head.txt"}
            )
        except FAILURES as failure:
            if code_of(failure) != "not_found":
                raise
            raise DeclaredError(
                {"error_code": "no_template", "message": "templates/statements/head.txt is missing"}
            ) from failure

        # step total, line 55
        total = D_0
        for row in bookings:
            total = total + row["amount"]

        # step rows, line 59
        rows = [
            text_concat(
                text_concat(
                    text_concat(text_concat(row["booking_id"], ";"), decimal_text(row["amount"])),
                    ";",
                ),
                text_replace("" if row["note"] is None else row["note"], ";", ","),
            )
            for row in bookings
        ]

        # step body, line 65
        body = text_join(
            [text_trim_end(head), "\n", text_join(rows, text_from_code_point(10)), "\n"], ""
        )

        # step sum_line, line 71
        sum_line = text_concat("total {all bookings};", decimal_text(total)) if with_sum else None

        # step file_id, line 76
        file_id: str = yield Request("file_id", "uuid_new", "read", {}, {})

        # step path, line 78
        path_ = text_join([account, "/", file_id, ".csv"], "")

        # step bytes, line 82
        bytes_: int = yield Request(
            "bytes",
            "file_write",
            "keyed",
            {"root": "statements"},
            key=file_id,
            arguments={
                "path": path_,
                "content": text_concat(body, "" if sum_line is None else sum_line),
            },
        )

        # step mark, line 91
        yield Request(
            "mark",
            "database_write",
            "txn",
            {
                "database": "main",
                "sql": "UPDATE bookings SET exported = :set_exported, file_id = :set_file_id WHERE account = :account AND exported = FALSE",
            },
            {"bind": {"account": account, "set_exported": True, "set_file_id": file_id}},
        )

        # step log, line 99
        try:
            log: int = yield Request(
                "log",
                "file_append",
                "unsafe",
                {"root": "logs"},
                {
                    "path": "exports.log",
                    "content": text_concat(
                        text_concat(
                            text_concat(
                                text_concat("exported ", integer_text(len(bookings))),
                                " bookings to ",
                            ),
                            path_,
                        ),
                        text_from_code_point(10),
                    ),
                },
            )
        except FAILURES:
            log = 0

        # output lines, line 109
        lines = len(bookings)

        # postcondition, line 27: lines > 0 AND bytes > 0
        if not (lines > 0 and bytes_ > 0):
            raise ContractBroken("postcondition", 0, {"lines": lines, "bytes": bytes_})

        return {"path": path_, "lines": lines, "total": total, "bytes": bytes_}
    except FAILURES as failure:
        code: Literal["timeout", "unavailable"] | None = one_of(
            code_of(failure), ("timeout", "unavailable")
        )
        if code is None:
            raise
        raise DeclaredError({"error_code": code, "message": code}) from failure


INPUTS: Final = Inputs(
    {"account": "string", "with_sum": "boolean"},
    {"account": "DE89370400440532013000", "with_sum": True},
)


def call(inputs: dict[str, Any], *, now: datetime) -> Asking[Success]:
    """The same for a caller's own objects: each is checked and made a value first."""
    account, with_sum = read_inputs(INPUTS, inputs)
    return statement_export_v1(account, with_sum, now=now)


SOURCE: Final = Source(
    "nodes/finance/statement_export_v1.vsp",
    lines={
        52: 12, 56: 12, 59: 33, 73: 43, 75: 43, 79: 45, 85: 53, 92: 57, 96: 63, 97: 63, 98: 63,
        101: 63, 107: 67, 108: 69, 112: 73, 115: 76, 118: 80, 121: 82, 129: 87, 134: 91, 147: 99,
        154: 104, 155: 104, 156: 104, 157: 104, 162: 104, 174: 27,
    },
    clauses={
        "constraint": [
            "length(account) > 0",
            "length(account) <= 34",
        ],
        "postcondition": [
            "lines > 0 AND bytes > 0",
        ],
    },
)  # fmt: skip
