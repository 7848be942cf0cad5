"""Machine code without a frame gives the same outcomes as the ordinary entry.

A name of a `str` subclass selects the ordinary entry; in JSON, a name with an escape does.
"""

from __future__ import annotations

import gc
import itertools
import json
import sys
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from tests.support.nodes import PAYMENT_DECISION, compiled, small_node, worked_nodes, written_for_tests
from vesper.compiler import Compiled
from vesper.engines.direct_engine import DirectEngine, DirectProgram
from vesper.engines.outcome import ContractBroken, Failed, Outcome, Returned
from vesper.engines.python_engine import PythonEngine
from vesper.engines.tiering import ALWAYS

ENGINE = DirectEngine(ALWAYS)
LINE_TYPE = (
    "types:\n  Line:\n    fields: {qty: integer, more: integer, price: decimal, tag: string, kind: 'enum[a, b]'}"
)
FORMS = "n: integer\nd: decimal\nb: boolean\nt: string\ne: enum[red, green, blue]\nf: float"
DEFAULTS = """\
n: {type: integer, default: -5}
d: {type: decimal, default: -1.50}
b: {type: boolean, default: false}
t: {type: string, default: none}
e: {type: "enum[red, green, blue]", default: blue}
f: {type: float, default: 0.5}
xs: array<Line>"""
FLOW = """\
- operation: compute
  compute:
    quantity: SUM(x.qty * 3 + x.more FOR x IN xs)
    worth: SUM(x.price * x.qty FOR x IN xs)
    tagged: SUM((IF x.tag == 'ü' THEN 10 ELSE 1) + (IF x.kind == 'b' THEN 100 ELSE 0) FOR x IN xs)
- operation: return
  success: [n, d, b, t, e, f, quantity, worth, tagged]"""
EVERYTHING: Compiled = small_node(
    DEFAULTS, FLOW, outputs=f"{FORMS}\nquantity: integer\nworth: decimal\ntagged: integer", rest=LINE_TYPE
)
PROGRAM = ENGINE.load(EVERYTHING)
LINE = {"qty": 3, "more": 5, "price": Decimal("2.50"), "tag": "ü", "kind": "b"}
GIVEN: dict[str, Any] = {
    "n": -7, "d": Decimal("-12.340"), "b": True, "t": "żółw", "e": "green", "f": -0.0,
    "xs": [LINE, {**LINE, "qty": -2, "tag": "ink", "kind": "a", "price": Decimal("-0.125")}],
}  # fmt: skip


class Name(str):
    __slots__ = ()


class Odd(int):
    pass


def apart(text: str) -> str:
    """Return the same text as a string that is not interned."""
    return "".join(list(text))


def ordinary(program: DirectProgram, inputs: dict[str, Any]) -> Outcome:
    return program.call({Name(name): value for name, value in inputs.items()})


def expressed(program: DirectProgram) -> int:
    return next(iter(program.tier().plain.values())).expressed


def is_expressed(program: DirectProgram, inputs: dict[str, Any]) -> bool:
    before = expressed(program)
    program.call(inputs)
    return expressed(program) > before


def go_on(program: DirectProgram) -> None:
    """Make calls until the frameless entry is tried again after failures."""
    for _ in range(4):
        assert is_expressed(program, GIVEN)


# -- all nodes ------------------------------------------------------------------------------------


def ended(outcome: Outcome, inputs: object) -> dict[str, Any]:
    return {"ended": outcome}


def cases() -> Iterator[tuple[str, Compiled]]:
    for path in [*worked_nodes(), *written_for_tests()]:
        node = compiled(path)
        if node.node.is_pure() and node.cases:
            yield path.stem, node


def test_every_case_of_every_node_comes_to_the_same_by_every_way() -> None:
    ran = set()
    for name, node in cases():
        program = ENGINE.load(node)
        call, many = program.fast_entry(ended, takes_now=False), program.fast_entry_for_many(ended)
        if call is None or many is None:
            continue
        for case in node.cases:
            given = dict(case.inputs)
            expected = ordinary(program, given)
            assert repr(program.call(given)) == repr(expected), (name, given)
            value = expected.value if isinstance(expected, Returned) else {"ended": expected}
            assert repr(call(given)) == repr(value), (name, given)
            assert repr(many([given, given])) == repr([value, value]), (name, given)
        if expressed(program):
            ran.add(name)
    assert {"payment_decision_v1", "order_pricing_v1"} <= ran


# -- one input otherwise --------------------------------------------------------------------------

ODD: list[Any] = [
    None, True, False, 0, 1, -1, 2**63 - 1, -(2**63), 2**63, 10**400, 1.5, float("nan"), float("-inf"), "", "1",
    "green", "blue", "yellow", "\ud800", "x" * 100, Decimal("NaN"), Decimal("-0"), Decimal("-0.00"), Decimal("1e5"),
    Decimal("1e-1001"), Decimal("1e-1000"), Decimal(2**63 - 1), Decimal(2**63), Decimal(-(2**63)),
    Decimal("-9223372036854775.808"), Decimal(10) ** 40, Decimal("1." + "0" * 37), Odd(4), b"x", [], (), [1], [None],
    (LINE,), [LINE, LINE], [{**LINE, "qty": True}], [{**LINE, "another": 1}], [{**LINE, "tag": None}],
    [dict(reversed(LINE.items()))], [{**LINE, "kind": "c"}], [{Name("qty"): 1, "price": 1, "tag": "", "kind": "a"}],
    [{"qty": 1, "price": 1, "more": 2}], [{"qty": 1, 2: 3}], [{**LINE, "price": 7}], [{**LINE, "tag": "\ud800"}], {},
    [{**LINE, "qty": 2**62, "price": Decimal(2**62)}] * 3, object(),
]  # fmt: skip


@pytest.mark.parametrize("name", list(GIVEN))
def test_whatever_is_given_for_one_input_comes_to_the_same(name: str) -> None:
    for odd in ODD:
        given = {**GIVEN, name: odd}
        assert repr(PROGRAM.call(given)) == repr(ordinary(PROGRAM, given)), odd
        go_on(PROGRAM)


def test_the_usual_is_run_so_whatever_the_order_and_the_strings_of_the_names() -> None:
    program = ENGINE.load(EVERYTHING)
    expected = PythonEngine().load(EVERYTHING).call(GIVEN)
    assert isinstance(expected, Returned)
    for turned in range(len(GIVEN)):
        names = list(GIVEN)[turned:] + list(GIVEN)[:turned]
        for given in (
            {name: GIVEN[name] for name in names},
            {apart(name): GIVEN[name] for name in names},  # different objects from the interned strings
            {**{name: GIVEN[name] for name in names}, "e": apart("green")},
        ):
            assert is_expressed(program, given)
            answer = program.call(given)
            assert repr(answer) == repr(expected)
            assert isinstance(answer, Returned)
            assert [type(each) for each in answer.value.values()] == [type(each) for each in expected.value.values()]


def test_defaults_are_those_that_are_declared() -> None:
    program, python = ENGINE.load(EVERYTHING), PythonEngine().load(EVERYTHING)
    for left_out in [*itertools.combinations(GIVEN, 1), *itertools.combinations(GIVEN, 2), tuple(set(GIVEN) - {"xs"})]:
        given = {name: value for name, value in GIVEN.items() if name not in left_out}
        assert "xs" not in given or is_expressed(program, given), left_out
        assert repr(program.call(given)) == repr(python.call(given)), left_out
        go_on(program)


def test_a_run_sees_nothing_of_the_one_before() -> None:
    good = {"amount": Decimal(50), "balance": Decimal(100), "currency": "USD", "country": "DE", "user_age_days": 400}
    changes: list[dict[str, Any]] = [{}, {"amount": Decimal(0)}, {"amount": "x"}, {"country": "DEU"}, {"flagged": True}]
    given = [{**good, **change} for change in changes]
    apart = [DirectEngine().load(compiled(PAYMENT_DECISION)).call(each) for each in given]
    assert [type(each) for each in apart] == [Returned, ContractBroken, Failed, ContractBroken, Returned]
    program = ENGINE.load(compiled(PAYMENT_DECISION))
    for one, other in itertools.product(range(len(given)), repeat=2):
        assert (program.call(given[one]), program.call(given[other])) == (apart[one], apart[other])
    lists = [[], [LINE], [LINE, {**LINE, "tag": "x"}, LINE], [LINE] * 1_500]
    expected = [DirectEngine().load(EVERYTHING).call({"xs": each}) for each in lists]
    for one, other in itertools.product(range(len(lists)), repeat=2):
        assert is_expressed(PROGRAM, {"xs": lists[one]})
        assert PROGRAM.call({"xs": lists[other]}) == expected[other]


def test_answers_are_the_callers_own() -> None:
    program = ENGINE.load(EVERYTHING)
    first, second = program.call(GIVEN), program.call(GIVEN)
    assert isinstance(first, Returned)
    assert isinstance(second, Returned)
    before = repr(second)
    assert isinstance(first.value, dict)
    first.value["n"] = first.value["more"] = [1]
    del first.value["d"]
    assert repr(second) == repr(program.call(GIVEN)) == before
    assert not gc.is_tracked(second.value)
    (third,) = [each.value for each in [ordinary(program, GIVEN)] if isinstance(each, Returned)]
    for name in ("d", "t", "f", "worth"):
        assert sys.getrefcount(second.value[name]) == sys.getrefcount(third[name])


def test_nothing_of_the_caller_is_held_after_a_call() -> None:
    program = ENGINE.load(EVERYTHING)
    line = {**LINE, "tag": apart("tag")}
    given = {**GIVEN, "t": apart("text"), "xs": [line]}
    parts = [given["t"], given["xs"], given["d"], line, line["tag"], line["price"]]
    before = [sys.getrefcount(each) for each in parts]
    for _ in range(3):
        assert is_expressed(program, given)
    assert before == [sys.getrefcount(each) for each in parts]


# -- others beside --------------------------------------------------------------------------------


def test_what_garbage_does_while_it_is_collected_is_no_harm() -> None:
    """Texts of a call are borrowed; creating a dict may collect garbage, which may change the inputs."""
    program = ENGINE.load(EVERYTHING)
    expected = repr(program.call(GIVEN))

    class Garbage:
        def __init__(self, of: dict[str, Any]) -> None:
            self.own, self.of = self, of

        def __del__(self) -> None:
            self.of["t"] = "y" * 7
            self.of["xs"].clear()
            program.call(GIVEN)

    seen = set()
    before = gc.get_threshold()
    gc.freeze()  # leaves little to collect
    try:
        for turn in range(30):
            given = {**GIVEN, "t": "x" * 7 + "ż", "xs": [dict(LINE)]}
            gc.set_threshold(100_000)
            gc.collect()
            Garbage(given)
            gc.set_threshold(1 + turn % 5)
            answer = program.call(given)
            gc.set_threshold(100_000)
            assert isinstance(answer, Returned)
            seen.add((answer.value["t"], answer.value["tagged"]))
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)
    assert seen <= {("x" * 7 + "ż", 110), ("y" * 7, 0)}
    assert repr(program.call(GIVEN)) == expected


# -- JSON text ------------------------------------------------------------------------------------

TEXT = {
    "n": "-7", "d": '"-12.340"', "b": "true", "t": '"żółw"', "e": '"green"', "f": "-0.0",
    "xs": '[{"qty":3,"more":5,"price":"2.50","tag":"ü","kind":"b"}, { "more" : 1 , "price" : 1.0 , "tag" : "" , '
    '"kind":"a", "qty" : 0 } ]',
}  # fmt: skip
ODD_TEXT = [
    "null", "true", "tru", "false", "0", "-0", "00", "01", "1.", ".5", "-", "+1", "1e2", "1E-2", "0.10", "-0.00",
    "9" * 18, "9" * 19, "-" + "9" * 18, "9" * 40, "1" * 10 + "." + "1" * 8, "1" * 10 + "." + "1" * 9, "1.5", '"0.10"',
    '"01"', '"+1"', '"1e3"', '".5"', '"-1.050"', '"9.05"', '"0.000001"', '"1', '""', '"x"', '"green"', '"yellow"',
    '"\\u0067reen"', '"\t"', '"\\""', '"open', "[]", "[ ]", "[1,]", "[{}]", "[[]]", "{}", '"NaN"', '"-Infinity"',
    '[{"qty":3,"more":5,"price":"2.50","tag":"a","kind":"b"},]', '[{"qty":3,"more":5,"price":2,"tag":"a","kind":"c"}]',
    '[{"qty":3,"qty":5,"price":"2.50","tag":"a","kind":"b"}]', '[{"qty":3,"more":5,"price":"2.50","tag":"a"}]',
    '[{"qty":3,"more":5,"price":"2.50","tag":"\\n","kind":"b"}]', "1 2", "1,",
]  # fmt: skip


def written(entries: dict[str, str], escaped: bool = False) -> bytes:
    def key(name: str) -> str:
        return f"\\u{ord(name[0]):04x}{name[1:]}" if escaped else name

    return ("{" + ",".join(f'"{key(name)}":{value}' for name, value in entries.items()) + "}").encode()


@pytest.mark.parametrize("name", list(TEXT))
def test_whatever_a_text_has_for_one_input_comes_to_the_same(name: str) -> None:
    program = ENGINE.load(EVERYTHING)
    for odd in ODD_TEXT:
        entries = {**TEXT, name: odd}
        assert program.run_json(written(entries)) == program.run_json(written(entries, escaped=True)), odd
        before = expressed(program)
        for _ in range(4):
            program.run_json(written(TEXT))
        assert expressed(program) == before + 4


def test_the_usual_text_is_run_so() -> None:
    program = ENGINE.load(EVERYTHING)
    expected = program.run_json(written(TEXT, escaped=True))
    assert json.loads(expected)["kind"] == "returned"
    space = b" \n\t\r"
    texts = [
        written(TEXT),
        written(dict(reversed(TEXT.items()))),
        space + written(TEXT).replace(b":", space + b":" + space) + space,
        written({**TEXT, "d": "-12.340"}),
    ]
    for text in texts:
        before = expressed(program)
        assert program.run_json(text) == expected
        assert expressed(program) == before + 1
    for left_out in TEXT:
        given = {name: value for name, value in TEXT.items() if name != left_out}
        assert program.run_json(written(given)) == program.run_json(written(given, escaped=True))
    for behind in (b"x", b"{}", b","):
        assert json.loads(program.run_json(written(TEXT) + behind))["code"] == "bad_input"


NUMBERS = [
    "0", "-0.0", "0.00", "7", "-7", "10", "99", "100", "105", "1.05", "-1.005", "0.0", "-123456789012345678",
    "1234567890.12345678", "9.99", "10.10", "0.1", "1000000.000001", "0.00000000000000001",
]  # fmt: skip


def test_a_decimal_is_written_as_it_was_given() -> None:
    program = ENGINE.load(EVERYTHING)
    for number in NUMBERS:
        entries = {**TEXT, "d": f'"{number}"'}
        before = expressed(program)
        answer = program.run_json(written(entries))
        assert expressed(program) == before + 1, number
        assert answer == program.run_json(written(entries, escaped=True))
        assert json.loads(answer)["value"]["d"] == (number if Decimal(number) else number.lstrip("-"))
        for _ in range(2):
            program.run_json(written(TEXT))


def test_run_json_is_called_as_any_function_is() -> None:
    program = ENGINE.load(EVERYTHING)
    text = written(TEXT)
    expected = program.run_json(text)
    assert program.run_json(text, None) == program.run_json(text, now=None) == expected
    for arguments, named in [
        ((), {}),
        (("{}",), {}),
        ((text, None, 1), {}),
        ((text,), {"then": 1}),
        ((), {"inputs": 1}),
    ]:
        with pytest.raises(TypeError):
            program.run_json(*arguments, **named)  # type: ignore[arg-type]
