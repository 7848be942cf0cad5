# AUTO-GENERATED - DO NOT EDIT
# exchange_rates_v1, from nodes/finance/exchange_rates_v1.vsp
# semantic hash a4328c0d6a6d32e88e2997b46cb54bb3a777093b23548e5a2499ec5204cc2efb
"""The rate between two currencies, from the cache, the bank or, when the bank is away, the last
known one."""

from datetime import datetime
from decimal import Decimal
from typing import Any, Final, Literal, TypedDict

from vesper.kernels.decimal import round as decimal_round
from vesper.kernels.decimal import text as decimal_text
from vesper.kernels.decimal import unsigned_zero
from vesper.kernels.enum import text as enum_text
from vesper.kernels.raised import DeclaredError
from vesper.kernels.runtime.entry import Inputs, read_inputs
from vesper.kernels.runtime.flow import (
    FAILURES,
    Asking,
    Request,
    code_of,
    exact_steps,
    http_class,
)
from vesper.kernels.runtime.source import Source
from vesper.kernels.text import concat as text_concat
from vesper.kernels.text import join as text_join
from vesper.kernels.text import percent_encode as text_percent_encode

D_MINUS_1: Final = Decimal(-1)
D_0: Final = Decimal(0)
D_1: Final = Decimal(1)


class Answer(TypedDict):
    rate: Decimal


class Success(TypedDict):
    rate: Decimal
    converted: Decimal
    source: Literal["same", "cache", "bank", "last_known"]


@exact_steps
def exchange_rates_v1(
    base: Literal["EUR", "USD", "GBP", "CHF"],
    quote: Literal["EUR", "USD", "GBP", "CHF"],
    amount: Decimal = D_1,
    *,
    now: datetime,
) -> Asking[Success]:
    """The rate between two currencies, from the cache, the bank or, when the bank is away, the last
    known one."""

    # return_1, line 26
    if base == quote:
        return {"rate": D_1, "converted": amount, "source": "same"}

    # step pair, line 30
    pair = text_join([enum_text(base), "/", enum_text(quote)], "")

    # step cached, line 34
    try:
        # timeout 2s; circuit breaker opens after 5 failures within 30s for 1m
        cached: Decimal | None = yield Request(
            "cached", "cache_get", "read", {"cache": "rates"}, {"key": pair}
        )
    except FAILURES:
        cached = None

    # return_2, line 43
    if cached is not None and cached > D_0:
        rate = cached
        converted = decimal_round(unsigned_zero(amount * cached), 2, "half_even")

        return {"rate": rate, "converted": converted, "source": "cache"}

    # step answer, line 48
    try:
        # timeout 2s; at most 3 attempts on timeout or unavailable or http_500 or http_503, backoff
        #   from 50ms times 4, full jitter; circuit breaker opens after 5 failures within 30s for 1m
        answer: Answer = yield Request(
            "answer",
            "http_request",
            "read",
            {"provider": "bank", "method": "GET"},
            {
                "endpoint": text_join(
                    [
                        "/rates/",
                        text_percent_encode(enum_text(base)),
                        "/",
                        text_percent_encode(enum_text(quote)),
                    ],
                    "",
                ),
                "query": {"places": 6},
            },
        )
    except FAILURES as failure:
        if code_of(failure) == "http_404":
            message = text_concat("the bank has no rate for ", pair)

            raise DeclaredError({"error_code": "no_rate", "message": message}) from failure
        elif (
            code_of(failure) in ("timeout", "unavailable")
            or http_class(code_of(failure)) == "http_5xx"
        ):
            # step noted, line 61
            try:
                # timeout 2s; circuit breaker opens after 5 failures within 30s for 1m
                noted: Decimal = yield Request(
                    "noted",
                    "database_query",
                    "read",
                    {
                        "database": "main",
                        "sql": (
                            "SELECT rate "
                            "FROM last_rates "
                            "WHERE pair = :pair "
                            "ORDER BY noted_at DESC "
                            "LIMIT 1"
                        ),
                        "rows": "one",
                    },
                    {"bind": {"pair": pair}},
                )
            except FAILURES as failure_:
                if code_of(failure_) != "not_found":
                    raise
                message = text_concat("the bank is away, and there never was a rate for ", pair)

                raise DeclaredError({"error_code": "no_rate", "message": message}) from failure_
            converted = decimal_round(unsigned_zero(amount * noted), 2, "half_even")

            return {"rate": noted, "converted": converted, "source": "last_known"}
        elif code_of(failure) == "bad_response":
            answer = Answer(rate=D_MINUS_1)
        else:
            raise

    # validation_3, line 75
    if not answer["rate"] > D_0:
        message = text_join(
            ["the bank's rate for ", pair, " is ", decimal_text(answer["rate"])], ""
        )

        raise DeclaredError({"error_code": "bad_rate", "message": message})

    # step remember, line 78
    try:
        # timeout 2s; circuit breaker opens after 5 failures within 30s for 1m
        remember: bool = yield Request(
            "remember",
            "cache_put",
            "read",
            {"cache": "rates", "ttl_us": "600000000"},
            {"key": pair, "value": answer["rate"]},
        )
    except FAILURES:
        remember = False

    # step write_down, line 88
    if remember:
        # timeout 2s; circuit breaker opens after 5 failures within 30s for 1m
        yield Request(
            "write_down",
            "database_write",
            "unsafe",
            {
                "database": "main",
                "sql": (
                    "INSERT INTO last_rates (pair, rate, noted_at) VALUES (:pair, :rate, :noted_at)"
                ),
            },
            {"bind": {"pair": pair, "rate": answer["rate"], "noted_at": now}},
        )

    # output rate, line 96
    rate = answer["rate"]

    # output converted, line 96
    converted = decimal_round(unsigned_zero(amount * answer["rate"]), 2, "half_even")

    return {"rate": rate, "converted": converted, "source": "bank"}


INPUTS: Final = Inputs(
    {"base": "enum[EUR, USD, GBP, CHF]", "quote": "enum[EUR, USD, GBP, CHF]", "amount": "decimal"},
    {"amount": D_1},
)


def call(inputs: dict[str, Any], *, now: datetime) -> Asking[Success]:
    """Run the node on a caller's own objects; each is checked and converted first."""
    base, quote, amount = read_inputs(INPUTS, inputs)
    return exchange_rates_v1(base, quote, amount, now=now)


SOURCE: Final = Source(
    "nodes/finance/exchange_rates_v1.vsp",
    lines={
        61: 32, 66: 34, 75: 46, 83: 48, 89: 52, 92: 52, 94: 52, 103: 58, 105: 58, 113: 61, 133: 68,
        135: 68, 136: 70, 146: 76, 150: 76, 155: 78, 168: 88, 185: 96,
    },
)  # fmt: skip
