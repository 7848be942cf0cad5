"""Documents that nobody meant: the repository's nodes, damaged on purpose.

A document is a pure function of a seed and a number, so a finding is two integers. Most are one to four small
mutations of a node; some are built to be as large, as long or as deep as the limits allow, and larger.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[3]
KEY = re.compile(rb"(?<![\w.])[a-z_]+(?=:)")
SCALAR = re.compile(rb"'[^'\n]*'|[\w.]+|[<>=!+*-]+")
MIB = 1024 * 1024
LARGE = 0.006
"""The share of documents that are built to be large."""

HOSTILE: tuple[bytes, ...] = (
    b"1e999999999", b"-1e-999999999", b"0e999999999", b"1e9999", b"9" * 1001, b"0." + b"0" * 1001, b"9" * 5000,
    b"-9223372036854775808", b"-9223372036854775809", b"9223372036854775808", b".", b".5", b"5.", b"+5", b"1_000",
    b"0x1F", b"0o17", b"1:30", b".inf", b".nan", b"-0", b"-0.0", b"00", b"1e3", b"NaN", b"Infinity", b"\x00", b"\x01",
    b"\x1b[31m", b"\x7f", b"\xc2\x80", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xed\xbf\xbf", b"\xf4\x90\x80\x80",
    b"\xc0\x80", b"\xef\xbb\xbf", b"\xef\xbf\xbe", b"\xef\xbf\xbd", b"\xe2\x80\xae", b"\xe2\x81\xa6abc\xe2\x81\xa9",
    b"\xe2\x80\x8b", b"\xe2\x80\xa8", b"\xe2\x80\xa9", b"\xc2\x85", b"\xc2\xa0", b"\xf0\x9f\x92\xb8", b"e\xcc\x81",
    b"\xef\xbc\x91\xef\xbc\x92", b"\xd9\xa1", b"x" * 64, b"x" * 65, b"x" * 5000, b"a_" * 40, b"_", b"__class__",
    b"input", b"output", b"input.amount", b"output.fee", b"true", b"false", b"null", b"~", b"", b"NO", b"yes",
    b"enum", b"set", b"old", b"breaks", b"IF", b"AND", b"FORALL x IN y: x", b"set<set<string>>", b"set<decimal>",
    b"enum[]", b"enum[a, a]", b"enum['\xe2\x80\xae', b]", b"set<" * 120 + b"string" + b">" * 120, b"&anchor x",
    b"*alias", b"!!python/object:os.system x", b"!tag x", b"<<", b"? x", b"- x", b"|", b">", b"|9", b">-\n",
    b"%YAML 9.9", b"---", b"...", b"@x", b"`x`", b"#x", b" #x", b"'", b'"', b"'it''s'", b'"\\ud800"', b'"\\x00"',
    b'"\\U00110000"', b'"\\U0001F4B8"', b'"\\q"', b'"a\\\n  b"', b'"\\u202e"', b'"tab\\there"', b"{", b"}", b"[",
    b"]", b"{}", b"[]", b"[[]]", b"{a: b}", b"[a, b]", b",", b":", b": ", b"a: b: c", b"amount + ", b"amount amount",
    b"amount > 0 > 1", b"(amount", b"amount)", b"1 / 0", b"amount ** 2", b"f(x)", b"a[0]", b"a.b.c", b"a => b",
    b"'open", b"amount == 'x", b"NOT amount", b"- - 5", b"amount IN amount", b"amount <> 0", b"x = 1", b"a && b",
    b"\t", b"\r", b"\r\n", b"{}{}", b"{0}", b"{key}", b"%s", b"\\", b"$(id)", b"../../etc/passwd",
)  # fmt: skip


def node_texts() -> list[bytes]:
    return [path.read_bytes() for path in sorted((ROOT / "nodes").rglob("*.vsp"))]


def document(seed: int, number: int, nodes: list[bytes]) -> bytes:
    """The document of this number."""
    source = random.Random(f"{seed}/{number}")
    data = source.choice(nodes)
    chance = source.random()
    if chance < LARGE:
        return source.choice(_LARGE)(source, data)
    if chance < 0.05:
        return source.choice(_DEEP)(source, data)
    if chance < 0.08:
        return _splice(source, data, source.choice(nodes))
    for _ in range(source.choice((1, 1, 1, 2, 2, 3, 4))):
        data = source.choice(_SMALL)(source, data)
    return data


# -- bytes ----------------------------------------------------------------------------------------


def _place(source: random.Random, data: bytes) -> int:
    return source.randrange(len(data) + 1)


def _flip_bit(source: random.Random, data: bytes) -> bytes:
    if not data:
        return data
    at = source.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << source.randrange(8))]) + data[at + 1 :]


def _replace_byte(source: random.Random, data: bytes) -> bytes:
    at = _place(source, data)
    return data[:at] + bytes([source.randrange(256)]) + data[at + 1 :]


def _insert_bytes(source: random.Random, data: bytes) -> bytes:
    at = _place(source, data)
    inserted = source.choice(
        (bytes([source.randrange(256)]), source.choice(HOSTILE), b" ", b"\n", b"\t", b":", b"'", b"- ")
    )
    return data[:at] + inserted + data[at:]


def _delete_bytes(source: random.Random, data: bytes) -> bytes:
    at = _place(source, data)
    return data[:at] + data[at + source.choice((1, 1, 1, 2, 5, 40)) :]


def _truncate(source: random.Random, data: bytes) -> bytes:
    return data[: _place(source, data)]


def _repeat_stretch(source: random.Random, data: bytes) -> bytes:
    first, last = sorted((_place(source, data), _place(source, data)))
    return data[:last] + data[first:last] * source.choice((1, 1, 2, 20)) + data[last:]


# -- lines ----------------------------------------------------------------------------------------


def _lines(data: bytes) -> list[bytes]:
    return data.split(b"\n")


def _line_edit(edit: Callable[[random.Random, list[bytes], int], None]) -> Callable[[random.Random, bytes], bytes]:
    def mutate(source: random.Random, data: bytes) -> bytes:
        lines = _lines(data)
        edit(source, lines, source.randrange(len(lines)))
        return b"\n".join(lines)

    return mutate


def _duplicate_line(source: random.Random, lines: list[bytes], at: int) -> None:
    lines.insert(source.randrange(len(lines)) if source.random() < 0.3 else at, lines[at])


def _delete_line(source: random.Random, lines: list[bytes], at: int) -> None:
    del lines[at]


def _swap_lines(source: random.Random, lines: list[bytes], at: int) -> None:
    other = source.randrange(len(lines))
    lines[at], lines[other] = lines[other], lines[at]


def _indent_line(source: random.Random, lines: list[bytes], at: int) -> None:
    body = lines[at].lstrip(b" ")
    width = len(lines[at]) - len(body) + source.choice((-4, -2, -1, 1, 2, 4, 40))
    lines[at] = source.choice((b" ", b" ", b" ", b"\t")) * max(0, width) + body


def _join_lines(source: random.Random, lines: list[bytes], at: int) -> None:
    if at + 1 < len(lines):
        lines[at : at + 2] = [lines[at] + source.choice((b"", b" ")) + lines[at + 1].lstrip()]


def _subtree(lines: list[bytes], at: int) -> slice:
    """A line and the deeper ones below it."""
    depth = len(lines[at]) - len(lines[at].lstrip(b" "))
    end = at + 1
    while end < len(lines) and (not lines[end].strip() or len(lines[end]) - len(lines[end].lstrip(b" ")) > depth):
        end += 1
    return slice(at, end)


def _delete_subtree(source: random.Random, lines: list[bytes], at: int) -> None:
    del lines[_subtree(lines, at)]


def _duplicate_subtree(source: random.Random, lines: list[bytes], at: int) -> None:
    part = lines[_subtree(lines, at)]
    target = source.randrange(len(lines) + 1)
    lines[target:target] = part * source.choice((1, 1, 1, 3, 120))


def _move_subtree(source: random.Random, lines: list[bytes], at: int) -> None:
    where = _subtree(lines, at)
    part = lines[where]
    del lines[where]
    target = source.randrange(len(lines) + 1)
    shift = source.choice((0, 0, 2, 4))
    lines[target:target] = [b" " * shift + line for line in part]


def _swap_subtrees(source: random.Random, lines: list[bytes], at: int) -> None:
    first = _subtree(lines, at)
    if first.stop < len(lines):
        second = _subtree(lines, source.randrange(first.stop, len(lines)))
        lines[:] = (
            lines[: first.start]
            + lines[second]
            + lines[first.stop : second.start]
            + lines[first]
            + lines[second.stop :]
        )


def _change_line_ends(source: random.Random, data: bytes) -> bytes:
    return data.replace(b"\n", source.choice((b"\r\n", b"\r", b"\n\n", b"\xc2\x85", b"\xe2\x80\xa8")))


# -- words ----------------------------------------------------------------------------------------


def _replace_match(
    pattern: re.Pattern[bytes], source: random.Random, data: bytes, by: Callable[[bytes], bytes]
) -> bytes:
    found = list(pattern.finditer(data))
    if not found:
        return data
    match = source.choice(found)
    return data[: match.start()] + by(match[0]) + data[match.end() :]


def _hostile_scalar(source: random.Random, data: bytes) -> bytes:
    return _replace_match(SCALAR, source, data, lambda _: source.choice(HOSTILE))


def _hostile_value(source: random.Random, data: bytes) -> bytes:
    """The whole value of a `key: value` line."""
    return _replace_match(re.compile(rb"(?<=: )[^\n]+"), source, data, lambda _: source.choice(HOSTILE))


def _other_scalar(source: random.Random, data: bytes) -> bytes:
    words = SCALAR.findall(data) or [b"x"]
    return _replace_match(SCALAR, source, data, lambda _: source.choice(words))


def _near_miss(source: random.Random, word: bytes) -> bytes:
    at = source.randrange(len(word))
    return source.choice(
        (
            word[:at] + word[at + 1 :],
            word[:at] + word[at : at + 1] * 2 + word[at + 1 :],
            word[:at] + word[at + 1 : at + 2] + word[at : at + 1] + word[at + 2 :],
            word.upper(),
            word.capitalize(),
            word + b"s",
            word + b" ",
            b"_" + word,
            word.replace(b"_", b"-"),
            b"'" + word + b"'",
            word + b"\xe2\x80\x8b",
        )
    )


def _misspelt_key(source: random.Random, data: bytes) -> bytes:
    return _replace_match(KEY, source, data, lambda word: _near_miss(source, word))


def _misspelt_word(source: random.Random, data: bytes) -> bytes:
    return _replace_match(re.compile(rb"[A-Za-z_]+"), source, data, lambda word: _near_miss(source, word))


def _other_key(source: random.Random, data: bytes) -> bytes:
    keys = KEY.findall(data) or [b"x"]
    later = (b"metadata", b"types", b"guards", b"required", b"invariants", b"error", b"hit", b"compute")
    return _replace_match(KEY, source, data, lambda _: source.choice((*keys, *later)))


def _quote_value(source: random.Random, data: bytes) -> bytes:
    quote = source.choice((b"'", b'"'))
    return _replace_match(re.compile(rb"(?<=: )[^\n{\[>]+"), source, data, lambda text: quote + text + quote)


def _splice(source: random.Random, data: bytes, other: bytes) -> bytes:
    """The head of one node and the tail of another."""
    if source.random() < 0.3:
        return data[: _place(source, data)] + other[_place(source, other) :]
    head, tail = _lines(data), _lines(other)
    return b"\n".join(head[: source.randrange(len(head) + 1)] + tail[source.randrange(len(tail)) :])


_SMALL: tuple[Callable[[random.Random, bytes], bytes], ...] = (
    _flip_bit, _replace_byte, _insert_bytes, _delete_bytes, _truncate, _repeat_stretch, _change_line_ends,
    *map(_line_edit, (
        _duplicate_line, _delete_line, _swap_lines, _indent_line, _join_lines, _delete_subtree, _duplicate_subtree,
        _move_subtree, _swap_subtrees,
    )),
    _hostile_scalar, _hostile_scalar, _hostile_value, _hostile_value, _other_scalar, _other_scalar, _misspelt_key,
    _misspelt_word, _other_key, _quote_value,
)  # fmt: skip


# -- depth ----------------------------------------------------------------------------------------


def _in_place_of_a_value(source: random.Random, data: bytes, value: bytes) -> bytes:
    return _replace_match(re.compile(rb"(?<=: )[^\n]+"), source, data, lambda _: value)


def _depth(source: random.Random) -> int:
    return source.choice((5, 31, 32, 33, 50, 99, 100, 101, 200, 1000, 3000, 20000))


def _deep_flow(source: random.Random, data: bytes) -> bytes:
    start, end = source.choice(((b"[", b"]"), (b"{a: ", b"}"), (b"[{a: ", b"}]"), (b"[", b""), (b"{a: ", b"")))
    depth = _depth(source)
    return _in_place_of_a_value(source, data, start * depth + b"x" + end * depth)


def _deep_block(source: random.Random, data: bytes) -> bytes:
    depth = min(_depth(source), 1000)
    kind = source.choice((b"a:", b"-"))
    return data + b"\nmetadata:\n" + b"".join(b" " * (level + 1) + kind + b"\n" for level in range(depth))


def _deep_expression(source: random.Random, data: bytes) -> bytes:
    depth = _depth(source)
    start, end = source.choice(
        (
            (b"(", b")"),
            (b"NOT ", b""),
            (b"- ", b""),
            (b"1 + ", b""),
            (b"amount * (", b")"),
            (b"IF flagged THEN ", b" ELSE 0"),
            (b"IF ", b" THEN 1 ELSE 0"),
            (b"(", b""),
            (b"flagged AND ", b""),
            (b"amount == ", b""),
        )
    )
    quote = source.choice((b"", b'"', b"'", b">\n      "))
    end_quote = quote if len(quote) == 1 else b""
    return _in_place_of_a_value(source, data, quote + start * depth + b"amount" + end * depth + end_quote)


_DEEP = (_deep_flow, _deep_block, _deep_expression, _deep_expression)


# -- size -----------------------------------------------------------------------------------------


def _filled(head: bytes, unit: bytes, tail: bytes, size: int) -> bytes:
    """As many units as fit the size; `NNN` in a unit is its number."""
    parts, length, number = [head], len(head) + len(tail), 0
    while length < size:
        part = unit.replace(b"NNN", b"%d" % number)
        parts.append(part)
        length += len(part)
        number += 1
    return b"".join([*parts[:-1], tail])


def _size(source: random.Random) -> int:
    return source.choice((MIB // 128, MIB // 64, MIB // 32, MIB // 16, MIB // 16, MIB // 4, MIB))


def _ten_megabytes(source: random.Random, data: bytes) -> bytes:
    return data + source.choice((b"#", b" ", b"\n", b"x", b"[", b"\x00", b"- a\n", b"'")) * (
        10 * MIB // source.choice((1, 4))
    )


def _long_value(source: random.Random, data: bytes) -> bytes:
    unit = source.choice(
        (
            b"x",
            b"9",
            b" + 1",
            b"(",
            b"'",
            b"=",
            b"a ",
            b"'a' ",
            b"amount ",
            b"\xf0\x9f\x92\xb8",
            b"\xe2\x80\xae",
            b"\n  ",
            b". ",
        )
    )
    quote = source.choice((b"", b"", b'"', b">\n      "))
    value = quote + b"amount" + unit * (_size(source) // len(unit)) + (quote if len(quote) == 1 else b"")
    return _in_place_of_a_value(source, data, value)[: MIB if source.random() < 0.8 else None]


def _many_entries(source: random.Random, data: bytes) -> bytes:
    """As many declarations, clauses, members, rows, steps or cases as a file holds."""
    key, unit = source.choice(
        (
            (b"inputs:\n", b"  xNNN: decimal\n"),
            (b"inputs:\n", b"  amount: decimal\n"),
            (b"inputs:\n", b"  xNNN: {type: integer, constraints: [{min: 0}, {max: 9}]}\n"),
            (b"inputs:\n", b"  aNNN: a\n"),
            (b"constants:\n", b"  xNNN: {type: decimal, value: NNN}\n"),
            (b"  preconditions:\n", b"    - amount > NNN\n"),
            (b"  preconditions:\n", b"    - ammount > NNN\n"),
            (b"  preconditions:\n", b"    - x\n"),
            (b"  preconditions:\n", b"    - =\n"),
            (b"flow:\n", b"  - {step: xNNN, operation: compute, value: amount + NNN}\n"),
            (b"flow:\n", b"  - {step: x, operation: computed, value: amont}\n"),
            (b"flow:\n", b"  -\n"),
            (b"    rows:\n", b"      - {when: amount <= NNN, then: NNN}\n"),
            (b"  test_cases:\n", b"    - {name: nNNN, inputs: {amount: NNN}, expect: {fee: 1}}\n"),
            (b"  test_cases:\n", b"    - {name: nNNN, inputs: {}, expect: {breaks: amont > 0}}\n"),
            (b"", b"xNNN: 1\n"),
            (b"", b"{}, "),
        )
    )
    head, found, tail = data.partition(key) if key else (data, b"", b"")
    return _filled(head + found, unit, tail, _size(source))


def _many_members(source: random.Random, data: bytes) -> bytes:
    size = _size(source)
    separator = source.choice((b",", b", "))
    unit = source.choice((b"mNNN", b"a", b"{}", b"[]", b"a: b"))
    start, end = source.choice(((b"[", b"]"), (b"{", b"}"), (b"enum[", b"]"), (b"{type: set<string>, value: [", b"]}")))
    value = _filled(start, unit + separator, unit + end, size - len(data))
    return _in_place_of_a_value(source, data, value)


def _wide_enum(source: random.Random, data: bytes) -> bytes:
    """An enum of many members, and many clauses that mention one: a type is written wherever it is used."""
    count = source.choice((10, 200, 1000, 4000, 5000))
    data = data.replace(b"enum[USD, EUR, GBP]", b"enum[USD, " + b", ".join(b"m%d" % n for n in range(count)) + b"]")
    head, found, tail = data.partition(b"  preconditions:\n")
    clauses = b"".join(
        b"    - currency == m%d\n" % source.randrange(count) for _ in range(source.choice((5, 500, 2000)))
    )
    return head + found + clauses + tail


def _many_small_clauses(source: random.Random, data: bytes) -> bytes:
    """As many expressions as the limits let through."""
    clause = source.choice(
        (
            b"    - flagged\n",
            b"    - 1<2\n",
            b"    - 1<2 OR 3<4\n",
            b"    - amount>0 AND fee<1\n",
            b"    - country IN high_risk\n",
        )
    )
    clauses = clause * source.choice((1000, 3000, 4000, 5000))
    return data.replace(b"  preconditions:\n", b"  preconditions:\n" + clauses).replace(
        b"  postconditions:\n", b"  postconditions:\n" + source.choice((b"", clauses))
    )


_LARGE = (
    _ten_megabytes, _long_value, _long_value, _many_entries, _many_entries, _many_entries, _many_members, _many_members,
    _wide_enum, _many_small_clauses,
)  # fmt: skip
