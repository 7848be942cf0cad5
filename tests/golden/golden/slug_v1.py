# AUTO-GENERATED - DO NOT EDIT
# slug_v1, from nodes/text/slug_v1.vsp
# semantic hash a5e071a1d2c2f6fa4c77e6a8653c6d1b1e58f27ffbdbfd81461f188d91bf288d
"""Make the address of an article from its title, in plain letters, and keep it unique."""

from typing import Any, Final, TypedDict

from vesper.kernels.array import first as array_first, range as array_range
from vesper.kernels.decimal import exact_decimals, exact_entry
from vesper.kernels.integer import checked, text as integer_text
from vesper.kernels.map import get as map_get
from vesper.kernels.optional import require as optional_require
from vesper.kernels.raised import ContractBroken
from vesper.kernels.regex import matches as regex_matches, replace as regex_replace
from vesper.kernels.runtime.entry import (
    MAX_INTEGER,
    MAX_TEXT,
    MIN_INTEGER,
    NOT_PLAIN,
    Inputs,
    NotPlain,
    is_ascii,
    is_text,
    read_inputs,
    read_value,
    undecorated,
)
from vesper.kernels.runtime.source import Source
from vesper.kernels.text import (
    code_points as text_code_points,
    concat as text_concat,
    ends_with as text_ends_with,
    from_code_point as text_from_code_point,
    join as text_join,
    lower as text_lower,
    replace as text_replace,
    slice as text_slice,
    starts_with as text_starts_with,
    trim as text_trim,
    trim_end as text_trim_end,
    upper as text_upper,
    words as text_words,
)


class Success(TypedDict):
    slug: str
    is_new: bool
    was_cut: bool
    word_count: int
    shouted: bool


PLAIN: Final[dict[str, str]] = {
    "ß": "ss",
    "à": "a",
    "á": "a",
    "â": "a",
    "ã": "a",
    "ä": "ae",
    "å": "a",
    "æ": "ae",
    "ç": "c",
    "è": "e",
    "é": "e",
    "ê": "e",
    "ë": "e",
    "ì": "i",
    "í": "i",
    "î": "i",
    "ï": "i",
    "ñ": "n",
    "ò": "o",
    "ó": "o",
    "ô": "o",
    "õ": "o",
    "ö": "oe",
    "ø": "o",
    "ù": "u",
    "ú": "u",
    "û": "u",
    "ü": "ue",
    "ý": "y",
    "ÿ": "y",
    "č": "c",
    "ł": "l",
    "œ": "oe",
    "š": "s",
    "ž": "z",
}


@exact_decimals
def slug_v1(title: str, taken: frozenset[str], max_length: int = 60, prefix: str = "") -> Success:
    """Make the address of an article from its title, in plain letters, and keep it unique."""

    # constraint, line 6: length(title) <= 300
    if not len(title) <= 300:
        raise ContractBroken("constraint", 0, {"title": title})

    # constraint, line 8: max_length >= 8
    if not max_length >= 8:
        raise ContractBroken("constraint", 1, {"max_length": max_length})

    # constraint, line 8: max_length <= 200
    if not max_length <= 200:
        raise ContractBroken("constraint", 2, {"max_length": max_length})

    # constraint, line 9: matches(prefix, "^([a-z]+/)?$")
    if not regex_matches(prefix, "^([a-z]+/)?$"):
        raise ContractBroken("constraint", 3, {"prefix": prefix})

    # constraint, line 9: length(prefix) <= 20
    if not len(prefix) <= 20:
        raise ContractBroken("constraint", 4, {"prefix": prefix})

    # step letters, line 32
    letters = [
        text_from_code_point(number) for number in text_code_points(text_lower(text_trim(title)))
    ]

    # step spelled, line 33
    spelled = text_join(
        [
            letter if value is None else value
            for letter in letters
            for value in [map_get(PLAIN, letter)]
        ],
        "",
    )

    # step spoken, line 34
    spoken = text_replace(text_replace(spelled, "&", " and "), "@", " at ")

    # step bare, line 35
    bare = regex_replace(text_replace(spoken, "'", ""), "[^a-z0-9]+", " ")

    # step parts, line 36
    parts = text_words(bare)

    # step whole, line 37
    whole = text_join(parts, "-")

    # step cut, line 39
    cut = regex_replace(
        text_trim_end(text_replace(text_slice(whole, 0, max_length), "-", " ")), " ", "-"
    )

    # step base, line 40
    base = "untitled" if cut == "" else cut

    # step first_try, line 41
    first_try = text_concat(prefix, base)

    # step numbered, line 42
    numbered = [
        text_concat(text_concat(first_try, "-"), integer_text(i))
        for i in array_range(2, checked(len(taken) + 3), 1)
    ]

    # step slug, line 43
    slug = (
        first_try
        if first_try not in taken
        else optional_require(array_first([try_ for try_ in numbered if try_ not in taken]))
    )

    # output is_new, line 48
    is_new = slug == first_try

    # output was_cut, line 49
    was_cut = len(whole) > len(cut)

    # output word_count, line 50
    word_count = len(parts)

    # output shouted, line 51
    shouted = title == text_upper(title) and title != text_lower(title)

    # postcondition, line 24: slug NOT IN taken
    if slug in taken:
        raise ContractBroken("postcondition", 0, {"slug": slug, "taken": taken})

    # postcondition, line 25: starts_with(slug, prefix) AND NOT ends_with(slug, '-')
    if not (text_starts_with(slug, prefix) and not text_ends_with(slug, "-")):
        raise ContractBroken("postcondition", 1, {"slug": slug, "prefix": prefix})

    # postcondition, line 26: matches(slug, '^([a-z]+/)?[a-z0-9]+(-[a-z0-9]+)*$')
    if not regex_matches(slug, "^([a-z]+/)?[a-z0-9]+(-[a-z0-9]+)*$"):
        raise ContractBroken("postcondition", 2, {"slug": slug})

    return {
        "slug": slug,
        "is_new": is_new,
        "was_cut": was_cut,
        "word_count": word_count,
        "shouted": shouted,
    }


INPUTS: Final = Inputs(
    {"title": "string", "taken": "set<string>", "max_length": "integer", "prefix": "string"},
    {"max_length": 60, "prefix": ""},
)
RUN: Final = undecorated(slug_v1)


@exact_entry
def call(inputs: dict[str, Any]) -> Success:
    """The same for a caller's own objects: each is checked and made a value first."""
    try:
        if type(inputs) is not dict:
            raise NotPlain
        for name in inputs:
            if type(name) is not str:
                raise NotPlain
        if len(inputs) != 2 + ("max_length" in inputs) + ("prefix" in inputs):
            raise NotPlain
        title = inputs["title"]
        if (
            type(title) is not str
            or not (is_ascii(title) or is_text(title))
            or len(title) > MAX_TEXT
        ):
            raise NotPlain
        taken = inputs["taken"]
        taken = read_value("set<string>", taken)
        max_length = inputs["max_length"] if "max_length" in inputs else 60
        if type(max_length) is not int or max_length < MIN_INTEGER or max_length > MAX_INTEGER:
            raise NotPlain
        prefix = inputs["prefix"] if "prefix" in inputs else ""
        if (
            type(prefix) is not str
            or not (is_ascii(prefix) or is_text(prefix))
            or len(prefix) > MAX_TEXT
        ):
            raise NotPlain
    except NOT_PLAIN:
        title, taken, max_length, prefix = read_inputs(INPUTS, inputs)
    return RUN(title, taken, max_length, prefix)


SOURCE: Final = Source(
    "nodes/text/slug_v1.vsp",
    lines={
        99: 6, 103: 8, 107: 8, 111: 9, 115: 9, 119: 32, 123: 33, 133: 34, 136: 35, 139: 36, 142: 37,
        145: 39, 146: 39, 153: 41, 157: 42, 158: 42, 165: 43, 178: 51, 182: 24, 186: 25, 190: 26,
    },
    clauses={
        "constraint": [
            "length(title) <= 300",
            "max_length >= 8",
            "max_length <= 200",
            'matches(prefix, "^([a-z]+/)?$")',
            "length(prefix) <= 20",
        ],
        "postcondition": [
            "slug NOT IN taken",
            "starts_with(slug, prefix) AND NOT ends_with(slug, '-')",
            "matches(slug, '^([a-z]+/)?[a-z0-9]+(-[a-z0-9]+)*$')",
        ],
    },
)  # fmt: skip
