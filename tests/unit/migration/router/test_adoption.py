"""Adoption: the function leads unchanged, and the node behind it gathers evidence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import vesper
from tests.unit.migration.support.routed import divergences_of, payment, put_into, routes_in, state_of
from vesper.engines.engine import Limits
from vesper.engines.outcome import LimitHit, Returned
from vesper.engines.path import Pathed
from vesper.engines.registry import ENGINES
from vesper.migration.compare.paths import PathNote, ending_of
from vesper.migration.control.modes import Mode
from vesper.migration.router.adoption import CannotAdopt
from vesper.migration.router.routes import Routes

NODE = "nodes/payments/payment_decision_v1.vsp"


class Refused(Exception):
    """The exception of the function, which its callers catch."""


class Legacy:
    """The adopted function: right, except for planted faults."""

    def __init__(self) -> None:
        from tests.unit.migration.support.routed import compiled

        self._right = ENGINES["python"].load(compiled())
        self.calls = 0
        self.fee: Decimal | None = None

    def __call__(self, **inputs: Any) -> dict[str, Any]:
        self.calls += 1
        outcome = self._right.call(inputs)
        if not isinstance(outcome, Returned):
            raise Refused(str(outcome))
        return {**outcome.value, **({} if self.fee is None else {"fee": self.fee})}


class Seven(int):
    """An integer of a class of its own."""


class Strange(dict[str, Any]):
    """A mapping that cannot be read."""

    def keys(self) -> Any:
        raise RuntimeError("not now")

    __iter__ = keys


@pytest.fixture
def routes(tmp_path: Path) -> Iterator[Routes]:
    made = routes_in(tmp_path)
    yield made
    made.close()


@pytest.fixture
def legacy() -> Legacy:
    return Legacy()


@pytest.fixture
def adopted(legacy: Legacy, routes: Routes) -> Any:
    return vesper.adopt(legacy, NODE, routes=routes)


def told(routes: Routes) -> None:
    routes.followers.drain(5)
    routes.migration.tend(is_all=True)


def test_an_expired_tolerance_is_logged(tmp_path: Path, legacy: Legacy, caplog: pytest.LogCaptureFixture) -> None:
    over = {"absolute": "0.01", "version": 1, "until": "2020-01-31", "why": "a test"}
    routes = routes_in(tmp_path, nodes={"payment_decision": {"tolerances": {"fee": over}}})
    vesper.adopt(legacy, NODE, routes=routes)
    routes.close()
    assert "payment_decision_v1: the tolerance of `fee` ended on 2020-01-31 and holds no more" in caplog.messages


def test_the_function_answers_and_the_node_follows(adopted: Any, legacy: Legacy, routes: Routes) -> None:
    for number in range(10):
        assert adopted(**payment(f"{number + 1}.00")) == legacy(**payment(f"{number + 1}.00"))
    told(routes)
    assert state_of(routes, adopted._program).clean == 10
    assert adopted.mode == "shadow_direct"


def test_exceptions_of_the_function_reach_its_callers(adopted: Any, routes: Routes) -> None:
    with pytest.raises(Refused):
        adopted(**payment("-1"))
    told(routes)
    assert not divergences_of(routes, adopted._program)  # the node refuses it as well, in its own words


def test_a_differing_function_is_reported_and_its_result_returned(adopted: Any, legacy: Legacy, routes: Routes) -> None:
    legacy.fee = Decimal("1.23")
    assert adopted(**payment())["fee"] == Decimal("1.23")
    told(routes)
    (found,) = divergences_of(routes, adopted._program)
    leader, follower = found.engines
    assert leader.startswith(f"{__name__}:")
    assert follower == "interp"
    assert (found.kind, found.where) == ("outcome", "outputs.fee")


def test_once_trusted_the_node_answers_and_errors_still_come_from_the_function(
    adopted: Any, legacy: Legacy, routes: Routes
) -> None:
    direct = adopted._program._context.direct
    ran = direct.call_pathed(payment(), b"k" * 16)
    put_into(routes, adopted._program, Mode.DIRECT_ONLY, PathNote(ran.path, (), ending_of(ran.outcome)))
    adopted._program.chooser.draw = lambda: 0.5
    expected, legacy.calls = legacy(**payment()), 0
    assert adopted(**payment()) == expected
    assert legacy.calls == 0
    with pytest.raises(Refused):
        adopted(**payment("-1"))
    assert legacy.calls == 1


def test_a_path_without_evidence_calls_the_function(adopted: Any, legacy: Legacy, routes: Routes) -> None:
    put_into(routes, adopted._program, Mode.DIRECT_ONLY)
    adopted._program.chooser.draw = lambda: 0.5
    legacy.fee = Decimal("9.99")
    assert adopted(**payment())["fee"] == Decimal("9.99")
    told(routes)
    assert len(divergences_of(routes, adopted._program)) == 1


@pytest.mark.parametrize(
    "answer", [None, 7, {"fee": "no"}, {}, {1: 2}, Strange()], ids=lambda each: type(each).__name__
)
def test_a_result_without_outputs_reaches_the_caller_unchanged(answer: Any, routes: Routes) -> None:
    adopted = vesper.adopt(lambda **_: answer, NODE, routes=routes)
    assert adopted(**payment()) is answer
    told(routes)
    assert len(divergences_of(routes, adopted._program)) == 1


def test_arguments_by_position_have_the_names_of_the_function(routes: Routes) -> None:
    def fee(amount: Decimal, balance: Decimal, currency: str, country: str, user_age_days: int) -> dict[str, Any]:
        return Legacy()(amount=amount, balance=balance, currency=currency, country=country, user_age_days=user_age_days)

    adopted = vesper.adopt(fee, NODE, routes=routes)
    given = payment()
    assert adopted(*given.values()) == fee(*given.values())
    told(routes)
    assert state_of(routes, adopted._program).clean == 1
    assert getattr(adopted, "__name__", None) == "fee"


def test_parameters_by_position_alone_stay_so(routes: Routes) -> None:
    def fee(amount: Decimal, /, balance: Decimal, **other: Any) -> dict[str, Any]:
        return Legacy()(amount=amount, balance=balance, **other)

    given = payment()
    adopted = vesper.adopt(fee, NODE, routes=routes)
    assert adopted(given.pop("amount"), **given) == Legacy()(**payment())
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        adopted(Decimal(1))  # type: ignore[call-arg]


def raises_now(*_: Any, **__: Any) -> Any:
    raise RuntimeError("it breaks")


@pytest.mark.parametrize("mode", [Mode.SHADOW_DIRECT, Mode.DIRECT_ONLY])
def test_errors_after_the_function_do_not_reach_its_caller(
    mode: Mode, adopted: Any, legacy: Legacy, routes: Routes, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_into(routes, adopted._program, mode)
    adopted._program.chooser.draw = lambda: 0.5
    monkeypatch.setattr(adopted._program.live, "report", raises_now)
    monkeypatch.setattr(routes.followers, "put", raises_now)
    assert adopted(**payment()) == Legacy()(**payment())
    assert legacy.calls == 1


def test_an_engine_fault_in_place_of_the_function_latches(
    adopted: Any, legacy: Legacy, routes: Routes, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_into(routes, adopted._program, Mode.DIRECT_ONLY)
    adopted._program.chooser.draw = lambda: 0.5
    asked: list[float | None] = []

    def late(_: object, __: bytes, ___: object, limits: Limits) -> Pathed:
        asked.append(limits.seconds)
        return Pathed(LimitHit("time"), b"", 0)

    context = replace(adopted._program._context, direct=SimpleNamespace(call_pathed=late))
    monkeypatch.setattr(adopted._program, "_context", context)
    assert adopted(**payment()) == Legacy()(**payment())
    assert asked == [5.0]  # with its deadline, and not once more
    assert adopted.mode == "python_only"


def test_another_source_of_the_function_is_another_epoch(routes: Routes) -> None:
    one = vesper.adopt(lambda **inputs: dict(Legacy()(**inputs)), NODE, routes=routes)
    other = vesper.adopt(lambda **inputs: {**Legacy()(**inputs)}, NODE, routes=routes)
    assert one._program.live.key.epoch != other._program.live.key.epoch


def test_a_node_with_effects_is_refused(routes: Routes) -> None:
    with pytest.raises(CannotAdopt, match="both would happen"):
        vesper.adopt(lambda **_: {}, "nodes/payments/payment_handler_v1.vsp", routes=routes)


async def _awaited(**_: Any) -> dict[str, Any]:
    return {}


def _iterated(**_: Any) -> Iterator[dict[str, Any]]:
    yield {}


def _of_others(amount: Decimal, price: Decimal) -> dict[str, Any]:
    return {}


def _with_a_session(session: object, **_: Any) -> dict[str, Any]:
    return {}


@pytest.mark.parametrize(
    "function, said",
    [
        (_awaited, "_awaited is a coroutine function"),
        (_iterated, "_iterated is a generator function"),
        ({"amount": 1}, "cannot be called: name the function that payment_decision_v1 is to stand behind"),
        (
            _of_others,
            "_of_others does not take `balance`, `currency`, `country`, `user_age_days`, and payment_decision_v1",
        ),
        (_with_a_session, "_with_a_session cannot be called without `session`"),
    ],
)
def test_an_incomparable_function_is_refused(function: Any, said: str, routes: Routes) -> None:
    with pytest.raises(CannotAdopt, match=said):
        vesper.adopt(function, NODE, routes=routes)


FORMS = """node_id: forms_v1
type: function
intent: Return a value of each form
types: {Line: {fields: {tags: set<string>}}}
inputs: {number: integer}
outputs:
  success:
    words: set<string>
    items: array<integer>
    at: timestamp
    note: optional<string>
    lines: array<Line>
flow:
  - operation: return
    success:
      words: to_set([text(number)])
      items: "[number]"
      at: timestamp('2026-11-15T12:00:00Z')
      note: null
      lines: "[{tags: to_set(['a'])}]"
"""
NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
OUTPUTS = {"words": {"7"}, "items": [7], "at": NOON, "note": None, "lines": [{"tags": {"a"}}]}


@pytest.fixture
def forms(tmp_path: Path) -> Path:
    path = tmp_path / "forms_v1.vsp"
    path.write_text(FORMS, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "changes, where, code",
    [
        ({"words": ["7"]}, "outputs.words", "list_for_set"),
        ({"words": frozenset({"7"})}, "outputs.words", "frozenset_for_set"),
        ({"items": (7,)}, "outputs.items", "tuple_for_list"),
        ({"items": [Seven(7)]}, "outputs.items[]", "Seven_for_int"),
        ({"at": NOON.astimezone(timezone(timedelta(hours=2)))}, "outputs.at", "offset_time_for_utc_time"),
        ({"note": ...}, "outputs.note", "nothing_for_none"),
        ({"lines": [{"tags": ["a"]}]}, "outputs.lines[].tags", "list_for_set"),
    ],
)
def test_another_python_type_is_a_difference(
    changes: dict[str, Any], where: str, code: str, forms: Path, routes: Routes
) -> None:
    answer = {name: value for name, value in (OUTPUTS | changes).items() if value is not ...}
    adopted = vesper.adopt(lambda **_: answer, forms, routes=routes)
    assert adopted(number=7) is answer
    told(routes)
    (found,) = divergences_of(routes, adopted._program)
    assert (found.kind, found.where, found.extra["leader"]) == ("outcome", where, f"failed {code}")


def test_the_node_answers_in_the_forms_of_the_function(forms: Path, routes: Routes) -> None:
    calls = []

    def function(number: int) -> dict[str, Any]:
        calls.append(number)
        return OUTPUTS

    adopted = vesper.adopt(function, forms, routes=routes)
    assert adopted(number=7) == OUTPUTS
    told(routes)
    assert divergences_of(routes, adopted._program) == []
    direct = adopted._program._context.direct
    ran = direct.call_pathed({"number": 7}, b"k" * 16)
    put_into(routes, adopted._program, Mode.DIRECT_ONLY, PathNote(ran.path, (), ending_of(ran.outcome)))
    adopted._program.chooser.draw = lambda: 0.5
    answer = adopted(number=7)
    assert calls == [7]
    assert repr(answer) == repr(OUTPUTS)
