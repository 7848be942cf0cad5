"""Effects that an application registers."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import multiprocessing
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from tests.unit.effects.ask_of import ask_of, failure
from vesper.effects.custom.performer import Context, CustomPerformer, effect, registered, unregister
from vesper.effects.performer import NOT_DONE, Ask, EffectFailed
from vesper.values.json_value import json_of
from vesper.values.types import DECIMAL, INTEGER, JSON, STRING, Type, declared_type


@pytest.fixture(autouse=True)
def _own_effects() -> Iterator[None]:
    before = set(registered())
    yield
    for name in set(registered()) - before:
        unregister(name)


def custom(name: str, request: dict[str, Any] | None = None, gives: Type = STRING, **more: Any) -> Ask:
    return ask_of("custom", {"name": name}, None if request is None else {"request": request}, gives, **more)


def perform(name: str, request: dict[str, Any] | None = None, gives: Type = STRING, **more: Any) -> object:
    return CustomPerformer().perform(custom(name, request, gives, **more))


def refused(name: str, request: dict[str, Any] | None = None, gives: Type = STRING, **more: Any) -> EffectFailed:
    return failure("custom", lambda: perform(name, request, gives, **more))


# -- calls ----------------------------------------------------------------------------------------


def test_fields_come_as_keywords_and_the_answer_is_checked() -> None:
    @effect("price", request={"amount": "decimal", "when": "date"}, response="decimal")
    def price(amount: Decimal, when: date) -> object:
        assert (type(amount), type(when)) == (Decimal, date)
        return amount * 2

    found = perform("price", {"amount": Decimal("1.50"), "when": date(2026, 1, 1)}, DECIMAL)
    assert str(found) == "3.00"
    assert price(amount=Decimal(2), when=date(2026, 1, 1)) == 4  # the function stays a function


def test_values_are_in_their_python_forms_both_ways() -> None:
    @effect("echo")
    def echo(**fields: object) -> object:
        return fields["data"]

    data = {"at": datetime(2026, 1, 1, tzinfo=UTC), "doc": json_of({"a": [1, Decimal("1.5")]})}
    gives = declared_type("{at: timestamp, doc: json}")
    found = perform("echo", {"data": data}, gives)
    assert found == {"at": data["at"], "doc": {"a": [1, Decimal("1.5")]}}


def test_no_request_at_all() -> None:
    @effect("ping", response="string")
    def ping() -> str:
        return "pong"

    assert perform("ping") == "pong"


def test_key_and_context() -> None:
    seen: list[object] = []

    @effect("charge", effect_class="keyed", request={"amount": "integer"})
    def charge(amount: int, key: str, context: Context) -> str:
        seen.extend((amount, key, context.execution, context.path, context.is_repeat, context.timeout, context.receipt))
        with pytest.raises(EffectFailed, match="may not be used here"):
            context.secret("stripe")
        return "ok"

    more: dict[str, Any] = {"effect_class": "keyed", "key": "k 1", "is_repeat": True, "timeout": 30.0}
    assert perform("charge", {"amount": 5}, path="pay/charge[2]", **more) == "ok"
    assert seen == [5, "k 1", "ex_1", "pay/charge[2]", True, 30.0, "key:k 1"]


def test_async_functions() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")

    @effect("slow")
    async def slow(name: str) -> str:
        await asyncio.sleep(0)
        return f"{name} {variable.get()} {threading.current_thread().name}"

    variable.set("seen")
    assert perform("slow", {"name": "a"}) == "a seen vesper-effect-loop"

    async def within_a_loop() -> object:
        return perform("slow", {"name": "b"})

    assert asyncio.run(within_a_loop()) == "b seen vesper-effect-loop"


def test_an_object_that_is_called_like_a_coroutine() -> None:
    class Bureau:
        async def __call__(self, name: str) -> str:
            return f"score of {name}"

    effect("score", request={"name": "string"})(Bureau())
    assert perform("score", {"name": "Ada"}) == "score of Ada"


def test_an_async_effect_that_waits_for_another_one_is_told_so() -> None:
    @effect("inner")
    async def inner() -> str:
        return "inner"

    @effect("outer")
    async def outer() -> object:
        return perform("inner")

    @effect("polite")
    async def polite() -> object:
        return await asyncio.to_thread(perform, "inner")

    assert "use asyncio.to_thread" in refused("outer", timeout=30).message
    assert perform("polite", timeout=30) == "inner"


def test_a_call_with_a_time_sees_the_context_of_its_caller() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")

    @effect("look")
    def look() -> str:
        return variable.get()

    variable.set("seen")
    assert perform("look", timeout=30) == "seen"


# -- types ----------------------------------------------------------------------------------------


def test_a_request_that_does_not_fit_is_not_sent() -> None:
    @effect("price", request={"amount": "decimal", "lines": "array<{qty: integer}>"})
    def price(amount: Decimal, lines: object) -> str:
        pytest.fail("it was called")

    failed = refused("price", {"amount": Decimal(1), "lines": [{"qty": 1}, {"qty": "two"}]})
    assert (failed.code, failed.may_have_happened) == ("effect_failed", False)
    assert failed.message.startswith(
        "the request of the effect `price`, at `lines[1].qty`, is no integer: wrong_type; it is registered at "
    )
    assert f"{__file__}:" in failed.message
    assert "has `tip`, which nobody declares" in refused("price", {"amount": 1, "lines": [], "tip": 2}).message
    assert (
        "has no `lines`, which is declared as array<{qty: integer}>" in refused("price", {"amount": Decimal(1)}).message
    )


def test_without_declared_types_the_function_decides() -> None:
    @effect("greet")
    def greet(name: str, greeting: str = "hello") -> str:
        return f"{greeting} {name}"

    assert perform("greet", {"name": "Ada"}) == "hello Ada"
    assert perform("greet", {"name": "Ada", "greeting": "hi"}) == "hi Ada"
    failed = refused("greet", {"title": "Dr"})
    assert (failed.code, failed.may_have_happened) == ("effect_failed", False)
    assert "the request does not fit the effect `greet`" in failed.message


@pytest.mark.parametrize(
    "response, gives, answer, says",
    [
        (None, INTEGER, "7", "what the effect `give` gives is no integer: wrong_type"),
        (None, INTEGER, None, "what the effect `give` gives is no integer: wrong_type"),
        (None, INTEGER, True, "is no integer: wrong_type"),
        (None, DECIMAL, 0.1, "is no decimal: wrong_type"),
        (None, INTEGER, 2**63, "is no integer: out_of_range"),
        ("string", INTEGER, "7", "is no integer: wrong_type"),
        ("integer", STRING, "7", "is no integer: wrong_type"),
        (None, declared_type("{a: integer}"), {"a": 1, "b": 2}, "has `b`, which nobody declares"),
        (None, JSON, object(), "is no json: wrong_type"),
    ],
)
def test_a_response_that_does_not_fit(response: str | None, gives: Type, answer: object, says: str) -> None:
    @effect("give", response=response)
    def give() -> object:
        return answer

    failed = refused("give", gives=gives)
    assert (failed.code, failed.may_have_happened) == ("bad_response", True)
    assert says in failed.message


def test_a_coroutine_that_nobody_awaits() -> None:
    async def inner() -> str:
        return "x"

    @effect("give")
    def give() -> object:
        return inner()

    assert "declare the function with `async def`" in refused("give").message


# -- failures -------------------------------------------------------------------------------------


def test_a_failure_of_its_own() -> None:
    @effect("fail", effect_class="read")
    def fail(code: str) -> str:
        raise EffectFailed(code, f"because of {code}", retry_after=3, may_have_happened=code == "unavailable")

    more: dict[str, Any] = {"effect_class": "read"}
    for code in ("unavailable", "timeout", "bad_response", "effect_failed"):
        failed = refused("fail", {"code": code}, **more)
        assert (failed.code, failed.message, failed.retry_after) == (code, f"because of {code}", 3)
        assert failed.may_have_happened == (code == "unavailable")
    failed = refused("fail", {"code": "card_declined"}, **more)
    assert (failed.code, failed.message) == (
        "effect_failed",
        "the effect `fail` failed with `card_declined`: because of card_declined",
    )


def _exit() -> object:
    raise SystemExit(3)


def _long() -> object:
    raise ValueError("x" * 10_000)


def _cancelled() -> object:
    raise asyncio.CancelledError


def _recursion() -> object:
    return _recursion()


@pytest.mark.parametrize("timeout", [None, 30.0])
@pytest.mark.parametrize(
    "function, says",
    [
        (lambda: 1 // 0, "raised ZeroDivisionError: integer division or modulo by zero"),
        (_exit, "raised SystemExit: 3"),
        (_cancelled, "raised CancelledError"),
        (_recursion, "raised RecursionError"),
        (_long, "raised ValueError: xxx"),
    ],
)
def test_any_exception_is_a_failure(function: Callable[[], object], says: str, timeout: float | None) -> None:
    effect("break")(function)
    failed = refused("break", timeout=timeout)
    assert (failed.code, failed.may_have_happened) == ("effect_failed", True)
    assert says in failed.message
    assert len(failed.message) < 1000


def test_the_user_may_still_interrupt() -> None:
    @effect("interrupted")
    def interrupted() -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        perform("interrupted")


def test_secrets_stay_out_of_messages_and_logs(caplog: pytest.LogCaptureFixture) -> None:
    @effect("leak")
    def leak(how: str) -> object:
        token = "hunter22"
        if how == "failure":
            raise EffectFailed("unavailable", f"refused {token}")
        raise RuntimeError(f"refused {token}")

    performer = CustomPerformer(lambda text: text.replace("hunter22", "secret:token"))
    with caplog.at_level(logging.ERROR, "vesper.effects.custom.performer"):
        for how in ("failure", "exception"):
            ask = custom("leak", {"how": how})
            failed = failure("custom", lambda ask=ask: performer.perform(ask))  # type: ignore[misc]
            assert "refused secret:token" in failed.message
            assert failed.__cause__ is None
    assert "RuntimeError: refused secret:token" in caplog.text
    assert "in leak" in caplog.text
    assert "hunter22\n" not in caplog.text
    assert "refused hunter22" not in caplog.text


# -- time -----------------------------------------------------------------------------------------


def test_a_call_that_takes_too_long() -> None:
    goes_on, ended = threading.Event(), threading.Event()

    @effect("wait")
    def wait() -> str:
        assert goes_on.wait(60)
        ended.set()
        return "late"

    begun = time.monotonic()
    failed = refused("wait", timeout=0.05)
    assert (failed.code, failed.may_have_happened) == ("timeout", True)
    assert failed.message == "the effect `wait` took longer than 0.05 s"
    assert time.monotonic() - begun < 20
    assert not ended.is_set()
    goes_on.set()
    assert ended.wait(30)  # nobody can stop it


def test_a_coroutine_that_takes_too_long_is_cancelled() -> None:
    cancelled = threading.Event()

    @effect("wait")
    async def wait() -> str:
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return "late"

    failed = refused("wait", timeout=0.05)
    assert (failed.code, failed.may_have_happened) == ("timeout", True)
    assert cancelled.wait(30)


def test_a_time_out_that_the_function_raises_is_its_own() -> None:
    @effect("sync")
    def sync() -> str:
        raise TimeoutError("the other side")

    @effect("async")
    async def own() -> str:
        raise TimeoutError("the other side")

    for name in ("sync", "async"):
        for timeout in (None, 30.0):
            failed = refused(name, timeout=timeout)
            assert (failed.code, "raised TimeoutError: the other side" in failed.message) == ("effect_failed", True)


def test_calls_that_never_end_hold_no_more_than_their_threads() -> None:
    from vesper.effects.worker_threads import NoThread, StillRunning, WorkerThreads

    goes_on = threading.Event()
    workers = WorkerThreads(limit=3)
    for _ in range(3):
        with pytest.raises(StillRunning):
            workers.run(goes_on.wait, 0.01)
    with pytest.raises(NoThread):
        workers.run(goes_on.wait, 0.01)
    goes_on.set()
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            assert workers.run(lambda: 7, 30) == 7
            break
        except NoThread:
            time.sleep(0.01)
    else:
        pytest.fail("no thread came free")


def test_many_at_once() -> None:
    @effect("double")
    def double(number: int) -> int:
        time.sleep(0.001)
        return number * 2

    results: dict[int, object] = {}

    def call(number: int) -> None:
        results[number] = perform("double", {"number": number}, INTEGER, timeout=30)

    threads = [threading.Thread(target=call, args=(number,)) for number in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {number: number * 2 for number in range(40)}


def test_a_forked_process_has_threads_of_its_own() -> None:
    @effect("sync")
    def sync() -> str:
        return "ok"

    @effect("async")
    async def own() -> str:
        return "ok"

    assert [perform("sync", timeout=30), perform("async", timeout=30)] == ["ok", "ok"]
    fork = multiprocessing.get_context("fork")
    results = fork.Queue()
    child = fork.Process(target=lambda: results.put([perform("sync", timeout=30), perform("async", timeout=30)]))
    child.start()
    assert results.get(timeout=60) == ["ok", "ok"]
    child.join()


# -- probes ---------------------------------------------------------------------------------------


def test_a_probe() -> None:
    done: dict[str, str] = {}

    def find(order: str, context: Context) -> object:
        assert context.is_repeat
        if order == "lost":
            raise EffectFailed("unavailable", "nobody can say")
        return done.get(order, NOT_DONE)

    @effect("book", effect_class="probe", request={"order": "string"}, response="string", probe=find)
    def book(order: str) -> str:
        done[order] = f"booking of {order}"
        return done[order]

    def probed(order: str) -> object:
        ask = custom("book", {"order": order}, effect_class="probe", is_repeat=True)
        return CustomPerformer().probe(ask)

    assert probed("a") is NOT_DONE
    assert perform("book", {"order": "a"}, effect_class="probe") == "booking of a"
    assert probed("a") == "booking of a"
    assert failure("custom", lambda: probed("lost")).message == "nobody can say"
    done["a"] = 7  # type: ignore[assignment]
    assert failure("custom", lambda: probed("a")).code == "bad_response"


# -- registering ----------------------------------------------------------------------------------


def test_what_is_registered_is_listed() -> None:
    @effect("score", effect_class="read", request={"customer": "string"}, response="array<decimal>")
    def score(customer: str) -> object:
        return []

    found = registered()["score"]
    assert (found.name, found.effect_class, str(found.request), str(found.response)) == (
        "score",
        "read",
        "{customer: string}",
        "array<decimal>",
    )
    assert found.function is score


def test_a_name_is_registered_once_and_both_places_are_named() -> None:
    @effect("score")
    def first() -> str:
        return "first"

    with pytest.raises(ValueError, match="the effect `score` is registered twice") as error:

        @effect("score")
        def second() -> str:
            return "second"

    assert ".first, " in str(error.value)
    assert ".second, " in str(error.value)
    assert str(error.value).count(f"{__file__}:") == 2
    assert perform("score") == "first"
    unregister("score")
    with pytest.raises(ValueError, match="no effect `score` is registered"):
        unregister("score")


def test_an_effect_that_nobody_registered() -> None:
    effect("score")(lambda: "x")
    failed = refused("scores")
    assert failed.code == "effect_failed"
    assert failed.message == (
        "no effect `scores` is registered: import the module with its @vesper.effect first; did you mean `score`?"
    )


def test_a_step_that_asks_in_another_class_is_refused() -> None:
    @effect("charge", effect_class="keyed")
    def charge(key: str) -> str:
        pytest.fail("it was called")

    failed = refused("charge", effect_class="unsafe", path="pay")
    assert failed.code == "effect_failed"
    assert failed.message.startswith("the effect `charge` is registered as `keyed` (")
    assert failed.message.endswith("the step `pay` asks for it as `unsafe`: write `effect: keyed` in the step")


def _takes(*, amount: int) -> str:
    return str(amount)


@pytest.mark.parametrize(
    "arguments, function, says",
    [
        ({"name": "Score"}, _takes, "`Score` cannot be the name of an effect"),
        ({"name": ""}, _takes, "cannot be the name of an effect"),
        ({"name": "x" * 200}, _takes, "cannot be the name of an effect"),
        ({"effect_class": "safe"}, _takes, "is of class unsafe or read or keyed or txn or probe, not `safe`"),
        ({"effect_class": "probe"}, _takes, "needs `probe=`"),
        ({"probe": _takes}, _takes, "has no use for `probe=`"),
        ({"request": "decimal"}, _takes, "is a record"),
        ({"request": {"amount": "decimel"}}, _takes, "no type is called `decimel`"),
        ({"request": {"amount": "array<decimal"}}, _takes, "`array<decimal` is no type"),
        ({"request": {"amount": ""}}, _takes, "`` is no type"),
        ({"request": {"amount": "map<float, string>"}}, _takes, "the keys of map<float, string> are"),
        ({"request": {"amount": "optional<optional<string>>"}}, _takes, "an optional of an optional"),
        ({"request": {"amount": "enum[a, a]"}}, _takes, "are at least one, and distinct"),
        ({"request": {"amount": "fn(T) -> string"}}, _takes, "no value"),
        ({"request": {"Amount": "decimal"}}, _takes, "`Amount` cannot be the name of a field"),
        ({"response": "array<" * 5000}, _takes, "is no type"),
        ({"request": {"total": "decimal"}}, _takes, "does not take the fields of its request"),
        ({"request": {"key": "string"}, "effect_class": "keyed"}, lambda key: key, "has a field `key`"),
        ({"request": {}}, lambda key: key, "only class `keyed` has one"),
        ({}, lambda x, /: x, "no parameter may be positional-only"),
    ],
)
def test_what_cannot_be_registered(arguments: dict[str, Any], function: Callable[..., object], says: str) -> None:
    with pytest.raises(ValueError) as error:
        effect(**{"name": "score", **arguments})(function)
    assert says in str(error.value)
    assert len(str(error.value)) < 500
    assert "score" not in registered()


def test_a_decorator_without_its_name() -> None:
    with pytest.raises(TypeError, match="an effect has a name"):
        effect(_takes)  # type: ignore[arg-type]


def test_a_field_with_the_name_of_a_parameter_of_ours() -> None:
    @effect("free")
    def free(context: Context) -> str:
        return "x"

    failed = refused("free", {"context": "mine"})
    assert "has a parameter `context` of its own" in failed.message
