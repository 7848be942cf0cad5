# AUTO-GENERATED - DO NOT EDIT
# loan_schedule_v1, from nodes/finance/loan_schedule_v1.vsp
# semantic hash 031394b451d2e786870ae3afe0e64c35314b3a86a9840e24708e36d5c00fde83
"""Write out how a loan is repaid month by month, the last payment closing it to the cent."""

from datetime import date
from decimal import Decimal
from typing import Any, Final, Literal, TypedDict

from vesper.kernels.array import last as array_last, range as array_range
from vesper.kernels.date import add_months as date_add_months, text as date_text, year as date_year
from vesper.kernels.decimal import (
    divide as decimal_divide,
    exact_decimals,
    exact_entry,
    round as decimal_round,
    unsigned_zero,
)
from vesper.kernels.integer import checked
from vesper.kernels.optional import require as optional_require
from vesper.kernels.raised import ContractBroken, DeclaredError
from vesper.kernels.runtime.entry import (
    MAX_INTEGER,
    MIN_INTEGER,
    NOT_PLAIN,
    Inputs,
    NotPlain,
    is_finite,
    new_objects,
    read_inputs,
    read_value,
    undecorated,
)
from vesper.kernels.runtime.flow import FAILURES, called, code_of, keep, one_of, outside_of_the_flow
from vesper.kernels.runtime.source import Source
from vesper.kernels.text import join as text_join
from vesper.kernels.value import clamp as value_clamp

from .loan_payment_v1 import loan_payment_v1

D_0: Final = Decimal("0")
D_1: Final = Decimal("1")
D_12: Final = Decimal("12")
D_100000000: Final = Decimal("100000000")


class Row(TypedDict):
    number: int
    due: date
    interest: Decimal
    repaid: Decimal
    paid: Decimal
    balance: Decimal


class Quote(TypedDict):
    payment: Decimal
    total: Decimal
    interest: Decimal
    first_interest: Decimal


class Plan(TypedDict):
    balance: Decimal
    interest: Decimal
    collected: list[Row]


class Success(TypedDict):
    rows: list[Row]
    payment: Decimal
    interest_paid: Decimal
    last_payment: Decimal
    ends_on: date
    months_saved: int


@outside_of_the_flow
def check_postconditions(
    *,
    rows: list[Row],
    principal: Decimal,
    interest_paid: Decimal,
    ends_on: date,
    months_saved: int,
    months: int,
    first_due: date,
) -> None:
    # postcondition, line 18: number >= 1
    for item in rows:
        if not item["number"] >= 1:
            raise ContractBroken("postcondition", 0, {"rows": rows})

    # postcondition, line 18: balance >= 0
    for item in rows:
        if not item["balance"] >= D_0:
            raise ContractBroken("postcondition", 1, {"rows": rows})

    # postcondition, line 18: paid == interest + repaid
    for item in rows:
        if item["paid"] != item["interest"] + item["repaid"]:
            raise ContractBroken("postcondition", 2, {"rows": rows})

    # postcondition, line 49: SUM(row.repaid FOR row IN rows) == principal
    if sum((row["repaid"] for row in rows), D_0) != principal:
        raise ContractBroken("postcondition", 3, {"rows": rows, "principal": principal})

    # postcondition, line 50: SUM(row.interest FOR row IN rows) == interest_paid
    if sum((row["interest"] for row in rows), D_0) != interest_paid:
        raise ContractBroken("postcondition", 4, {"rows": rows, "interest_paid": interest_paid})

    # postcondition, line 51: require(last(rows)).balance == 0 AND require(last(rows)).due ==
    #   ends_on
    if not (
        optional_require(array_last(rows))["balance"] == D_0
        and optional_require(array_last(rows))["due"] == ends_on
    ):
        raise ContractBroken("postcondition", 5, {"rows": rows, "ends_on": ends_on})

    # postcondition, line 52: length(rows) + months_saved == months
    if checked(len(rows) + months_saved) != months:
        raise ContractBroken(
            "postcondition", 6, {"rows": rows, "months_saved": months_saved, "months": months}
        )

    # postcondition, line 53: old(first_due) <= ends_on
    if not first_due <= ends_on:
        raise ContractBroken("postcondition", 7, {"first_due": first_due, "ends_on": ends_on})


def check_invariants(
    *,
    error_code: Literal["nothing_lent", "too_far", "time_overflow"] | None,
    payment: Decimal | None,
) -> None:
    # invariant, line 55: error.error_code IS NULL OR output.payment IS NULL
    if not (error_code is None or payment is None):
        raise ContractBroken("invariant", 0, {"error_code": error_code, "payment": payment})


@exact_decimals
def loan_schedule_v1(
    principal: Decimal,
    annual_rate: Decimal,
    months: int,
    first_due: date,
    extra: Decimal = D_0,
) -> Success:
    """Write out how a loan is repaid month by month, the last payment closing it to the cent."""

    # constraint, line 8: principal >= 0
    if not principal >= D_0:
        raise ContractBroken("constraint", 0, {"principal": principal})

    # constraint, line 8: value <= 100000000
    if not principal <= D_100000000:
        raise ContractBroken("constraint", 1, {"principal": principal})

    # constraint, line 9: annual_rate >= 0
    if not annual_rate >= D_0:
        raise ContractBroken("constraint", 2, {"annual_rate": annual_rate})

    # constraint, line 9: annual_rate <= 1
    if not annual_rate <= D_1:
        raise ContractBroken("constraint", 3, {"annual_rate": annual_rate})

    # constraint, line 23: months >= 1
    if not months >= 1:
        raise ContractBroken("constraint", 4, {"months": months})

    # constraint, line 23: months <= 480
    if not months <= 480:
        raise ContractBroken("constraint", 5, {"months": months})

    # constraint, line 25: extra >= 0
    if not extra >= D_0:
        raise ContractBroken("constraint", 6, {"extra": extra})

    # constraint, line 25: extra <= 100000000
    if not extra <= D_100000000:
        raise ContractBroken("constraint", 7, {"extra": extra})

    # precondition, line 47: round(principal, 2) == principal AND round(extra, 2) == extra
    if not (
        decimal_round(principal, 2, "half_even") == principal
        and decimal_round(extra, 2, "half_even") == extra
    ):
        raise ContractBroken("precondition", 0, {"principal": principal, "extra": extra})

    try:
        if not principal > D_0:
            error_code: Literal["nothing_lent", "too_far", "time_overflow"] = "nothing_lent"
            message = "nothing was lent"
            check_invariants(error_code=error_code, payment=None)

            raise DeclaredError({"error_code": error_code, "message": message})

        # validation_2, line 63
        if not date_year(first_due) < 9900:
            error_code = "too_far"
            message = text_join(
                ["the first payment on ", date_text(first_due), " is too far away"], ""
            )
            check_invariants(error_code=error_code, payment=None)

            raise DeclaredError({"error_code": error_code, "message": message})

        # step quote, line 66
        quote: Quote = called(
            loan_payment_v1, principal=principal, annual_rate=annual_rate, months=months
        )

        # step plan, line 71
        items = array_range(1, checked(months + 1), 1)
        balance = principal
        interest = D_0
        collected: list[Row] = []
        for number in items:
            # step due_now, line 80
            due_now = decimal_round(
                decimal_divide(unsigned_zero(balance * annual_rate), D_12), 2, "half_up"
            )

            # step wanted, line 82
            wanted = quote["payment"] + extra - due_now

            # step repaid, line 83
            repaid = balance if number == months else value_clamp(wanted, D_0, balance)

            # step left, line 84
            left = balance - repaid
            keep(
                collected,
                Row(
                    number=number,
                    due=date_add_months(first_due, checked(number - 1)),
                    interest=due_now,
                    repaid=repaid,
                    paid=due_now + repaid,
                    balance=left,
                ),
            )
            balance, interest = left, interest + due_now
            if balance == D_0:
                break
        plan = Plan(balance=balance, interest=interest, collected=collected)

        # step final, line 97
        final: Row = optional_require(array_last(plan["collected"]))

        # output rows, line 103
        rows: list[Row] = plan["collected"]

        # output payment, line 104
        payment = quote["payment"]

        # output interest_paid, line 105
        interest_paid = plan["interest"]

        # output last_payment, line 106
        last_payment = final["paid"]

        # output ends_on, line 107
        ends_on = final["due"]

        # output months_saved, line 108
        months_saved = checked(months - len(plan["collected"]))
        check_postconditions(
            rows=rows,
            principal=principal,
            interest_paid=interest_paid,
            ends_on=ends_on,
            months_saved=months_saved,
            months=months,
            first_due=first_due,
        )
        check_invariants(error_code=None, payment=payment)

        return {
            "rows": rows,
            "payment": payment,
            "interest_paid": interest_paid,
            "last_payment": last_payment,
            "ends_on": ends_on,
            "months_saved": months_saved,
        }
    except FAILURES as failure:
        code: Literal["time_overflow"] | None = one_of(code_of(failure), ("time_overflow",))
        if code is None:
            raise
        check_invariants(error_code=code, payment=None)
        raise DeclaredError({"error_code": code, "message": code}) from failure


INPUTS: Final = Inputs(
    {
        "principal": "decimal",
        "annual_rate": "decimal",
        "months": "integer",
        "first_due": "date",
        "extra": "decimal",
    },
    {"extra": D_0},
)
RUN: Final = undecorated(loan_schedule_v1)


@exact_entry
def call(inputs: dict[str, Any]) -> Success:
    """The same for a caller's own objects: each is checked and made a value first."""
    try:
        if type(inputs) is not dict:
            raise NotPlain
        for name in inputs:
            if type(name) is not str:
                raise NotPlain
        if len(inputs) != 4 + ("extra" in inputs):
            raise NotPlain
        principal = inputs["principal"]
        if type(principal) is not Decimal or not is_finite(principal):
            raise NotPlain
        principal = principal + D_0
        annual_rate = inputs["annual_rate"]
        if type(annual_rate) is not Decimal or not is_finite(annual_rate):
            raise NotPlain
        annual_rate = annual_rate + D_0
        months = inputs["months"]
        if type(months) is not int or months < MIN_INTEGER or months > MAX_INTEGER:
            raise NotPlain
        first_due = inputs["first_due"]
        first_due = read_value("date", first_due)
        extra = inputs["extra"] if "extra" in inputs else D_0
        if type(extra) is not Decimal or not is_finite(extra):
            raise NotPlain
        extra = extra + D_0
    except NOT_PLAIN:
        principal, annual_rate, months, first_due, extra = read_inputs(INPUTS, inputs)
    return new_objects(RUN(principal, annual_rate, months, first_due, extra))


SOURCE: Final = Source(
    "nodes/finance/loan_schedule_v1.vsp",
    lines={
        92: 18, 97: 18, 101: 18, 102: 18, 105: 49, 106: 49, 109: 50, 110: 50, 115: 51, 116: 51,
        118: 51, 121: 52, 122: 52, 128: 53, 138: 55, 153: 8, 157: 8, 161: 9, 165: 9, 169: 23,
        173: 23, 177: 25, 181: 25, 185: 47, 186: 47, 188: 47, 196: 62, 201: 64, 206: 64, 209: 66,
        214: 73, 220: 43, 221: 43, 225: 82, 228: 83, 231: 84, 232: 86, 236: 87, 239: 90, 243: 94,
        249: 99, 267: 108,
    },
    clauses={
        "constraint": [
            "principal >= 0",
            "value <= 100000000",
            "annual_rate >= 0",
            "annual_rate <= 1",
            "months >= 1",
            "months <= 480",
            "extra >= 0",
            "extra <= 100000000",
        ],
        "precondition": [
            "round(principal, 2) == principal AND round(extra, 2) == extra",
        ],
        "postcondition": [
            "number >= 1",
            "balance >= 0",
            "paid == interest + repaid",
            "SUM(row.repaid FOR row IN rows) == principal",
            "SUM(row.interest FOR row IN rows) == interest_paid",
            "require(last(rows)).balance == 0 AND require(last(rows)).due == ends_on",
            "length(rows) + months_saved == months",
            "old(first_due) <= ends_on",
        ],
        "invariant": [
            "error.error_code IS NULL OR output.payment IS NULL",
        ],
    },
)  # fmt: skip
