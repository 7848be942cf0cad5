# AUTO-GENERATED - DO NOT EDIT
# sensor_report_v1, from tests/integration/differential/nodes/sensor_report_v1.vsp
# semantic hash efd2eb92ae0c6a1ad3f90f2eaef097fc33892ce8d35bcac66b5f680454e721ca
"""Judges what a sensor sent, with a value of every type that is no plain number or text."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final, Literal, TypedDict

from vesper.kernels.array import is_item as array_is_item
from vesper.kernels.bytes import concat as bytes_concat
from vesper.kernels.bytes import hex as bytes_hex
from vesper.kernels.bytes import sha256 as bytes_sha256
from vesper.kernels.decimal import exact_decimals, exact_entry
from vesper.kernels.decimal import to_float as decimal_to_float
from vesper.kernels.float import divide as float_divide
from vesper.kernels.float import is_nan as float_is_nan
from vesper.kernels.json import Json, json_literal
from vesper.kernels.json import cast as json_cast
from vesper.kernels.json import field as json_field
from vesper.kernels.json import from_value as json_from_value
from vesper.kernels.json import get as json_get
from vesper.kernels.json import has as json_has
from vesper.kernels.json import kind as json_kind
from vesper.kernels.json import parse as json_parse
from vesper.kernels.map import keys as map_keys
from vesper.kernels.raised import ContractBroken
from vesper.kernels.runtime.entry import (
    NOT_PLAIN,
    Inputs,
    NotPlain,
    get_entry,
    new_objects,
    read_inputs,
    read_value,
    undecorated,
)
from vesper.kernels.runtime.source import Source
from vesper.kernels.value import max as value_max

D_30_50: Final = Decimal("30.50")


class Place(TypedDict):
    lat: float
    lon: float


class Success(TypedDict):
    verdict: Literal["cold", "warm", "broken"]
    fahrenheit: float
    worst: float
    unit: str
    limit: Decimal
    tags: frozenset[str]
    digest: str
    summary: Json
    taken: datetime
    wait: timedelta
    days: list[date]


FLOOR: Final[float] = -273.15
FALLBACK: Final[Json] = json_literal('{"limit":30.50,"tags":[],"unit":"C"}')
SALT: Final[bytes] = b"salt"
DEFAULT_MARKS: Final[dict[date, float]] = {date(1, 1, 1): -0.0, date(2024, 2, 29): 1.5}


@exact_decimals
def sensor_report_v1(
    *,
    reading: float,
    altitude: float = 0.0,
    signature: bytes = b"\x00\xff",
    payload: Json,
    place: Place | None = None,
    history: list[float],
    marks: dict[date, float] = DEFAULT_MARKS,
    taken: datetime = datetime(2024, 2, 29, 10, 30, 0, 500000, tzinfo=UTC),
    wait: timedelta = timedelta(hours=1, minutes=30),
) -> Success:
    """Judges what a sensor sent, with a value of every type that is no plain number or text."""

    # constraint, line 12: altitude >= -500.0
    if not altitude >= -500.0:
        raise ContractBroken("constraint", 0, {"altitude": altitude})

    # constraint, line 8: lat >= -90e0
    if not (place is None or place["lat"] >= -90.0):
        raise ContractBroken("constraint", 1, {"place": place})

    # constraint, line 8: lat <= 90e0
    if not (place is None or place["lat"] <= 90.0):
        raise ContractBroken("constraint", 2, {"place": place})

    # precondition, line 42: length(signature) <= 64
    if not len(signature) <= 64:
        raise ContractBroken("precondition", 0, {"signature": signature})

    # step settings, line 49
    settings = (
        payload if json_kind(payload) == "object" and json_has(payload, "/unit") else FALLBACK
    )

    # step unit, line 50
    unit = json_cast(json_field(settings, "unit"), "string")

    # step limit, line 51
    limit = json_cast(
        json_from_value(D_30_50, "decimal")
        if (value := json_get(settings, "/limit")) is None
        else value,
        "decimal",
    )

    # step tags, line 52
    tags = json_cast(
        json_parse("[]") if (value := json_get(settings, "/tags")) is None else value, "set<string>"
    )

    # step worst, line 53
    worst = value_max(reading, FLOOR) - float_divide(altitude, 100.0)

    # step fahrenheit, line 54
    fahrenheit = reading * 1.8 + 32.0

    # step digest, line 55
    digest = bytes_hex(bytes_sha256(bytes_concat(SALT, signature)))

    # step days, line 56
    days = map_keys(marks)

    # step verdict, line 57
    verdict: Literal["cold", "warm", "broken"]
    if float_is_nan(reading) or reading < FLOOR:
        verdict = "broken"
    elif array_is_item(reading, history):
        verdict = "warm"
    elif reading < decimal_to_float(limit):
        verdict = "cold"
    else:
        verdict = "warm"

    # step summary, line 64
    summary = json_from_value(
        {
            "reading": reading,
            "limit": limit,
            "place": place,
            "marks": marks,
            "taken": taken,
            "wait": wait,
            "sent": payload,
            "key": signature,
        },
        "{reading: float, limit: decimal, place: optional<{lat: float, lon: float}>, marks: map<date, float>, taken: timestamp, wait: duration, sent: json, key: bytes}",
    )

    # postcondition, line 44: length(digest) == 64
    if len(digest) != 64:
        raise ContractBroken("postcondition", 0, {"digest": digest})

    return {
        "verdict": verdict,
        "fahrenheit": fahrenheit,
        "worst": worst,
        "unit": unit,
        "limit": limit,
        "tags": tags,
        "digest": digest,
        "summary": summary,
        "taken": taken,
        "wait": wait,
        "days": days,
    }


INPUTS: Final = Inputs(
    {
        "reading": "float",
        "altitude": "float",
        "signature": "bytes",
        "payload": "json",
        "place": "optional<{lat: float, lon: float}>",
        "history": "array<float>",
        "marks": "map<date, float>",
        "taken": "timestamp",
        "wait": "duration",
    },
    {
        "altitude": 0.0,
        "signature": b"\x00\xff",
        "marks": DEFAULT_MARKS,
        "taken": datetime(2024, 2, 29, 10, 30, 0, 500000, tzinfo=UTC),
        "wait": timedelta(hours=1, minutes=30),
    },
)
RUN: Final = undecorated(sensor_report_v1)


def read_place(given: Any) -> Place:
    """Read a plain Place, field by field."""
    if type(given) is not dict:
        raise NotPlain
    for name in given:
        if type(name) is not str:
            raise NotPlain
    if len(given) != 2:
        raise NotPlain
    lat = given["lat"]
    if type(lat) is not float:
        raise NotPlain
    lon = given["lon"]
    if type(lon) is not float:
        raise NotPlain
    return {"lat": lat, "lon": lon}


@exact_entry
def call(inputs: dict[str, Any]) -> Success:
    """Run the node on a caller's own objects; each is checked and converted first."""
    try:
        if type(inputs) is not dict:
            raise NotPlain
        for name in inputs:
            if type(name) is not str:
                raise NotPlain
        if len(inputs) != (
            3
            + ("altitude" in inputs)
            + ("signature" in inputs)
            + ("place" in inputs)
            + ("marks" in inputs)
            + ("taken" in inputs)
            + ("wait" in inputs)
        ):
            raise NotPlain
        reading = inputs["reading"]
        if type(reading) is not float:
            raise NotPlain
        altitude = get_entry(inputs, "altitude", 0.0)
        if type(altitude) is not float:
            raise NotPlain
        signature = get_entry(inputs, "signature", b"\x00\xff")
        signature = read_value("bytes", signature)
        payload = inputs["payload"]
        payload = read_value("json", payload)
        place = get_entry(inputs, "place")
        place = None if place is None else read_place(place)
        history = inputs["history"]
        history = read_value("array<float>", history)
        marks = get_entry(inputs, "marks", DEFAULT_MARKS)
        marks = read_value("map<date, float>", marks)
        taken = get_entry(inputs, "taken", datetime(2024, 2, 29, 10, 30, 0, 500000, tzinfo=UTC))
        taken = read_value("timestamp", taken)
        wait = get_entry(inputs, "wait", timedelta(hours=1, minutes=30))
        wait = read_value("duration", wait)
    except NOT_PLAIN:
        reading, altitude, signature, payload, place, history, marks, taken, wait = read_inputs(
            INPUTS, inputs
        )
    return new_objects(
        RUN(
            reading=reading,
            altitude=altitude,
            signature=signature,
            payload=payload,
            place=place,
            history=history,
            marks=marks,
            taken=taken,
            wait=wait,
        )
    )


SOURCE: Final = Source(
    "tests/integration/differential/nodes/sensor_report_v1.vsp",
    lines={
        86: 12, 90: 8, 94: 8, 98: 42, 102: 49, 106: 50, 109: 51, 110: 51, 111: 51, 117: 52, 118: 52,
        128: 55, 145: 66, 161: 44,
    },
    clauses={
        "constraint": [
            "altitude >= -500.0",
            "lat >= -90e0",
            "lat <= 90e0",
        ],
        "precondition": [
            "length(signature) <= 64",
        ],
        "postcondition": [
            "length(digest) == 64",
        ],
    },
)  # fmt: skip
