# AUTO-GENERATED - DO NOT EDIT
# session_windows_v1, from nodes/logs/session_windows_v1.vsp
# semantic hash 8218e8197f73876d2d646475e5d04ae10a73fdb7092dbab605c77a67955ad41a
"""Cut the visits of a web site into sessions, each ended by half an hour of silence."""

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final, TypedDict

from vesper.kernels.array import (
    append as array_append,
    at as array_at,
    concat as array_concat,
    flatten as array_flatten,
    largest,
    last as array_last,
    replace_at as array_replace_at,
    take as array_take,
)
from vesper.kernels.decimal import exact_decimals, exact_entry
from vesper.kernels.duration import (
    add as duration_add,
    from_days as duration_from_days,
    from_seconds as duration_from_seconds,
)
from vesper.kernels.integer import avg as integer_avg, checked_sum
from vesper.kernels.map import entries as map_entries, entries_of
from vesper.kernels.raised import ContractBroken
from vesper.kernels.runtime.entry import (
    MAX_ENTRIES,
    MAX_INTEGER,
    MAX_TEXT,
    MIN_INTEGER,
    NOT_PLAIN,
    Inputs,
    NotPlain,
    is_ascii,
    is_text,
    new_objects,
    read_inputs,
    read_value,
    undecorated,
)
from vesper.kernels.runtime.forms import (
    counted_by,
    distinct_by,
    fold,
    greatest_by,
    grouped_by,
    sorted_by,
)
from vesper.kernels.runtime.source import Source
from vesper.kernels.timestamp import hour as timestamp_hour


class Session(TypedDict):
    user: str
    begin: datetime
    end: datetime
    pages: list[str]


class Top(TypedDict):
    page: str
    visits: int


class Visit(TypedDict):
    user: str
    at: datetime
    page: str


class ByUserItem(TypedDict):
    key: str
    items: list[Visit]


class Cut(TypedDict):
    sessions: list[Session]


class PagesGroup(TypedDict):
    key: str
    items: list[str]


class ShapeRow(TypedDict):
    length: int
    hour: int


class ShapeBusiest(TypedDict):
    key: int
    value: int


class Shape(TypedDict):
    bounces: int
    mean: Decimal | None
    busiest: ShapeBusiest | None


class Success(TypedDict):
    sessions: list[Session]
    longest: timedelta | None
    total: timedelta
    pages: list[Top]
    entry_pages: dict[str, int]
    people: list[str]
    bounces: int
    mean_pages: Decimal | None
    busiest: int | None


@exact_decimals
def session_windows_v1(
    *,
    visits: list[Visit],
    gap: timedelta = timedelta(seconds=1800),
    ignored: frozenset[str] = frozenset({"/health"}),
    names: dict[str, str],
    top: int = 3,
    now: datetime,
) -> Success:
    """Cut the visits of a web site into sessions, each ended by half an hour of silence."""

    # constraint, line 11: length(user) > 0
    for item in visits:
        if not len(item["user"]) > 0:
            raise ContractBroken("constraint", 0, {"visits": visits})

    # constraint, line 26: top >= 1
    if not top >= 1:
        raise ContractBroken("constraint", 1, {"top": top})

    # constraint, line 26: top <= 50
    if not top <= 50:
        raise ContractBroken("constraint", 2, {"top": top})

    # precondition, line 42: gap > seconds(0) AND gap <= days(1)
    if not (gap > duration_from_seconds(0) and gap <= duration_from_days(1)):
        raise ContractBroken("precondition", 0, {"gap": gap})

    # step by_user, line 50
    by_user: list[ByUserItem] = [
        ByUserItem(key=_key, items=_items)
        for _key, _items in entries_of(
            grouped_by(
                lambda visit: visit["user"],
                sorted_by(
                    lambda visit_: visit_["at"],
                    (visit_ for visit_ in visits if visit_["page"] not in ignored),
                    "ascending",
                ),
            )
        )
    ]

    # step cut, line 58
    sessions: list[Session] = []
    for group in by_user:
        # step own, line 64
        done: list[Session] = []
        for visit in group["items"]:
            done = [
                array_replace_at(
                    done,
                    len(done) - 1,
                    Session(
                        user=open["user"],
                        begin=open["begin"],
                        end=visit["at"],
                        pages=array_append(open["pages"], visit["page"]),
                    ),
                )
                if open is not None and visit["at"] - open["end"] <= gap
                else array_append(
                    done,
                    Session(
                        user=group["key"], begin=visit["at"], end=visit["at"], pages=[visit["page"]]
                    ),
                )
                for open in [array_last(done)]
            ][0]
        own: list[Session] = done
        sessions = array_concat(sessions, own)
    cut = Cut(sessions=sessions)

    # step pages, line 77
    pages: list[Top] = array_take(
        sorted(
            [
                Top(page=page_["key"], visits=len(page_["items"]))
                for page_ in [
                    PagesGroup(key=_key, items=_items)
                    for _key, _items in entries_of(
                        grouped_by(
                            lambda page__: page__,
                            array_flatten([session["pages"] for session in cut["sessions"]]),
                        )
                    )
                ]
            ],
            key=lambda page: page["visits"],
            reverse=True,
        ),
        top,
    )

    # step people, line 86
    people = array_flatten(
        [
            [entry["value"] for entry in map_entries(names) if entry["key"] == session["user"]]
            for session in distinct_by(lambda session_: session_["user"], cut["sessions"])
        ]
    )

    # step total, line 96
    total = fold(
        lambda sum_, session: duration_add(sum_, session),
        [session_["end"] - session_["begin"] for session_ in cut["sessions"]],
        duration_from_seconds(0),
    )

    # step shape, line 103
    items = [
        ShapeRow(length=len(session["pages"]), hour=timestamp_hour(session["begin"]))
        for session in cut["sessions"]
    ]
    shape = Shape(
        bounces=len([each for each in items if each["length"] == 1]),
        mean=None if len(items) == 0 else integer_avg([each_["length"] for each_ in items]),
        busiest=greatest_by(
            lambda entry: entry["value"],
            map_entries(counted_by(lambda each__: each__["hour"], items)),
        ),
    )

    # output sessions, line 115
    sessions_: list[Session] = cut["sessions"]

    # output longest, line 116
    longest: timedelta | None = (
        None
        if len(cut["sessions"]) == 0
        else largest(session["end"] - session["begin"] for session in cut["sessions"])
    )

    # output entry_pages, line 119
    entry_pages: dict[str, int] = counted_by(
        lambda session: array_at(session["pages"], 0), cut["sessions"]
    )

    # output bounces, line 121
    bounces = shape["bounces"]

    # output mean_pages, line 122
    mean_pages: Decimal | None = shape["mean"]

    # output busiest, line 123
    busiest: int | None = None if shape["busiest"] is None else shape["busiest"]["key"]

    # postcondition, line 44: FORALL session IN sessions SATISFIES session.begin <= session.end AND
    #   length(session.pages) > 0
    for session in sessions_:
        if not (session["begin"] <= session["end"] and len(session["pages"]) > 0):
            raise ContractBroken("postcondition", 0, {"sessions": sessions_})

    # postcondition, line 45: SUM(length(session.pages) FOR session IN sessions) <= length(visits)
    if not checked_sum(len(session["pages"]) for session in sessions_) <= len(visits):
        raise ContractBroken("postcondition", 1, {"sessions": sessions_, "visits": visits})

    # postcondition, line 46: bounces <= length(sessions)
    if not bounces <= len(sessions_):
        raise ContractBroken("postcondition", 2, {"bounces": bounces, "sessions": sessions_})

    # postcondition, line 47: length(pages) <= top
    if not len(pages) <= top:
        raise ContractBroken("postcondition", 3, {"pages": pages, "top": top})

    return {
        "sessions": sessions_,
        "longest": longest,
        "total": total,
        "pages": pages,
        "entry_pages": entry_pages,
        "people": people,
        "bounces": bounces,
        "mean_pages": mean_pages,
        "busiest": busiest,
    }


INPUTS: Final = Inputs(
    {
        "visits": "array<{user: string, at: timestamp, page: string}>",
        "gap": "duration",
        "ignored": "set<string>",
        "names": "map<string, string>",
        "top": "integer",
    },
    {"gap": timedelta(seconds=1800), "ignored": frozenset({"/health"}), "top": 3},
)
RUN: Final = undecorated(session_windows_v1)


def read_visit(given: Any) -> Visit:
    """What is a Visit already, field by field."""
    if type(given) is not dict:
        raise NotPlain
    for name in given:
        if type(name) is not str:
            raise NotPlain
    if len(given) != 3:
        raise NotPlain
    user = given["user"]
    if type(user) is not str or not (is_ascii(user) or is_text(user)) or len(user) > MAX_TEXT:
        raise NotPlain
    at = given["at"]
    page = given["page"]
    if type(page) is not str or not (is_ascii(page) or is_text(page)) or len(page) > MAX_TEXT:
        raise NotPlain
    return {"user": user, "at": read_value("timestamp", at), "page": page}


@exact_entry
def call(inputs: dict[str, Any], *, now: datetime) -> Success:
    """The same for a caller's own objects: each is checked and made a value first."""
    try:
        if type(inputs) is not dict:
            raise NotPlain
        for name in inputs:
            if type(name) is not str:
                raise NotPlain
        if len(inputs) != 2 + ("gap" in inputs) + ("ignored" in inputs) + ("top" in inputs):
            raise NotPlain
        visits = inputs["visits"]
        if type(visits) is not list or len(visits) > MAX_ENTRIES:
            raise NotPlain
        visits = [read_visit(item) for item in visits]
        gap = inputs["gap"] if "gap" in inputs else timedelta(seconds=1800)
        gap = read_value("duration", gap)
        ignored = inputs["ignored"] if "ignored" in inputs else frozenset({"/health"})
        ignored = read_value("set<string>", ignored)
        names = inputs["names"]
        names = read_value("map<string, string>", names)
        top = inputs["top"] if "top" in inputs else 3
        if type(top) is not int or top < MIN_INTEGER or top > MAX_INTEGER:
            raise NotPlain
    except NOT_PLAIN:
        visits, gap, ignored, names, top = read_inputs(INPUTS, inputs)
    return new_objects(RUN(visits=visits, gap=gap, ignored=ignored, names=names, top=top, now=now))


SOURCE: Final = Source(
    "nodes/logs/session_windows_v1.vsp",
    lines={
        131: 11, 135: 26, 139: 26, 142: 42, 143: 42, 167: 71, 169: 71, 174: 71, 178: 72, 187: 75,
        191: 84, 200: 79, 212: 94, 221: 101, 223: 101, 233: 110, 247: 116, 252: 119, 268: 44,
        271: 45, 272: 45, 276: 46, 280: 47,
    },
    clauses={
        "constraint": [
            "length(user) > 0",
            "top >= 1",
            "top <= 50",
        ],
        "precondition": [
            "gap > seconds(0) AND gap <= days(1)",
        ],
        "postcondition": [
            "FORALL session IN sessions SATISFIES session.begin <= session.end AND length(session.pages) > 0",
            "SUM(length(session.pages) FOR session IN sessions) <= length(visits)",
            "bounces <= length(sessions)",
            "length(pages) <= top",
        ],
    },
)  # fmt: skip
