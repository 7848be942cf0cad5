# AUTO-GENERATED - DO NOT EDIT
# log_redaction_v1, from nodes/logs/log_redaction_v1.vsp
# semantic hash 5378b1546fefb1b2a822cb5786cb3e1fa475f63f06130d562ea71beae2f0cc2a
"""Take card numbers, e-mail addresses and tokens out of a log line, and count what was found."""

from typing import Any, Final, Literal, TypedDict

from vesper.kernels.decimal import exact_decimals, exact_entry
from vesper.kernels.map import entries_of
from vesper.kernels.raised import ContractBroken
from vesper.kernels.regex import (
    find as regex_find,
    find_all as regex_find_all,
    matches as regex_matches,
    replace as regex_replace,
    split as regex_split,
)
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
from vesper.kernels.text import slice as text_slice


class Success(TypedDict):
    redacted: str
    found: dict[Literal["token", "email", "card"], int]
    is_clean: bool
    first_email: str | None
    card_tails: list[str]
    fields: list[str]


@exact_decimals
def log_redaction_v1(line: str, keep_tail: bool = False) -> Success:
    """Take card numbers, e-mail addresses and tokens out of a log line, and count what was
    found."""

    # constraint, line 6: length(line) <= 4000
    if not len(line) <= 4000:
        raise ContractBroken("constraint", 0, {"line": line})

    # step tokens, line 27
    tokens = regex_find_all(line, "(?i)\\b(bearer|token|api[_-]key)[ =:]+[a-z0-9._~+/-]{8,}=*")

    # step safe, line 28
    safe = regex_replace(
        line, "(?i)\\b(bearer|token|api[_-]key)[ =:]+[a-z0-9._~+/-]{8,}=*", "[token]"
    )

    # step emails, line 29
    emails = regex_find_all(
        safe, "[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(\\.[A-Za-z0-9-]+)*\\.[A-Za-z]{2,24}"
    )

    # step safer, line 30
    safer = regex_replace(
        safe, "[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(\\.[A-Za-z0-9-]+)*\\.[A-Za-z]{2,24}", "[email]"
    )

    # step cards, line 32
    cards = regex_find_all(safer, "\\b([0-9][ -]?){12,18}[0-9]\\b")

    # step safest, line 33
    safest = regex_replace(safer, "\\b([0-9][ -]?){12,18}[0-9]\\b", "[card]")

    # step digits, line 34
    digits = [regex_replace(card, "[ -]", "") for card in cards]

    # step card_tails, line 35
    card_tails = [
        text_slice(d, len(d) - 4, 9223372036854775807) if keep_tail else "****" for d in digits
    ]

    # step is_clean, line 36
    is_clean = len(tokens) == 0 and len(emails) == 0 and len(cards) == 0

    # output found, line 41
    found: dict[Literal["token", "email", "card"], int] = {
        "token": len(tokens),
        "email": len(emails),
        "card": len(cards),
    }

    # output first_email, line 43
    first_email: str | None = regex_find(
        safe, "[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(\\.[A-Za-z0-9-]+)*\\.[A-Za-z]{2,24}"
    )

    # output fields, line 45
    fields: list[str] = regex_split(safest, " *[|;] *")

    # postcondition, line 20: is_clean => redacted == line
    if not (not is_clean or safest == line):
        raise ContractBroken(
            "postcondition", 0, {"is_clean": is_clean, "redacted": safest, "line": line}
        )

    # postcondition, line 21: is_clean == (FORALL what, count IN found SATISFIES count == 0)
    if is_clean != all(count == 0 for what, count in entries_of(found)):
        raise ContractBroken("postcondition", 1, {"is_clean": is_clean, "found": found})

    # postcondition, line 22: NOT matches(redacted,
    #   '[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,24}')
    if regex_matches(safest, "[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(\\.[A-Za-z0-9-]+)*\\.[A-Za-z]{2,24}"):
        raise ContractBroken("postcondition", 2, {"redacted": safest})

    return {
        "redacted": safest,
        "found": found,
        "is_clean": is_clean,
        "first_email": first_email,
        "card_tails": card_tails,
        "fields": fields,
    }


INPUTS: Final = Inputs({"line": "string", "keep_tail": "boolean"}, {"keep_tail": False})
RUN: Final = undecorated(log_redaction_v1)


@exact_entry
def call(inputs: dict[str, Any]) -> Success:
    """The same for a caller's own objects: each is checked and made a value first."""
    try:
        if type(inputs) is not dict:
            raise NotPlain
        for name in inputs:
            if type(name) is not str:
                raise NotPlain
        if len(inputs) != 1 + ("keep_tail" in inputs):
            raise NotPlain
        line = inputs["line"]
        if type(line) is not str or not (is_ascii(line) or is_text(line)) or len(line) > MAX_TEXT:
            raise NotPlain
        keep_tail = inputs["keep_tail"] if "keep_tail" in inputs else False
        if type(keep_tail) is not bool:
            raise NotPlain
    except NOT_PLAIN:
        line, keep_tail = read_inputs(INPUTS, inputs)
    return new_objects(RUN(line, keep_tail))


SOURCE: Final = Source(
    "nodes/logs/log_redaction_v1.vsp",
    lines={
        49: 6, 52: 27, 55: 28, 60: 29, 65: 30, 70: 32, 73: 33, 76: 34, 80: 35, 99: 45, 103: 20,
        109: 21, 114: 22,
    },
    clauses={
        "constraint": [
            "length(line) <= 4000",
        ],
        "postcondition": [
            "is_clean => redacted == line",
            "is_clean == (FORALL what, count IN found SATISFIES count == 0)",
            "NOT matches(redacted, '[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(\\.[A-Za-z0-9-]+)*\\.[A-Za-z]{2,24}')",
        ],
    },
)  # fmt: skip
