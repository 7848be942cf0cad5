"""The short ways into a node on the Rust engine: bare outputs, and JSON text."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.nodes import PAYMENT_DECISION, ROOT, compiled, small_node
from vesper.api.input_conversion import inputs_of_json
from vesper.engines.direct_engine import DirectEngine
from vesper.engines.engine import Program
from vesper.engines.outcome import ContractBroken, DeclaredError, Failed, Outcome, Returned
from vesper.kernels import raised
from vesper.values.generated.errors import ErrorCode
from vesper.values.json_forms import has_names
from vesper.values.model import in_order, scalar_text
from vesper.values.types import FLOAT, ArrayOf, MapOf, OptionalOf, Record, SetOf, Type

PAYMENT = DirectEngine().load(compiled(PAYMENT_DECISION))
PAID = {
    "amount": Decimal("50.00"),
    "balance": Decimal("100.00"),
    "currency": "USD",
    "country": "DE",
    "user_age_days": 400,
}


def test_entry_gives_the_outputs_of_call() -> None:
    outcome = PAYMENT.call(PAID)
    assert isinstance(outcome, Returned)
    assert PAYMENT.entry(PAID) == outcome.value
    assert list(PAYMENT.entry(PAID)) == list(outcome.value)


def test_what_call_gives_is_an_outcome_like_any_other() -> None:
    outcome = PAYMENT.call(PAID)
    assert isinstance(outcome, Returned)
    assert outcome == Returned(dict(outcome.value))
    assert repr(outcome) == repr(Returned(dict(outcome.value)))
    with pytest.raises(AttributeError):
        outcome.value = {}  # type: ignore[misc]


def test_entry_raises_what_call_says() -> None:
    with pytest.raises(raised.ContractBroken) as broken:
        PAYMENT.entry({**PAID, "amount": Decimal(0)})
    outcome = PAYMENT.call({**PAID, "amount": Decimal(0)})
    assert isinstance(outcome, ContractBroken)
    assert (broken.value.phase, broken.value.index) == (outcome.phase, outcome.index)
    assert broken.value.values == outcome.values

    with pytest.raises(raised.Raised) as refused:
        PAYMENT.entry({**PAID, "amount": "ten", "extra": 1})
    assert refused.value.code == "bad_input"
    assert refused.value.__notes__[-2:] == ["amount: malformed", "extra: unknown"]

    divide = DirectEngine().load(small_node("x: integer", "- operation: return\n  success: {result: 1 / x}"))
    with pytest.raises(raised.Raised) as failed:
        divide.entry({"x": 0})
    assert failed.value.code == "division_by_zero"
    with pytest.raises(TypeError, match="the inputs of a node are a dict"):
        divide.entry([("x", 1)])  # type: ignore[arg-type]


def test_a_declared_error_is_raised_and_written() -> None:
    program = DirectEngine().load(compiled(ROOT / "nodes" / "text" / "quantity_text_v1.vsp"))
    outcome = program.call({"written": "some"})
    assert isinstance(outcome, DeclaredError)
    with pytest.raises(raised.DeclaredError) as error:
        program.entry({"written": "some"})
    assert error.value.values == outcome.value
    answer = json.loads(program.run_json(b'{"written": "some"}'))
    assert answer == {"kind": "declared_error", "value": outcome.value}


# -- JSON -----------------------------------------------------------------------------------------

TYPES = {
    "flag": "optional<boolean>",
    "pieces": "integer",
    "price": "decimal",
    "ratio": "optional<float>",
    "name": "optional<string>",
    "blob": "optional<bytes>",
    "moment": "optional<timestamp>",
    "day": "optional<date>",
    "span": "optional<duration>",
    "color": "optional<enum[red, green, 'a b']>",
    "words": "optional<set<string>>",
    "numbers": "optional<array<integer>>",
    "rates": "optional<map<string, decimal>>",
    "stairs": "optional<map<integer, string>>",
    "anything": "optional<json>",
}
NAMES = list(TYPES)
RICH = small_node(
    "\n".join(
        f'{name}: {{type: "{each}"{", default: 3" if name == "pieces" else ""}}}' for name, each in TYPES.items()
    ),
    "- operation: return\n  success: {" + ", ".join(f"{name}: {name}" for name in NAMES) + "}",
    outputs="\n".join(f'{name}: "{each}"' for name, each in TYPES.items()),
)
PROGRAM = DirectEngine().load(RICH)
OUTPUT_TYPES = {each.name: each.type for each in RICH.node.outputs}


def canonical(type_: Type, value: Any) -> str:
    """The canonical JSON of docs/spec/values.md, written from the page."""
    match type_:
        case OptionalOf(inner):
            return "null" if value is None else canonical(inner, value)
        case ArrayOf(element):
            return "[" + ",".join(canonical(element, each) for each in value) + "]"
        case SetOf(element):
            return "[" + ",".join(canonical(element, each) for each in in_order(element, value)) + "]"
        case MapOf(key, of) if has_names(key):
            return "{" + ",".join(f"{quoted(name)}:{canonical(of, value[name])}" for name in sorted(value)) + "}"
        case MapOf(key, of):
            return (
                "[" + ",".join(f"[{canonical(key, name)},{canonical(of, each)}]" for name, each in value.items()) + "]"
            )
        case Record(fields):
            types = dict(fields)
            return (
                "{" + ",".join(f"{quoted(name)}:{canonical(types[name], value[name])}" for name in sorted(value)) + "}"
            )
        case _ if str(type_) == "json":
            return json_text(value)
        case _ if type_ == FLOAT:
            return scalar_text(value) if math.isfinite(value) else quoted(scalar_text(value))
        case _ if isinstance(value, bool | int):
            return scalar_text(value)
        case _:
            return quoted(scalar_text(value))


def quoted(text: str) -> str:
    short = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
    return '"' + "".join(short.get(c, f"\\u{ord(c):04x}" if c < " " else c) for c in text) + '"'


def json_text(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case int() | Decimal():
            plain = f"{Decimal(value):f}"
            plain = plain.rstrip("0").rstrip(".") if "." in plain else plain
            return "0" if plain in ("-0", "") else plain
        case str():
            return quoted(value)
        case list():
            return "[" + ",".join(map(json_text, value)) + "]"
        case _:
            return "{" + ",".join(f"{quoted(key)}:{json_text(value[key])}" for key in sorted(value)) + "}"


def written(outcome: Outcome) -> str:
    match outcome:
        case Returned(value):
            return f'{{"kind":"returned","value":{canonical(Record(tuple(OUTPUT_TYPES.items())), value)}}}'
        case Failed(code, at, problems):
            listed = ",".join(f'{{"kind":"{each.kind}","path":{quoted(each.path)}}}' for each in problems)
            return f'{{"at":{"null" if at is None else at},"code":"{code}","kind":"failed","problems":[{listed}]}}'
        case _:
            raise AssertionError(outcome)


def by_dict(text: str) -> str:
    """The same call by way of objects."""
    return by_objects(PROGRAM, text)


def by_objects(program: Program, text: str) -> str:
    """What a program says to the objects that the Python API makes of a text."""
    given = inputs_of_json(RICH.node.inputs, text)
    if given.refused:
        return written(Failed(ErrorCode.BAD_INPUT, None, given.refused))
    outcome = program.call(given.inputs)
    if isinstance(outcome, Failed):
        outcome = Failed(outcome.code, outcome.at, tuple(map(given.caller_problem, outcome.problems)))
    return written(outcome)


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.decimals(allow_nan=False, allow_infinity=False, min_value=-1000, max_value=1000, places=3).map(str),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=4),
    st.sampled_from(
        ["red", "a b", "NaN", "-Infinity", "1.50", "1e3", "2026-11-15", "2026-11-15T02:21:30Z", "PT5S", "aGk="]
    ),
)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.text(max_size=3), inner, max_size=3),
        st.lists(st.tuples(st.integers(0, 3), st.text(max_size=2)), max_size=3),
    ),
    max_leaves=6,
)
FITTING = {
    "flag": st.booleans(),
    "pieces": st.integers(-5, 5),
    "price": st.one_of(st.integers(-9, 9), st.sampled_from(["1.50", "1E+2", "-0.00"]), st.floats(-9, 9)),
    "ratio": st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.integers(-(2**60), 2**60)),
    "name": st.text(max_size=5),
    "words": st.lists(st.text(max_size=2), max_size=4, unique=True),
    "numbers": st.lists(st.integers(0, 5), max_size=4),
    "rates": st.dictionaries(st.text(max_size=2), st.integers(0, 9), max_size=3),
    "stairs": st.dictionaries(st.integers(-3, 3), st.text(max_size=2), max_size=3).map(lambda each: list(each.items())),
    "anything": ANYTHING,
}


@given(st.dictionaries(st.sampled_from([*NAMES, "other", "zz"]), ANYTHING, max_size=5))
def test_json_text_comes_to_what_objects_come_to(inputs: dict[str, Any]) -> None:
    text = json.dumps(inputs)
    assert PROGRAM.run_json(text.encode()).decode() == by_dict(text)


@given(
    st.text("-+0123456789.eE", min_size=1, max_size=6) | st.sampled_from(["-0", "-0.0", "-0e5", "-1e-400"]),
    st.sampled_from(["pieces", "price", "ratio", "anything", "numbers", "stairs", "rates"]),
)
def test_a_number_is_the_same_by_every_way(number: str, name: str) -> None:
    around = {"numbers": "[{}]", "stairs": '[[{}, "a"]]', "rates": '{{"a": {}}}'}.get(name, "{}")
    text = f'{{"{name}": {around.format(number)}' + ("}" if name == "price" else ', "price": 1}')
    assert PROGRAM.run_json(text.encode()).decode() == by_dict(text)


@given(st.fixed_dictionaries({"price": FITTING["price"]}, optional={k: v for k, v in FITTING.items() if k != "price"}))
def test_inputs_that_fit_come_to_the_same_outputs(inputs: dict[str, Any]) -> None:
    text = json.dumps(inputs, ensure_ascii=False)
    answer = PROGRAM.run_json(text.encode()).decode()
    assert answer == by_dict(text)
    assert answer.startswith('{"kind":"returned"')


REFUSED = '{{"at":null,"code":"bad_input","kind":"failed","problems":[{{"kind":"{kind}","path":"{path}"}}]}}'


@pytest.mark.parametrize(
    "text, kind, path",
    [
        (b"", "malformed", ""),
        (b"{", "malformed", ""),
        (b'{"price": 1, "price": 2}', "malformed", ""),
        (b'{"price": NaN}', "malformed", ""),
        (b"\xff", "malformed", ""),
        (b"\xef\xbb\xbf{}", "malformed", ""),
        (b'{"price": "\\ud800"}', "malformed", ""),
        (b"[" * 200 + b"]" * 200, "wrong_type", ""),
        (b"[" * 257 + b"]" * 257, "too_deep", ""),
        (b"[]", "wrong_type", ""),
        (b"null", "wrong_type", ""),
        (b"{}", "missing", "price"),
        (b'{"price": null}', "wrong_type", "price"),
        (b'{"price": 1, "pieces": 1.0}', "wrong_type", "pieces"),
        (b'{"price": 1, "pieces": 1e3}', "wrong_type", "pieces"),
        (b'{"price": 1, "pieces": 9223372036854775808}', "out_of_range", "pieces"),
        (b'{"price": 1, "ratio": 1e400}', "out_of_range", "ratio"),
        (b'{"price": 1, "stairs": [[1, "a"], [1, "b"]]}', "duplicate", "stairs"),
        (b'{"price": 1, "stairs": {"1": "a"}}', "wrong_type", "stairs[?]"),
        (b'{"price": 1, "rates": [["a", 1]]}', "wrong_type", "rates"),
        (b'{"price": 1, "stairs": [[1]]}', "wrong_type", "stairs"),
        (b'{"price": 1, "stairs": [[9223372036854775808, "a"]]}', "out_of_range", "stairs[?]"),
        (b'{"price": 1, "words": ["a", "a"]}', "duplicate", "words"),
        (b'{"price": 1, "x": 1}', "unknown", "x"),
    ],
)
def test_what_json_text_is_refused_for(text: bytes, kind: str, path: str) -> None:
    assert PROGRAM.run_json(text).decode() == REFUSED.format(kind=kind, path=path)


def test_the_places_of_a_number_are_those_of_its_text() -> None:
    answer = json.loads(PROGRAM.run_json(b'{"price": 1.500, "pieces": -0, "ratio": 5}'))
    assert (answer["value"]["price"], answer["value"]["pieces"], answer["value"]["ratio"]) == ("1.500", 0, 5.0)


def test_broken_contracts_and_failures_as_json() -> None:
    text = json.dumps({**PAID, "amount": "0.00"}, default=str).encode()
    outcome = PAYMENT.call({**PAID, "amount": Decimal("0.00")})
    assert isinstance(outcome, ContractBroken)
    assert json.loads(PAYMENT.run_json(text)) == {
        "kind": "contract_broken",
        "phase": outcome.phase,
        "index": outcome.index,
        "values": {"amount": "0.00"},
    }
    divide = DirectEngine().load(small_node("x: integer", "- operation: return\n  success: {result: 1 / x}"))
    failed = divide.call({"x": 0})
    assert isinstance(failed, Failed)
    expected: dict[str, Any] = {"kind": "failed", "code": "division_by_zero", "at": failed.at, "problems": []}
    assert json.loads(divide.run_json(b'{"x": 0}')) == expected


def test_run_json_takes_bytes_only() -> None:
    with pytest.raises(TypeError):
        PROGRAM.run_json("{}")  # type: ignore[arg-type]
