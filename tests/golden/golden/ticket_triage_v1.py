# AUTO-GENERATED - DO NOT EDIT
# ticket_triage_v1, from nodes/support/ticket_triage_v1.vsp
# semantic hash fedf0f516a0f1b4788e9faf2ff02e252411195f768febb977a8eb141ce3657f2
"""Ask a language model where a ticket belongs, believe it only as far as it can be checked, and
fall back to a queue."""

from datetime import datetime
from typing import Any, Final, Literal, TypedDict

from vesper.kernels.array import take as array_take
from vesper.kernels.json import (
    Json,
    cast as json_cast,
    from_value as json_from_value,
    parse as json_parse,
)
from vesper.kernels.raised import ContractBroken, DeclaredError
from vesper.kernels.runtime.entry import Inputs, read_inputs
from vesper.kernels.runtime.flow import FAILURES, Asking, Request, code_of, exact_steps
from vesper.kernels.runtime.source import Source
from vesper.kernels.text import (
    concat as text_concat,
    join as text_join,
    slice as text_slice,
    trim as text_trim,
)
from vesper.kernels.value import min as value_min


class Triage(TypedDict):
    queue: Literal["billing", "shipping", "technical", "other"]
    urgency: int
    summary: str
    tags: list[str]


class Success(TypedDict):
    queue: Literal["billing", "shipping", "technical", "other"]
    urgency: int
    summary: str
    by: Literal["model", "fallback"]
    tags: list[str]


PROMPT: Final[str] = "Answer with JSON: queue, urgency (0 to 9), summary, tags."
ALLOWED: Final[frozenset[str]] = frozenset(
    {"crash", "damage", "delay", "invoice", "login", "refund"}
)
LONGEST: Final[int] = 2000


@exact_steps
def ticket_triage_v1(
    ticket_id: str,
    subject: str,
    text: str,
    plan: Literal["free", "paid"] = "free",
    *,
    now: datetime,
) -> Asking[Success]:
    """Ask a language model where a ticket belongs, believe it only as far as it can be checked, and
    fall back to a queue."""

    # constraint, line 16: length(ticket_id) > 0
    if not len(ticket_id) > 0:
        raise ContractBroken("constraint", 0, {"ticket_id": ticket_id})

    # constraint, line 16: length(ticket_id) <= 64
    if not len(ticket_id) <= 64:
        raise ContractBroken("constraint", 1, {"ticket_id": ticket_id})

    # constraint, line 17: length(subject) <= 200
    if not len(subject) <= 200:
        raise ContractBroken("constraint", 2, {"subject": subject})

    # constraint, line 18: length(text) > 0
    if not len(text) > 0:
        raise ContractBroken("constraint", 3, {"text": text})

    # step untouched, line 44
    try:
        untouched: bool = yield Request(
            "untouched",
            "database_query",
            "read",
            {
                "database": "main",
                "sql": "SELECT triaged FROM tickets WHERE ticket_id = :ticket_id",
                "rows": "one",
            },
            {"bind": {"ticket_id": ticket_id}},
        )
    except FAILURES as failure:
        if code_of(failure) != "not_found":
            raise
        message = text_concat("there is no ticket ", ticket_id)

        raise DeclaredError({"error_code": "unknown_ticket", "message": message}) from failure

    # raise_1, line 53
    if untouched:
        message = text_join(["ticket ", ticket_id, " has its queue"], "")

        raise DeclaredError({"error_code": "already_triaged", "message": message})

    # step answer, line 57
    try:
        answer: Json = yield Request(
            "answer",
            "custom",
            "keyed",
            {"name": "language_model"},
            key=text_concat("triage ", ticket_id),
            arguments={
                "request": {
                    "system": PROMPT,
                    "user": text_concat(
                        text_concat(subject, " | "),
                        text_slice(text, 0, value_min(len(text), LONGEST)),
                    ),
                    "most_tokens": 300,
                }
            },
        )
    except FAILURES as failure:
        if code_of(failure) not in ("effect_failed", "timeout", "unavailable", "bad_response"):
            raise
        answer = json_parse("{}")

    # step read, line 72
    try:
        read: Triage = json_cast(
            answer,
            "{queue: enum[billing, shipping, technical, other], urgency: integer, summary: string, tags: array<string>}",
        )
    except FAILURES as failure:
        if code_of(failure) != "bad_cast":
            raise
        read = Triage(queue="other", urgency=0, summary="", tags=[])

    # step is_believed, line 79
    is_believed = (
        len(text_trim(read["summary"])) > 0 and read["urgency"] >= 0 and read["urgency"] <= 9
    )

    # step judged, line 83
    judged: Triage
    if is_believed:
        # step kept_tags, line 88
        kept_tags = array_take([tag for tag in read["tags"] if tag in ALLOWED], 3)
        judged = Triage(
            queue=read["queue"],
            urgency=read["urgency"],
            summary=text_slice(read["summary"], 0, value_min(len(read["summary"]), 200)),
            tags=kept_tags,
        )
    else:
        # step note, line 97
        try:
            note: str = yield Request(
                "note",
                "event_publish",
                "unsafe",
                {"topic": "support.fallback"},
                {
                    "payload": json_from_value(
                        {"ticket": ticket_id, "said": answer}, "{ticket: string, said: json}"
                    )
                },
            )
        except FAILURES:
            note = ""
        judged = Triage(
            queue="other",
            urgency=5 if plan == "paid" else 2,
            summary=text_slice(subject, 0, value_min(len(subject), 200)),
            tags=[],
        )

    # step keep, line 105
    yield Request(
        "keep",
        "database_write",
        "probe",
        {
            "database": "main",
            "sql": "UPDATE tickets SET queue = :set_queue, urgency = :set_urgency, triaged = :set_triaged WHERE ticket_id = :ticket_id",
        },
        {
            "bind": {
                "ticket_id": ticket_id,
                "set_queue": judged["queue"],
                "set_urgency": judged["urgency"],
                "set_triaged": True,
            }
        },
    )

    # output queue, line 115
    queue: Literal["billing", "shipping", "technical", "other"] = judged["queue"]

    # output urgency, line 116
    urgency = judged["urgency"]

    # output summary, line 117
    summary = judged["summary"]

    # output by, line 118
    by: Literal["model", "fallback"] = "model" if is_believed else "fallback"

    # output tags, line 119
    tags: list[str] = judged["tags"]

    # postcondition, line 39: urgency >= 0 AND urgency <= 9
    if not (urgency >= 0 and urgency <= 9):
        raise ContractBroken("postcondition", 0, {"urgency": urgency})

    # postcondition, line 40: length(summary) <= 200
    if not len(summary) <= 200:
        raise ContractBroken("postcondition", 1, {"summary": summary})

    # postcondition, line 41: FORALL tag IN tags SATISFIES tag IN allowed
    for tag in tags:
        if tag not in ALLOWED:
            raise ContractBroken("postcondition", 2, {"tags": tags})

    return {"queue": queue, "urgency": urgency, "summary": summary, "by": by, "tags": tags}


INPUTS: Final = Inputs(
    {"ticket_id": "string", "subject": "string", "text": "string", "plan": "enum[free, paid]"},
    {"plan": "free"},
)


def call(inputs: dict[str, Any], *, now: datetime) -> Asking[Success]:
    """The same for a caller's own objects: each is checked and made a value first."""
    ticket_id, subject, text, plan = read_inputs(INPUTS, inputs)
    return ticket_triage_v1(ticket_id, subject, text, plan, now=now)


SOURCE: Final = Source(
    "nodes/support/ticket_triage_v1.vsp",
    lines={
        66: 16, 70: 16, 74: 17, 78: 18, 82: 44, 96: 51, 98: 51, 102: 55, 104: 55, 108: 57, 113: 66,
        117: 62, 118: 62, 119: 62, 128: 70, 132: 74, 150: 93, 154: 94, 160: 97, 166: 100, 176: 103,
        181: 105, 216: 39, 220: 40, 225: 41,
    },
    clauses={
        "constraint": [
            "length(ticket_id) > 0",
            "length(ticket_id) <= 64",
            "length(subject) <= 200",
            "length(text) > 0",
        ],
        "postcondition": [
            "urgency >= 0 AND urgency <= 9",
            "length(summary) <= 200",
            "FORALL tag IN tags SATISFIES tag IN allowed",
        ],
    },
)  # fmt: skip
