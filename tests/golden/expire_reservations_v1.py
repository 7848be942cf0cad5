# AUTO-GENERATED - DO NOT EDIT
# expire_reservations_v1, from nodes/shop/expire_reservations_v1.vsp
# semantic hash 976689e9d0a37b5fbe4a8aa7b83a6ba7e8c5e3e5e54a3f28f461d153b4b71cb3
"""Give back what was reserved and never bought."""

from datetime import datetime
from typing import Any, Final, TypedDict

from vesper.kernels.integer import checked
from vesper.kernels.raised import ContractBroken
from vesper.kernels.runtime.entry import Inputs, read_inputs
from vesper.kernels.runtime.flow import (
    FAILURES,
    Asking,
    Request,
    code_of,
    counted,
    exact_steps,
    keep,
    path,
)
from vesper.kernels.runtime.source import Source


class Old(TypedDict):
    reservation_id: int
    sku: str
    pieces: int


class Work(TypedDict):
    released: int
    lost: int
    collected: list[str]


class Success(TypedDict):
    released: int
    skus: list[str]
    lost: int
    is_done: bool


@exact_steps
def expire_reservations_v1(
    batch: int = 100,
    max_lost: int = 3,
    only_sku: str | None = None,
    *,
    now: datetime,
) -> Asking[Success]:
    """Give back what was reserved and never bought."""

    # constraint, line 12: batch > 0
    if not batch > 0:
        raise ContractBroken("constraint", 0, {"batch": batch})

    # constraint, line 12: batch <= 500
    if not batch <= 500:
        raise ContractBroken("constraint", 1, {"batch": batch})

    # constraint, line 13: max_lost >= 0
    if not max_lost >= 0:
        raise ContractBroken("constraint", 2, {"max_lost": max_lost})

    # step expired, line 29
    # timeout 5s
    expired: list[Old] = yield Request(
        "expired",
        "database_query",
        "read",
        {
            "database": "main",
            "sql": (
                "SELECT reservation_id, sku, pieces "
                "FROM reservations "
                "WHERE state = 'open' AND expires_at < :now "
                "ORDER BY reservation_id "
                "LIMIT :batch"
            ),
            "rows": "all",
        },
        {"bind": {"now": now, "batch": batch}},
    )

    # step work, line 39
    try:
        released = 0
        lost = 0
        collected: list[str] = []
        iterations = 0
        for row in expired:
            if not (only_sku is None or row["sku"] == only_sku):
                continue
            iterations = counted(iterations, 500)

            # step close, line 47
            close: int = yield Request(
                path("close", iterations),
                "database_write",
                "txn",
                {
                    "database": "main",
                    "sql": (
                        "UPDATE reservations "
                        "SET state = :set_state, closed_at = :set_closed_at "
                        "WHERE reservation_id = :id AND state = 'open'"
                    ),
                },
                {
                    "bind": {
                        "id": row["reservation_id"],
                        "set_state": "expired",
                        "set_closed_at": now,
                    }
                },
            )

            # step give_back, line 53
            give_back: int | None
            if close == 1:
                try:
                    give_back = yield Request(
                        path("give_back", iterations),
                        "database_write",
                        "txn",
                        {
                            "database": "main",
                            "sql": (
                                "UPDATE stock SET available = available + :pieces WHERE sku = :sku"
                            ),
                        },
                        {"bind": {"pieces": row["pieces"], "sku": row["sku"]}},
                    )
                except FAILURES as failure:
                    if code_of(failure) != "conflict":
                        raise
                    # step reopen, line 61
                    yield Request(
                        path("reopen", iterations),
                        "database_write",
                        "txn",
                        {
                            "database": "main",
                            "sql": (
                                "UPDATE reservations "
                                "SET state = :set_state "
                                "WHERE reservation_id = :id"
                            ),
                        },
                        {"bind": {"id": row["reservation_id"], "set_state": "open"}},
                    )
                    give_back = 0
            else:
                give_back = None
            keep(collected, "" if give_back is None or give_back == 0 else row["sku"])
            released, lost = (
                checked(released + (0 if give_back is None else give_back)),
                checked(lost + (1 if give_back is not None and give_back == 0 else 0)),
            )
            if lost > max_lost:
                break
        work = Work(released=released, lost=lost, collected=collected)
    except FAILURES as failure:
        if code_of(failure) not in ("timeout", "unavailable"):
            raise
        work = Work(released=0, lost=0, collected=[])

    # output released, line 79
    released = work["released"]

    # output skus, line 80
    skus: list[str] = [sku for sku in work["collected"] if sku != ""]

    # output lost, line 81
    lost = work["lost"]

    # output is_done, line 82
    is_done = len(expired) < batch

    # postcondition, line 25: released <= batch
    if not released <= batch:
        raise ContractBroken("postcondition", 0, {"released": released, "batch": batch})

    # postcondition, line 26: length(skus) <= released
    if not len(skus) <= released:
        raise ContractBroken("postcondition", 1, {"skus": skus, "released": released})

    return {"released": released, "skus": skus, "lost": lost, "is_done": is_done}


INPUTS: Final = Inputs(
    {"batch": "integer", "max_lost": "integer", "only_sku": "optional<string>"},
    {"batch": 100, "max_lost": 3},
)


def call(inputs: dict[str, Any], *, now: datetime) -> Asking[Success]:
    """Run the node on a caller's own objects; each is checked and converted first."""
    batch, max_lost, only_sku = read_inputs(INPUTS, inputs)
    return expire_reservations_v1(batch, max_lost, only_sku, now=now)


SOURCE: Final = Source(
    "nodes/shop/expire_reservations_v1.vsp",
    lines={
        56: 12, 60: 12, 64: 13, 68: 29, 95: 41, 98: 47, 123: 53, 139: 61, 156: 68, 158: 70, 159: 71,
        183: 25, 187: 26,
    },
    clauses={
        "constraint": [
            "batch > 0",
            "batch <= 500",
            "max_lost >= 0",
        ],
        "postcondition": [
            "released <= batch",
            "length(skus) <= released",
        ],
    },
)  # fmt: skip
