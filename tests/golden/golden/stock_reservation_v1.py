# AUTO-GENERATED - DO NOT EDIT
# stock_reservation_v1, from nodes/shop/stock_reservation_v1.vsp
# semantic hash e385d154d30aaea347fcc3105d1c94e6a22636236e92107e53a71137f0af5882
"""Reserve pieces of one article; two buyers never get the same last piece."""

from datetime import datetime
from typing import Any, Final, TypedDict

from vesper.kernels.integer import checked, text as integer_text
from vesper.kernels.raised import ContractBroken, DeclaredError
from vesper.kernels.runtime.entry import Inputs, read_inputs
from vesper.kernels.runtime.flow import FAILURES, Asking, Request, code_of, exact_steps
from vesper.kernels.runtime.source import Source
from vesper.kernels.text import concat as text_concat, join as text_join


class Success(TypedDict):
    reserved: int
    left: int
    is_repeat: bool


def check_postconditions(*, reserved: int, pieces: int, left: int) -> None:
    # postcondition, line 25: reserved > 0 AND reserved <= pieces
    if not (reserved > 0 and reserved <= pieces):
        raise ContractBroken("postcondition", 0, {"reserved": reserved, "pieces": pieces})

    # postcondition, line 26: left >= 0
    if not left >= 0:
        raise ContractBroken("postcondition", 1, {"left": left})


@exact_steps
def stock_reservation_v1(
    sku: str,
    pieces: int,
    order_id: str,
    allow_part: bool | None = None,
    *,
    now: datetime,
) -> Asking[Success]:
    """Reserve pieces of one article; two buyers never get the same last piece."""

    # constraint, line 8: length(sku) > 0
    if not len(sku) > 0:
        raise ContractBroken("constraint", 0, {"sku": sku})

    # constraint, line 8: length(sku) <= 40
    if not len(sku) <= 40:
        raise ContractBroken("constraint", 1, {"sku": sku})

    # constraint, line 9: pieces > 0
    if not pieces > 0:
        raise ContractBroken("constraint", 2, {"pieces": pieces})

    # constraint, line 9: pieces <= 1000
    if not pieces <= 1000:
        raise ContractBroken("constraint", 3, {"pieces": pieces})

    # constraint, line 10: length(order_id) > 0
    if not len(order_id) > 0:
        raise ContractBroken("constraint", 4, {"order_id": order_id})

    # step stock, line 29
    stock: int | None = yield Request(
        "stock",
        "database_query",
        "read",
        {
            "database": "main",
            "sql": "SELECT available FROM stock WHERE sku = :sku",
            "rows": "optional",
        },
        {"bind": {"sku": sku}},
    )

    # raise_1, line 35
    if stock is None:
        message = text_concat("nothing is called ", sku)

        raise DeclaredError(
            {"error_code": "unknown_article", "message": message, "available": None}
        )

    # step wanted, line 39
    if stock >= pieces:
        wanted = pieces
    else:
        # raise_2, line 45
        if not (False if allow_part is None else allow_part) or stock < 1:
            message = text_join([integer_text(stock), " of ", sku, " are left"], "")
            available: int | None = stock

            raise DeclaredError(
                {"error_code": "out_of_stock", "message": message, "available": available}
            )
        wanted = stock

    # step reserve, line 50
    reserve: int = yield Request(
        "reserve",
        "database_write",
        "txn",
        {
            "database": "main",
            "sql": "UPDATE stock SET available = :set_available, changed_at = :set_changed_at WHERE sku = :sku AND available = :seen",
        },
        {
            "bind": {
                "sku": sku,
                "seen": stock,
                "set_available": checked(stock - wanted),
                "set_changed_at": now,
            }
        },
    )

    # raise_3, line 59
    if reserve == 0:
        message = text_join(["somebody else took ", sku, " at the same time; ask again"], "")

        raise DeclaredError({"error_code": "busy", "message": message, "available": None})

    # step note, line 63
    try:
        yield Request(
            "note",
            "database_write",
            "txn",
            {
                "database": "main",
                "sql": "INSERT INTO reservations (order_id, sku, pieces, state, made_at) VALUES (:order_id, :sku, :pieces, :state, :made_at)",
            },
            {
                "bind": {
                    "order_id": order_id,
                    "sku": sku,
                    "pieces": wanted,
                    "state": "open",
                    "made_at": now,
                }
            },
        )
    except FAILURES as failure:
        if code_of(failure) != "conflict":
            raise
        # step give_back, line 70
        yield Request(
            "give_back",
            "database_write",
            "txn",
            {
                "database": "main",
                "sql": "UPDATE stock SET available = available + :pieces WHERE sku = :sku",
            },
            {"bind": {"pieces": wanted, "sku": sku}},
        )
        left = stock
        is_repeat = True
        check_postconditions(reserved=wanted, pieces=pieces, left=left)

        return {"reserved": wanted, "left": left, "is_repeat": is_repeat}

    # output left, line 78
    left = checked(stock - wanted)

    # output is_repeat, line 78
    is_repeat = False
    check_postconditions(reserved=wanted, pieces=pieces, left=left)

    return {"reserved": wanted, "left": left, "is_repeat": is_repeat}


INPUTS: Final = Inputs(
    {"sku": "string", "pieces": "integer", "order_id": "string", "allow_part": "optional<boolean>"},
    {},
)


def call(inputs: dict[str, Any], *, now: datetime) -> Asking[Success]:
    """The same for a caller's own objects: each is checked and made a value first."""
    sku, pieces, order_id, allow_part = read_inputs(INPUTS, inputs)
    return stock_reservation_v1(sku, pieces, order_id, allow_part, now=now)


SOURCE: Final = Source(
    "nodes/shop/stock_reservation_v1.vsp",
    lines={
        26: 25, 30: 26, 46: 8, 50: 8, 54: 9, 58: 9, 62: 10, 65: 29, 79: 37, 81: 37, 91: 47, 94: 47,
        100: 50, 112: 54, 120: 61, 122: 61, 126: 63, 148: 70, 165: 78,
    },
    clauses={
        "constraint": [
            "length(sku) > 0",
            "length(sku) <= 40",
            "pieces > 0",
            "pieces <= 1000",
            "length(order_id) > 0",
        ],
        "postcondition": [
            "reserved > 0 AND reserved <= pieces",
            "left >= 0",
        ],
    },
)  # fmt: skip
