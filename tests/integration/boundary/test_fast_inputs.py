"""The fast reader of common inputs gives the same outcomes as the general reader.

A name of a `str` subclass selects the general reader; in JSON, a name with an escape does.
"""

from __future__ import annotations

import gc
import itertools
import json
import sys
import threading
import weakref
from decimal import Decimal
from typing import Any

import pytest

from tests.support.nodes import PAYMENT_DECISION, compiled, small_node
from vesper.engines.direct_engine import DirectEngine, DirectProgram
from vesper.engines.outcome import ContractBroken, Failed, Outcome, Returned

LINE_TYPE = "types:\n  Line:\n    fields: {qty: integer, price: decimal, note: optional<string>, tags: array<string>}"
PAYMENT = DirectEngine().load(compiled(PAYMENT_DECISION))
NAMES = """\
n: integer
d: decimal
b: boolean
t: string
e: enum[red, green]
f: float
o: optional<decimal>
xs: array<Line>"""
RETURN = "- operation: return\n  success: [n, d, b, t, e, f, o, xs]"
EVERYTHING = DirectEngine().load(
    small_node(NAMES.replace("b: boolean", "b: {type: boolean, default: true}"), RETURN, outputs=NAMES, rest=LINE_TYPE)
)
LINE = {"qty": 3, "price": Decimal("2.50"), "note": "ink", "tags": ["a", "ü", ""]}
GIVEN: dict[str, Any] = {
    "n": -7, "d": Decimal("-12.340"), "b": False, "t": "żółw", "e": "green", "f": -0.0, "o": Decimal(1),
    "xs": [LINE, {**LINE, "note": None, "qty": 2**62}],
}  # fmt: skip


class Name(str):
    __slots__ = ()


def long_way(program: DirectProgram, inputs: dict[str, Any]) -> Outcome:
    return program.call({Name(name): value for name, value in inputs.items()})


def shown(outcome: Outcome) -> str:
    return repr(outcome)


class Odd(int):
    pass


ODD: list[Any] = [
    None, True, 0, -1, 2**63 - 1, -(2**63), 2**63, 10**400, 1.5, float("nan"), float("-inf"), "", "1", " 1", "green",
    "blue", "\ud800", "x" * 100, Decimal("NaN"), Decimal("-0"), Decimal("1e5"), Decimal("1e-1001"), Decimal(10) ** 40,
    Decimal("1." + "0" * 37), Odd(4), b"x", [], (), [1], [None], (LINE,), [LINE, LINE], [{**LINE, "qty": True}],
    [{**LINE, "more": 1}], [{"qty": 1, "price": 1, "tags": []}], [{"price": 1, "qty": 1, "tags": (), "note": "n"}],
    [{Name("qty"): 1, "price": 1, "tags": []}], [{"qty": 1, "price": 1}], [{"qty": 1, 2: 3}], {}, {"x": 1}, {"x": "no"},
    {1: 2}, {3, 4}, frozenset(), {"4"}, object(), "2026-02-30", float("1e300"),
]  # fmt: skip


@pytest.mark.parametrize("name", list(GIVEN))
def test_whatever_is_given_for_one_input_comes_to_the_same(name: str) -> None:
    for odd in ODD:
        given = {**GIVEN, name: odd}
        assert shown(EVERYTHING.call(given)) == shown(long_way(EVERYTHING, given)), odd


def test_the_usual_is_taken_whatever_the_order_and_the_strings_of_the_names() -> None:
    expected = EVERYTHING.call(GIVEN)
    assert isinstance(expected, Returned)
    assert repr(expected.value["d"]) == "Decimal('-12.340')"
    for turned in range(len(GIVEN)):
        names = list(GIVEN)[turned:] + list(GIVEN)[:turned]
        assert EVERYTHING.call({name: GIVEN[name] for name in names}) == expected
        # Different objects from the interned strings.
        assert EVERYTHING.call({"".join(list(name)): GIVEN[name] for name in names}) == expected


def test_what_is_not_given_comes_to_the_same() -> None:
    for left_out in [*itertools.combinations(GIVEN, 1), *itertools.combinations(GIVEN, 2)]:
        given = {name: value for name, value in GIVEN.items() if name not in left_out}
        assert shown(EVERYTHING.call(given)) == shown(long_way(EVERYTHING, given)), left_out
    assert shown(EVERYTHING.call({**GIVEN, "more": 1})) == shown(long_way(EVERYTHING, {**GIVEN, "more": 1}))
    assert shown(EVERYTHING.call({})) == shown(long_way(EVERYTHING, {}))


def test_a_run_sees_nothing_of_the_one_before() -> None:
    good = {"amount": Decimal(50), "balance": Decimal(100), "currency": "USD", "country": "DE", "user_age_days": 400}
    changes: list[dict[str, Any]] = [{}, {"amount": Decimal(0)}, {"amount": "x"}, {"country": "DEU"}, {"flagged": True}]
    given = [{**good, **change} for change in changes]
    apart = [DirectEngine().load(compiled(PAYMENT_DECISION)).call(each) for each in given]
    assert [type(each) for each in apart] == [Returned, ContractBroken, Failed, ContractBroken, Returned]
    for one, other in itertools.product(range(len(given)), repeat=2):
        assert (PAYMENT.call(given[one]), PAYMENT.call(given[other])) == (apart[one], apart[other])


def test_nothing_of_the_caller_is_held_after_a_call() -> None:
    class Held(dict[str, Any]):
        pass

    line = Held(LINE)
    given = {**GIVEN, "xs": [line]}
    before = [sys.getrefcount(each) for each in given.values()]
    assert isinstance(EVERYTHING.call(given), Returned)
    assert before == [sys.getrefcount(each) for each in given.values()]
    seen = weakref.ref(line)
    del line, given
    gc.collect()
    assert seen() is None


def test_a_call_from_another_thread_finds_the_room_taken() -> None:
    """A long run releases the lock while it holds the frame; short runs allocate their own frames."""
    node = DirectEngine().load(
        small_node(
            "n: integer",
            "- operation: return\n  success: {result: 'SUM(i FOR i IN range(0, n))'}",
            outputs="result: integer",
        )
    )
    answers: list[Outcome] = []
    runner = threading.Thread(target=lambda: answers.append(node.call({"n": 300_000})))
    runner.start()
    while runner.is_alive():
        assert node.call({"n": 5}) == Returned({"result": 10})
    runner.join()
    assert answers == [Returned({"result": 300_000 * 299_999 // 2})]


# -- JSON text ------------------------------------------------------------------------------------

TEXT = {
    "n": "-7", "d": "-12.340", "b": "false", "t": '"żółw"', "e": '"green"', "f": "-0.0", "o": "null",
    "xs": '[{"qty":3,"price":"2.50","note":null,"tags":["a",""]}, { "price" : 1.0 , "tags" : [] , "qty" : 0 } ]',
    "day": '"2026-11-15"',
}  # fmt: skip
ODD_TEXT = [
    "null", "true", "tru", "0", "-0", "00", "01", "1.", ".5", "-", "+1", "1e2", "1E-2", "0.10", "-0.00", "9" * 18,
    "9" * 19, "-" + "9" * 18, "9" * 40, "1" * 10 + "." + "1" * 9, "1.5", '"0.10"', '"01"', '"+1"', '"1e3"', '".5"',
    '""', '"x"', '"green"', '"blue"', '"\\u0067reen"', '"\t"', '"\\""', '"żółw"', '"open', "[]", "[ ]", "[1,]",
    "[null]", '["a"]', '[{"qty":1}]', '[{"qty":1,"qty":1,"price":1,"tags":[]}]',
    '[{"qty":1,"price":1,"tags":[],"more":1}]', '[{"qty":1.0,"price":1,"tags":[]}]',
    '[{"qty":1,"price":1,"tags":[]}', "{}", '"2026-02-30"', '"inf"', "1 1",
]  # fmt: skip


@pytest.fixture(scope="module")
def texts() -> DirectProgram:
    names = f"{NAMES}\nday: date"
    return DirectEngine().load(
        small_node(names, RETURN.replace("]", ", day]"), outputs=names, rest=LINE_TYPE),
    )


def written(entries: dict[str, str], escaped: bool = False) -> bytes:
    keys = [f"\\u{ord(name[0]):04x}{name[1:]}" if escaped else name for name in entries]
    inside = ", ".join(f'"{key}": {value}' for key, value in zip(keys, entries.values(), strict=True))
    return f"{{{inside}}}".encode()


@pytest.mark.parametrize("name", list(TEXT))
def test_whatever_a_text_has_for_one_input_comes_to_the_same(texts: DirectProgram, name: str) -> None:
    for odd in ODD_TEXT:
        entries = {**TEXT, name: odd}
        assert texts.run_json(written(entries)) == texts.run_json(written(entries, escaped=True)), odd


def test_a_text_is_answered_as_objects_are(texts: DirectProgram) -> None:
    answer = texts.run_json(written(TEXT))
    assert answer == texts.run_json(written(dict(reversed(TEXT.items()))))
    value = json.loads(answer)["value"]
    assert (value["n"], value["d"], value["t"], value["xs"][1]["price"]) == (-7, "-12.340", "żółw", "1.0")
    for space in (b"", b" ", b"\n\t\r "):
        assert texts.run_json(space + written(TEXT) + space) == answer
    for behind in (b"x", b"}", b",", b"\x00"):
        assert json.loads(texts.run_json(written(TEXT) + behind))["code"] == "bad_input"


NUMBERS = [
    "0", "-1", "0.01", "-0.1", "1234.5", "0.000000000000000001", "-99999999999999999.9", "18446744073709551615",
    "18446744073709551616.5", "0.0000000000000000001",
]  # fmt: skip


@pytest.mark.parametrize("number", NUMBERS)
def test_numbers_are_written_as_they_are_read(texts: DirectProgram, number: str) -> None:
    answer = texts.run_json(written({**TEXT, "d": f'"{number}"'}))
    assert json.loads(answer)["value"]["d"] == number
