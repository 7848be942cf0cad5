"""Decisions go into the journal and come back; what is not one is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vesper.policies import breaker, concurrency, deadline, gate, rate_limit, retry
from vesper.policies.records import Decision
from vesper.policies.settings import PolicyError

MODULES: tuple[ModuleType, ...] = (breaker, concurrency, deadline, gate, rate_limit, retry)
READERS: dict[type[Decision], Callable[[Mapping[str, object]], Decision]] = {
    each: module.from_record
    for module in MODULES
    for each in vars(module).values()
    if isinstance(each, type) and issubclass(each, Decision) and each is not Decision
}
KINDS = {"int": st.integers(), "str": st.text(), "int | None": st.none() | st.integers()}


def test_every_decision_has_a_name_of_its_own_and_a_reader() -> None:
    assert len(READERS) == 17
    assert len({each.decision for each in READERS}) == 17
    everywhere = {each.__name__ for each in Decision.__subclasses__() if each.__module__.startswith("vesper.")}
    assert {each.__name__ for each in READERS} == everywhere


@given(st.data())
@pytest.mark.parametrize("kind", READERS, ids=lambda kind: kind.decision)
def test_a_decision_comes_back_as_it_went(kind: type[Decision], data: st.DataObject) -> None:
    values = [data.draw(KINDS[str(each.type)]) for each in fields(kind)]  # type: ignore[arg-type]
    decided = kind(*values)
    record = decided.to_record()
    assert record["decision"] == kind.decision
    assert all(type(value) in (int, str) for value in record.values())
    assert READERS[kind](record) == decided


def test_what_the_journal_says_of_a_retry() -> None:
    decided = retry.TryAgain(2, 1_500, "http_503", 77)
    assert decided.to_record() == {
        "decision": "retry",
        "attempt": 2,
        "delay_us": 1_500,
        "code": "http_503",
        "jitter": 77,
    }


@pytest.mark.parametrize(
    "record,message",
    [
        ({}, "`decision` must be one of `retry`, `give_up`, not None"),
        ({"decision": "granted", "at_us": 1}, "not 'granted'"),
        ({"decision": "give_up", "attempts": 1, "code": "timeout"}, "`reason` is missing"),
        ({"decision": "give_up", "attempts": "1", "code": "", "reason": ""}, "`attempts` must be a whole number"),
        ({"decision": "give_up", "attempts": True, "code": "", "reason": ""}, "not True"),
        ({"decision": "give_up", "attempts": 1, "code": "", "reason": "", "x": 1}, "there is no `x` in it"),
        ({"decision": "retry", "attempt": 1, "delay_us": 1, "code": "", "jitter": None}, "`jitter` must be"),
    ],
)
def test_what_is_no_decision_is_refused(record: dict[str, object], message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        retry.from_record(record)
