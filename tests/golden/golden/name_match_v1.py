# AUTO-GENERATED - DO NOT EDIT
# name_match_v1, from nodes/text/name_match_v1.vsp
# semantic hash dd515f5d0e3237b53e444fa09d872e73418ea4c707bac33d36d58190709eb544
"""Say how well two names agree, whatever their case, order, spacing and punctuation."""

from decimal import Decimal
from typing import Any, Final, Literal, TypedDict

from vesper.kernels.array import sort as array_sort
from vesper.kernels.decimal import (
    exact_decimals,
    exact_entry,
    round as decimal_round,
    text as decimal_text,
)
from vesper.kernels.enum import text as enum_text
from vesper.kernels.integer import checked_sum, divide as integer_divide
from vesper.kernels.raised import ContractBroken
from vesper.kernels.regex import replace as regex_replace
from vesper.kernels.runtime.entry import (
    MAX_TEXT,
    NOT_PLAIN,
    Inputs,
    NotPlain,
    is_ascii,
    is_text,
    read_inputs,
    undecorated,
)
from vesper.kernels.runtime.source import Source
from vesper.kernels.set import intersection as set_intersection, union as set_union
from vesper.kernels.text import (
    at as text_at,
    code_points as text_code_points,
    concat as text_concat,
    contains as text_contains,
    join as text_join,
    lower as text_lower,
    pad_end as text_pad_end,
    pad_start as text_pad_start,
    reverse as text_reverse,
    trim as text_trim,
    trim_end as text_trim_end,
    trim_start as text_trim_start,
    upper as text_upper,
    words as text_words,
)

D_0: Final = Decimal("0")
D_0_5: Final = Decimal("0.5")
D_1_00: Final = Decimal("1.00")
D_1: Final = Decimal("1")


class Success(TypedDict):
    verdict: Literal["same", "same_words", "initials", "close", "different"]
    score: Decimal
    initials: str
    common: frozenset[str]
    is_mirror: bool
    label: str
    after: bool


PARTICLES: Final[frozenset[str]] = frozenset(
    {"de", "der", "dr", "la", "mr", "mrs", "prof", "van", "von"}
)


@exact_decimals
def name_match_v1(left: str, right: str) -> Success:
    """Say how well two names agree, whatever their case, order, spacing and punctuation."""

    # constraint, line 6: length(left) <= 200
    if not len(left) <= 200:
        raise ContractBroken("constraint", 0, {"left": left})

    # constraint, line 7: length(right) <= 200
    if not len(right) <= 200:
        raise ContractBroken("constraint", 1, {"right": right})

    # precondition, line 24: trim(left) != '' AND trim(right) != ''
    if not (text_trim(left) != "" and text_trim(right) != ""):
        raise ContractBroken("precondition", 0, {"left": left, "right": right})

    # step left_text, line 34
    left_text = regex_replace(text_lower(text_upper(left)), "[\\p{P}\\p{S}]+", " ")

    # step right_text, line 35
    right_text = regex_replace(text_lower(text_upper(right)), "[\\p{P}\\p{S}]+", " ")

    # step left_words, line 36
    left_words = [word for word in text_words(left_text) if word not in PARTICLES]

    # step right_words, line 37
    right_words = [word for word in text_words(right_text) if word not in PARTICLES]

    # step left_set, line 38
    left_set = frozenset(left_words)

    # step right_set, line 39
    right_set = frozenset(right_words)

    # step common, line 40
    common = set_intersection(left_set, right_set)

    # step all, line 41
    all_ = set_union(left_set, right_set)

    # step left_first, line 42
    left_first = text_join([text_at(word, 0) for word in array_sort(left_words, "ascending")], "")

    # step right_first, line 43
    right_first = text_join([text_at(word, 0) for word in array_sort(right_words, "ascending")], "")

    # step left_code, line 44
    left_code = checked_sum(text_code_points(text_join(left_words, "")))

    # step right_code, line 45
    right_code = checked_sum(text_code_points(text_join(right_words, "")))

    # step is_same, line 46
    is_same = text_join(left_words, " ") == text_join(right_words, " ")

    # step is_anagram, line 47
    is_anagram = text_join(array_sort(left_words, "ascending"), " ") == text_join(
        array_sort(right_words, "ascending"), " "
    )

    # step score, line 48
    score = (
        D_1_00
        if is_same or len(all_) == 0
        else decimal_round(integer_divide(len(common), len(all_)), 2, "half_up")
    )

    # step verdict, line 50
    verdict: Literal["same", "same_words", "initials", "close", "different"]
    if is_same:
        verdict = "same"
    elif is_anagram and left_code == right_code and score == D_1:
        verdict = "same_words"
    elif left_first == right_first and len(common) > 0:
        verdict = "initials"
    elif (
        score >= D_0_5
        or text_contains(left_text, text_trim(right_text))
        or text_contains(right_text, text_trim(left_text))
    ):
        verdict = "close"
    else:
        verdict = "different"

    # output initials, line 63
    initials = text_upper(left_first)

    # output is_mirror, line 65
    is_mirror = text_trim_start(text_trim_end(left_text)) == text_reverse(text_trim(right_text))

    # output label, line 66
    label = text_concat(
        text_pad_end(enum_text(verdict), 12, "."), text_pad_start(decimal_text(score), 12, " ")
    )

    # output after, line 67
    after = left_text > right_text or (left_text >= right_text and left > right)

    # postcondition, line 26: score >= 0 AND score <= 1
    if not (score >= D_0 and score <= D_1):
        raise ContractBroken("postcondition", 0, {"score": score})

    # postcondition, line 27: verdict == same OR verdict == same_words => score == 1
    if not (not (verdict == "same" or verdict == "same_words") or score == D_1):
        raise ContractBroken("postcondition", 1, {"verdict": verdict, "score": score})

    # postcondition, line 28: length(label) >= 24
    if not len(label) >= 24:
        raise ContractBroken("postcondition", 2, {"label": label})

    return {
        "verdict": verdict,
        "score": score,
        "initials": initials,
        "common": common,
        "is_mirror": is_mirror,
        "label": label,
        "after": after,
    }


INPUTS: Final = Inputs({"left": "string", "right": "string"}, {})
RUN: Final = undecorated(name_match_v1)


@exact_entry
def call(inputs: dict[str, Any]) -> Success:
    """The same for a caller's own objects: each is checked and made a value first."""
    try:
        if type(inputs) is not dict:
            raise NotPlain
        for name in inputs:
            if type(name) is not str:
                raise NotPlain
        if len(inputs) != 2:
            raise NotPlain
        left = inputs["left"]
        if type(left) is not str or not (is_ascii(left) or is_text(left)) or len(left) > MAX_TEXT:
            raise NotPlain
        right = inputs["right"]
        if (
            type(right) is not str
            or not (is_ascii(right) or is_text(right))
            or len(right) > MAX_TEXT
        ):
            raise NotPlain
    except NOT_PLAIN:
        left, right = read_inputs(INPUTS, inputs)
    return RUN(left, right)


SOURCE: Final = Source(
    "nodes/text/name_match_v1.vsp",
    lines={
        76: 6, 80: 7, 84: 24, 87: 34, 90: 35, 93: 36, 96: 37, 108: 41, 111: 42, 114: 43, 117: 44,
        120: 45, 123: 46, 126: 47, 134: 48, 155: 63, 161: 66, 162: 66, 170: 26, 174: 27, 178: 28,
    },
    clauses={
        "constraint": [
            "length(left) <= 200",
            "length(right) <= 200",
        ],
        "precondition": [
            "trim(left) != '' AND trim(right) != ''",
        ],
        "postcondition": [
            "score >= 0 AND score <= 1",
            "verdict == same OR verdict == same_words => score == 1",
            "length(label) >= 24",
        ],
    },
)  # fmt: skip
