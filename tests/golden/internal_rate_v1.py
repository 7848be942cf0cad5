# AUTO-GENERATED - DO NOT EDIT
# internal_rate_v1, from nodes/finance/internal_rate_v1.vsp
# semantic hash 888594f5e22d19d94208aafbbc4c926cd6e8bd246a403b9a3330439268154804
"""Find the rate at which an investment neither gains nor loses, by halving an interval until it is
narrow."""

from decimal import Decimal
from typing import Any, Final, Literal, TypedDict

from vesper.kernels.array import append as array_append
from vesper.kernels.array import at as array_at
from vesper.kernels.array import last as array_last
from vesper.kernels.array import reverse as array_reverse
from vesper.kernels.decimal import abs as decimal_abs
from vesper.kernels.decimal import divide as decimal_divide
from vesper.kernels.decimal import exact_decimals, exact_entry
from vesper.kernels.decimal import round as decimal_round
from vesper.kernels.decimal import sum as decimal_sum
from vesper.kernels.decimal import text as decimal_text
from vesper.kernels.integer import checked
from vesper.kernels.integer import text as integer_text
from vesper.kernels.raised import ContractBroken, DeclaredError
from vesper.kernels.runtime.entry import (
    MAX_ENTRIES,
    NOT_PLAIN,
    Inputs,
    NotPlain,
    get_entry,
    is_finite,
    read_decimal,
    read_inputs,
    undecorated,
)
from vesper.kernels.runtime.flow import (
    FAILURES,
    code_of,
    counted,
    one_of,
    outside_of_the_flow,
)
from vesper.kernels.runtime.forms import fold, taken_while
from vesper.kernels.runtime.source import Source
from vesper.kernels.text import join as text_join

D_MINUS_0_9: Final = Decimal("-0.9")
D_0: Final = Decimal(0)
D_0_000001: Final = Decimal("0.000001")
D_0_1: Final = Decimal("0.1")
D_1: Final = Decimal(1)
D_2: Final = Decimal(2)
D_10: Final = Decimal(10)
D_1000000000: Final = Decimal(1000000000)


class Search(TypedDict):
    low: Decimal
    high: Decimal
    rounds: int


class Success(TypedDict):
    rate: Decimal
    rounds: int
    left_over: Decimal
    paid_back: int | None
    total: Decimal


LOWEST: Final[Decimal] = D_MINUS_0_9
HIGHEST: Final[Decimal] = D_10


@outside_of_the_flow
def check_postconditions(
    *,
    rate: Decimal,
    left_over: Decimal,
    precision: Decimal,
    flows: list[Decimal],
    paid_back: int | None,
) -> None:
    # postcondition, line 37: rate >= lowest AND rate <= highest
    if not (rate >= LOWEST and rate <= HIGHEST):
        raise ContractBroken(
            "postcondition", 0, {"rate": rate, "lowest": LOWEST, "highest": HIGHEST}
        )

    # postcondition, line 38: abs(left_over) <= abs(present_value(rate - precision, flows)) +
    #   abs(present_value(rate + precision, flows))
    if not decimal_abs(left_over) <= decimal_abs(
        (
            rate_ := rate - precision,
            fold(
                lambda worth, flow: decimal_divide(worth, D_1 + rate_) + flow,
                array_reverse(flows),
                D_0,
            ),
        )[1]
    ) + decimal_abs(
        (
            rate__ := rate + precision,
            fold(
                lambda worth_, flow_: decimal_divide(worth_, D_1 + rate__) + flow_,
                array_reverse(flows),
                D_0,
            ),
        )[1]
    ):
        raise ContractBroken(
            "postcondition",
            1,
            {"left_over": left_over, "rate": rate, "precision": precision, "flows": flows},
        )

    # postcondition, line 39: paid_back IS NULL OR paid_back < length(flows)
    if not (paid_back is None or paid_back < len(flows)):
        raise ContractBroken("postcondition", 2, {"paid_back": paid_back, "flows": flows})


@exact_decimals
def internal_rate_v1(flows: list[Decimal], precision: Decimal = D_0_000001) -> Success:
    """Find the rate at which an investment neither gains nor loses, by halving an interval until it
    is narrow."""

    # constraint, line 7: precision > 0
    if not precision > D_0:
        raise ContractBroken("constraint", 0, {"precision": precision})

    # constraint, line 7: precision <= 0.1
    if not precision <= D_0_1:
        raise ContractBroken("constraint", 1, {"precision": precision})

    # precondition, line 33: length(flows) >= 2 AND length(flows) <= 60
    if not (len(flows) >= 2 and len(flows) <= 60):
        raise ContractBroken("precondition", 0, {"flows": flows})

    # precondition, line 34: flows[0] < 0
    if not array_at(flows, 0) < D_0:
        raise ContractBroken("precondition", 1, {"flows": flows})

    # precondition, line 35: FORALL flow IN flows SATISFIES abs(flow) <= 1000000000
    for flow in flows:
        if not decimal_abs(flow) <= D_1000000000:
            raise ContractBroken("precondition", 2, {"flows": flows})

    try:
        if not (
            fold(
                lambda worth, flow: decimal_divide(worth, D_1 + LOWEST) + flow,
                array_reverse(flows),
                D_0,
            )
            > D_0
            and fold(
                lambda worth_, flow_: decimal_divide(worth_, D_1 + HIGHEST) + flow_,
                array_reverse(flows),
                D_0,
            )
            < D_0
        ):
            message = text_join(
                [
                    "no rate between ",
                    decimal_text(LOWEST),
                    " and ",
                    decimal_text(HIGHEST),
                    " fits ",
                    integer_text(len(flows)),
                    " flows",
                ],
                "",
            )

            raise DeclaredError({"error_code": "no_rate", "message": message})

        # step search, line 47
        try:
            low = LOWEST
            high = HIGHEST
            rounds = 0
            iterations = 0
            while high - low > precision:
                iterations = counted(iterations, 64)

                # step middle, line 56
                middle = decimal_divide(low + high, D_2)

                # step worth, line 57
                worth = D_0
                for flow in array_reverse(flows):
                    worth = decimal_divide(worth, D_1 + middle) + flow
                worth_ = worth
                low, high, rounds = (
                    middle if worth_ >= D_0 else low,
                    high if worth_ >= D_0 else middle,
                    checked(rounds + 1),
                )
            search = Search(low=low, high=high, rounds=rounds)
        except FAILURES as failure:
            if code_of(failure) != "loop_limit":
                raise
            message = text_join(["not within ", decimal_text(precision), " after 64 rounds"], "")

            raise DeclaredError({"error_code": "loop_limit", "message": message}) from failure

        # step balances, line 67
        sums: list[Decimal] = []
        for flow_ in flows:
            sums = array_append(
                sums, (D_0 if (value := array_last(sums)) is None else value) + flow_
            )
        balances = sums

        # step rate, line 74
        rate = decimal_round(search["low"], 30, "floor")

        # step under, line 75
        under = len(taken_while(lambda balance: balance < D_0, balances))

        # output rounds, line 80
        rounds = search["rounds"]

        # output left_over, line 81
        left_over = decimal_round(
            fold(
                lambda worth__, flow__: decimal_divide(worth__, D_1 + rate) + flow__,
                array_reverse(flows),
                D_0,
            ),
            6,
            "half_even",
        )

        # output paid_back, line 82
        paid_back: int | None = None if under == len(flows) else under

        # output total, line 83
        total = decimal_sum(flows)
        check_postconditions(
            rate=rate, left_over=left_over, precision=precision, flows=flows, paid_back=paid_back
        )

        return {
            "rate": rate,
            "rounds": rounds,
            "left_over": left_over,
            "paid_back": paid_back,
            "total": total,
        }
    except FAILURES as failure:
        code: Literal["decimal_overflow"] | None = one_of(code_of(failure), ("decimal_overflow",))
        if code is None:
            raise
        raise DeclaredError({"error_code": code, "message": code}) from failure


INPUTS: Final = Inputs(
    {"flows": "array<decimal>", "precision": "decimal"}, {"precision": D_0_000001}
)
RUN: Final = undecorated(internal_rate_v1)


@exact_entry
def call(inputs: dict[str, Any]) -> Success:
    """Run the node on a caller's own objects; each is checked and converted first."""
    try:
        if type(inputs) is not dict:
            raise NotPlain
        for name in inputs:
            if type(name) is not str:
                raise NotPlain
        if len(inputs) != 1 + ("precision" in inputs):
            raise NotPlain
        flows = inputs["flows"]
        if type(flows) is not list or len(flows) > MAX_ENTRIES:
            raise NotPlain
        flows = [read_decimal(item) for item in flows]
        precision = get_entry(inputs, "precision", D_0_000001)
        if type(precision) is not Decimal or not is_finite(precision):
            raise NotPlain
        precision = precision + D_0
    except NOT_PLAIN:
        flows, precision = read_inputs(INPUTS, inputs)
    return RUN(flows, precision)


SOURCE: Final = Source(
    "nodes/finance/internal_rate_v1.vsp",
    lines={
        84: 37, 90: 38, 92: 38, 94: 29, 101: 38, 103: 29, 109: 38, 117: 39, 127: 7, 131: 7, 135: 33,
        138: 34, 139: 34, 144: 35, 149: 29, 155: 29, 161: 45, 174: 45, 182: 49, 183: 49, 186: 56,
        191: 29, 196: 61, 202: 64, 204: 64, 209: 70, 210: 70, 215: 74, 224: 81, 226: 29, 238: 83,
    },
    clauses={
        "constraint": [
            "precision > 0",
            "precision <= 0.1",
        ],
        "precondition": [
            "length(flows) >= 2 AND length(flows) <= 60",
            "flows[0] < 0",
            "FORALL flow IN flows SATISFIES abs(flow) <= 1000000000",
        ],
        "postcondition": [
            "rate >= lowest AND rate <= highest",
            "abs(left_over) <= abs(present_value(rate - precision, flows)) + abs(present_value(rate + precision, flows))",
            "paid_back IS NULL OR paid_back < length(flows)",
        ],
    },
)  # fmt: skip
