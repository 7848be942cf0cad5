"""`vesper.testing.Stubs`: nodes with effects in tests, without servers."""

from __future__ import annotations

import asyncio
import gc
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest

import vesper
from vesper.engines.registry import ENGINES
from vesper.testing import NOON, StubError, StubMismatch, Stubs, Unanswered

ROOT = Path(__file__).parents[3]
PAYMENT = ROOT / "nodes/payments/payment_handler_v1.vsp"
SCHEMA = """CREATE TABLE transactions (
    transaction_id text PRIMARY KEY, order_id text, user_id text, amount text, status text,
    idempotency_key text UNIQUE, created_at text);"""
CHARGE = {"id": "ch_1", "status": "succeeded"}

AMBIENT = """\
node_id: ambient_v1
type: event_handler
intent: Ask for what every machine has
inputs: {event_id: {type: string, default: e1}}
outputs:
  success: {at: timestamp, later: timestamp, one: integer, two: integer, id: string, started: timestamp}
flow:
  - {step: at, operation: clock}
  - {step: later, operation: clock}
  - {step: one, operation: random, min: 1, max: 2}
  - {step: two, operation: random, min: 1, max: 2}
  - {step: id, operation: uuid}
  - {step: token, operation: secret, name: mail_key}
  - step: sent
    operation: external_api_call
    provider: mailer
    method: POST
    endpoint: /mails
    headers: {authorization: "{token}"}
    effect: unsafe
  - operation: return
    success: {at: at, later: later, one: one, two: two, id: id, started: now()}
security:
  capabilities_required: [clock.read.system, random.read.system, secrets.read.mail_key, network.http_client.mailer]
"""

LOOPED = """\
node_id: looped_v1
type: event_handler
intent: Ask in a loop
inputs: {event_id: {type: string, default: e1}, names: array<string>}
outputs:
  success: {scores: array<decimal>}
flow:
  - step: scores
    operation: loop
    over: name IN names
    steps:
      - {step: score, operation: custom, name: scoring, request: {name: name}, returns: decimal, effect: read,
         retry: {attempts: 3, on: [unavailable], backoff: {base: 60s}}}
    collect: score
  - operation: return
    success: {scores: scores.collected}
security: {capabilities_required: [effect.call.scoring]}
"""


@pytest.fixture
def host() -> Iterator[Stubs]:
    with Stubs() as stubs:
        yield stubs


@pytest.fixture(scope="module", params=list(ENGINES))
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def payment(engine: str) -> vesper.Node:
    """Compiled once, because that takes longer than any test."""
    return vesper.load(PAYMENT, engine=engine)


@pytest.fixture
def pay(payment: vesper.Node, engine: str, host: Stubs) -> Any:
    node = vesper.Node(payment._compiled, payment._program, engine, None, (), host)

    def call(order: str = "ord_1", amount: str = "9.99", **more: Any) -> Any:
        return node(order_id=order, user_id="cus_7", amount=amount, **more)

    return call


def loaded(tmp_path: Path, text: str, host: vesper.Host) -> vesper.Node:
    path = tmp_path / f"{text.split()[1]}.vsp"
    path.write_text(text, encoding="utf-8")
    return vesper.load(path, host=host)


# -- answers --------------------------------------------------------------------------------------


def test_a_step_is_answered_and_its_request_is_recorded(host: Stubs, pay: Any) -> None:
    # with a field that the node does not declare, as providers send
    host.answer("call_stripe_api", {**CHARGE, "object": "charge"})
    host.answer("record", 1)
    outcome = pay()
    assert outcome.ok, outcome.error
    assert (outcome["transaction_id"], outcome["at"]) == ("ch_1", NOON)
    assert [(each.step, each.effect) for each in host.asked] == [
        ("begin", "state_transition"),
        ("call_stripe_api", "http_request"),
        ("record", "database_write"),
        ("settle", "state_transition"),
    ]
    charge = host.asked[1]
    assert (charge.key, charge.effect_class, charge.node) == ("ord_1", "keyed", "payment_handler_v1")
    assert charge["body"] == {"amount": 999, "currency": "usd", "customer": "cus_7", "description": "order ord_1"}
    assert charge.execution == outcome.trace_id
    with pytest.raises(KeyError, match="asks with no `bdy`; did you mean `body`"):
        charge["bdy"]
    host.assert_asked("record", bind={"amount": Decimal("9.99"), "created_at": NOON, "user_id": ANY})
    host.assert_asked("settle", from_="processing", to="paid", times=1)
    host.assert_not_asked("refund")
    host.assert_all_used()


def test_the_most_particular_answer_is_taken(host: Stubs, pay: Any) -> None:
    host.answer(effect="http_request", with_=lambda asked: {"id": f"of {asked['endpoint']}", "status": "pending"})
    host.answer("record", 1)
    assert pay("ord_1")["transaction_id"] == "of /v1/charges"
    host.answer("call_stripe_api", {**CHARGE, "id": "replaced"})
    host.answer("call_stripe_api", CHARGE)
    assert pay("ord_2")["transaction_id"] == "ch_1"
    host.answer("call_stripe_api", fails="http_402", when={"body": {"amount": 500}})
    assert pay("ord_3", "5.00").error.code == "card_declined"
    assert pay("ord_4")["transaction_id"] == "ch_1"
    host.answer("call_stripe_api", {**CHARGE, "id": "first"}, times=1)
    host.answer("call_stripe_api", {**CHARGE, "id": "second"}, times=1)
    assert [pay(f"ord_{n}")["transaction_id"] for n in range(5, 8)] == ["first", "second", "ch_1"]
    host.answer("call_stripe_api", fails="timeout", when=lambda asked: asked.key == "ord_9")
    assert pay("ord_9").error.code == "provider_unavailable"
    host.assert_all_used()


def test_an_unanswered_request_reports_how_to_answer_it(host: Stubs, pay: Any) -> None:
    host.answer("call_strpe_api", CHARGE)
    with pytest.raises(Unanswered) as raised:
        pay()
    told = str(raised.value)
    assert told.startswith("nobody answers `call_stripe_api` (http_request) of payment_handler_v1\n")
    assert "body={amount: 999, currency" in told
    assert 'host.answer("call_stripe_api", {"id": "…", "status": "succeeded"})' in told
    assert "there is an answer for `call_strpe_api`" in told
    assert isinstance(raised.value, vesper.VesperError)


def test_the_line_that_is_proposed_answers_it(host: Stubs, pay: Any) -> None:
    for step in ("call_stripe_api", "record"):
        with pytest.raises(Unanswered, match=f"`{step}`") as raised:
            pay(f"before {step}")
        line = next(each for each in str(raised.value).splitlines() if each.startswith("    host.answer("))
        eval(line.strip(), {"host": host})
    assert pay()["transaction_id"] == "…"
    host.assert_all_used()


def test_an_answer_for_other_requests_is_reported(host: Stubs, pay: Any) -> None:
    host.answer("call_stripe_api", CHARGE, when={"body": {"amount": 500}})
    with pytest.raises(Unanswered, match=r"not this: answer\(.*test_doubles\.py:\d+: body\.amount is .*999.*, not 500"):
        pay()
    host.answer("call_stripe_api", CHARGE, times=1)
    host.answer("record", 1)
    assert pay("ord_2").ok
    with pytest.raises(Unanswered, match="given 1 times already"):
        pay("ord_3")


def test_sql_without_a_database_is_to_be_answered(host: Stubs, pay: Any) -> None:
    with pytest.raises(Unanswered, match=r"`validate_request` \(database_query\)(.|\n)*Stubs\(database="):
        pay(idempotency_key="k-1")


@pytest.mark.parametrize(
    "answer, why",
    [
        ({"id": 5, "status": "succeeded"}, r"at `id`, is no string: wrong_type(.|\n)*declared: (.|\n)*answered: "),
        ({"id": "ch_1"}, r"has no `status`, which is declared as enum\[succeeded, pending\]"),
        ({"id": "ch_1", "status": "done"}, "at `status`, is no enum"),
        (None, "is no "),
    ],
)
def test_an_answer_of_the_wrong_type_reaches_node_and_test(host: Stubs, pay: Any, answer: object, why: str) -> None:
    host.answer("call_stripe_api", answer)
    with pytest.raises(StubMismatch, match=why) as raised:
        pay()
    assert "test_doubles.py:" in str(raised.value)
    (run,) = host.journal.find()
    failed = [each.entry.body["code"] for each in host.journal.read(run.execution).entries if "code" in each.entry.body]
    assert failed[0] == "bad_response"  # the node got the same failure


def failing(asked: vesper.testing.Asked) -> object:
    raise vesper.EffectFailed("conflict", f"{asked.step} cannot fail so")


def test_an_impossible_answer_of_an_effect_is_reported(host: Stubs, pay: Any) -> None:
    host.answer("call_stripe_api", CHARGE)
    host.answer("record", fails="http_402")
    host.answer("refund", {})
    with pytest.raises(StubMismatch, match="`database_write` never fails with `http_402`, but with timeout, unavail"):
        pay()
    host.answer("call_stripe_api", with_=failing)
    with pytest.raises(
        StubMismatch, match=r"`http_request` never fails with `conflict`, but with timeout, .*http_400 to"
    ):
        pay("ord_1b")
    host.answer("begin", "paid")
    with pytest.raises(StubMismatch, match=r"one of pending, payment_failed, not \"paid\""):
        pay("ord_2")


def test_a_float_for_a_decimal_is_reported(host: Stubs, tmp_path: Path) -> None:
    node = loaded(tmp_path, LOOPED, host)
    host.answer("score", 0.5)
    with pytest.raises(StubMismatch, match=r"a decimal is exact: write Decimal"):
        node(names=["a"])


def test_a_function_may_fail_or_break_the_test(host: Stubs, pay: Any) -> None:
    def decline(asked: vesper.testing.Asked) -> object:
        raise vesper.EffectFailed("http_402", "no money")

    host.answer("call_stripe_api", with_=decline)
    assert pay().error.code == "card_declined"

    def check(asked: vesper.testing.Asked) -> object:
        assert asked["body"]["currency"] == "eur", "the currency"
        return CHARGE

    host.answer("call_stripe_api", with_=check)
    with pytest.raises(AssertionError, match="the currency"):
        pay("ord_2")


def test_a_function_may_run_a_node_itself(host: Stubs, pay: Any) -> None:
    host.answer("record", 1)
    host.answer("call_stripe_api", CHARGE)
    host.answer("call_stripe_api", with_=lambda _: {**CHARGE, "id": pay("inner")["transaction_id"]}, when={"key": "a"})
    assert pay("a")["transaction_id"] == "ch_1"
    host.answer("call_stripe_api", {"id": 1}, when={"key": "wrong"})
    with pytest.raises(StubMismatch):
        pay("wrong")
    assert pay("b").ok  # the earlier mistake does not count


@pytest.mark.parametrize(
    "arguments, why",
    [
        ({"step": "a"}, "says nothing"),
        ({"step": "a", "value": 1, "fails": "timeout"}, "more than one"),
        ({"value": 1}, "say whose answer it is"),
        ({"effect": "http_requst", "value": 1}, "did you mean `http_request`"),
        ({"step": "a", "fails": "declined"}, "nothing fails with `declined`"),
        ({"step": "a", "with_": 5}, "a function"),
        ({"step": "a", "value": 1, "times": 0}, "1 or more"),
    ],
)
def test_an_answer_that_cannot_be_meant_is_refused(host: Stubs, arguments: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        host.answer(**arguments)


def test_a_condition_on_what_no_request_has_is_refused(host: Stubs, pay: Any) -> None:
    with pytest.raises(StubError, match=r"`http_request` has no `bdy`; did you mean `body`"):
        host.answer(effect="http_request", value=1, when={"bdy": 1})
    host.answer("call_stripe_api", CHARGE, when={"bind": 1})
    with pytest.raises(StubError, match="`http_request` has no `bind`"):
        pay()


# -- assertions -----------------------------------------------------------------------------------


def test_failed_assertions_list_the_requests(host: Stubs, pay: Any) -> None:
    host.answer("call_stripe_api", CHARGE)
    host.answer("record", 1)
    pay()
    with pytest.raises(AssertionError, match=r"body\.amount is .*999.*, not 1000"):
        host.assert_asked("call_stripe_api", body={"amount": 1000})
    with pytest.raises(AssertionError, match=r'a decimal is exact: write Decimal\("9.99"\)'):
        host.assert_asked("record", bind={"amount": 9.99})
    with pytest.raises(AssertionError, match=r"body has no 'cents'"):
        host.assert_asked("call_stripe_api", body={"cents": 1000})
    with pytest.raises(AssertionError, match="the steps with requests are begin, call_stripe_api, record, settle"):
        host.assert_asked("charge")
    with pytest.raises(AssertionError, match="`record` asked so once, not 2 times"):
        host.assert_asked("record", times=2)
    with pytest.raises(AssertionError, match="`record` asked so once"):
        host.assert_not_asked("record")
    with pytest.raises(StubError, match="no `bnd`; did you mean `bind`"):
        host.assert_asked("record", bnd={})
    host.assert_asked("refund", times=0)


def test_unused_answers_are_reported(host: Stubs, pay: Any) -> None:
    host.answer("call_stripe_api", CHARGE)
    host.answer("record", 1, times=2)
    host.answer("refnd", {})
    host.answer("refund", {}, optional=True)
    assert pay().ok
    with pytest.raises(AssertionError) as raised:
        host.assert_all_used()
    told = str(raised.value).splitlines()
    assert len(told) == 3
    assert 'answer("record", 1, times=2) at tests/unit/testing/test_doubles.py:' in told[1].replace(str(ROOT) + "/", "")
    assert told[1].endswith("it was used 1 times of 2")
    assert told[2].endswith("never asked for; no node that ran has such a step: did you mean `refund`?")


# -- what is done in the process ------------------------------------------------------------------


def test_time_chance_and_names_are_the_same_in_every_run(tmp_path: Path) -> None:
    found = []
    for _ in range(2):
        with Stubs(tick=timedelta(seconds=1)) as host:
            host.answer("sent", {})
            outcome = loaded(tmp_path, AMBIENT, host)()
            found.append(outcome.value)
            host.assert_asked("sent", headers={"authorization": "secret:mail_key"})
    assert found[0] == found[1]
    assert found[0] == {
        "at": NOON, "later": NOON + timedelta(seconds=1), "one": 1, "two": 2,
        "id": "00000000-0000-4000-8000-000000000001", "started": NOON,
    }  # fmt: skip


def test_time_and_random_numbers_can_be_set(tmp_path: Path) -> None:
    start = datetime(2030, 1, 1, tzinfo=UTC)
    with Stubs(time=start) as host:
        node = loaded(tmp_path, AMBIENT, host)
        host.answer("sent", {})
        host.answer("two", 2)
        host.answer("id", "an-id")
        assert node()["at"] == start
        host.time += timedelta(days=1)
        outcome = node()
        assert (outcome["at"], outcome["started"], outcome["id"]) == (*[start + timedelta(days=1)] * 2, "an-id")
        assert node(now="2031-01-01T00:00:00Z")["started"] == datetime(2031, 1, 1, tzinfo=UTC)
        assert node.call({}, now=NOON)["started"] == NOON
        assert node.call({})["started"] == start + timedelta(days=1)
        with pytest.raises(ValueError, match="with a time zone"):
            host.time = datetime(2030, 1, 1)  # noqa: DTZ001
    with pytest.raises(ValueError, match="with a time zone"):
        Stubs(time=datetime(2030, 1, 1))  # noqa: DTZ001


def test_a_database_of_the_test_does_the_sql(tmp_path: Path) -> None:
    file = tmp_path / "schema file.sql"
    file.write_text(SCHEMA, encoding="utf-8")
    other = tmp_path / "shop.db"
    with closing(sqlite3.connect(other)) as connection:
        connection.executescript(SCHEMA)
        connection.execute("INSERT INTO transactions VALUES ('ch_0', 'o', 'u', '9.99', 'succeeded', 'k-0', NULL)")
        connection.commit()
    loaded = vesper.load(PAYMENT)
    for database, known in ((SCHEMA, 0), (file, 0), (str(file), 0), (other, 1)):
        with Stubs(database=database) as host:
            host.answer("call_stripe_api", CHARGE)
            node = vesper.Node(loaded._compiled, loaded._program, "python", None, (), host)
            first = node(order_id="ord_1", user_id="u", amount="9.99", idempotency_key="k-1")
            assert first.ok, first.error
            assert node(order_id="ord_1", user_id="u", amount="9.99", idempotency_key="k-1")["is_repeat"]
            assert host.rows("SELECT amount FROM transactions WHERE idempotency_key = ?", "k-1") == [("9.99",)]
            assert host.rows("SELECT count(*) FROM transactions") == [(1 + known,)]
            assert host.rows("SELECT state FROM vesper_states WHERE entity = 'ord_1'") == [("paid",)]
            host.assert_asked("call_stripe_api", times=1)
    with closing(sqlite3.connect(other)) as connection:
        assert connection.execute("SELECT count(*) FROM transactions").fetchone() == (1,)  # a copy was used


def test_an_answer_goes_before_the_database(host: Stubs, pay: Any) -> None:
    host.use_database(SCHEMA)
    host.answer("call_stripe_api", CHARGE)
    host.answer("record", fails="conflict")
    assert pay().error.code == "already_recorded"
    with pytest.raises(StubError, match="before the first node runs"):
        host.use_database(SCHEMA, "other")


@pytest.mark.parametrize(
    "schema, why",
    [
        ("nothing.sql", "there is no file `nothing.sql`"),
        ("CREATE TABL x (y text)", 'does not run: near "TABL"'),
        (Path("/nowhere/at all.db"), "there is no file"),
    ],
)
def test_a_database_that_is_none_is_refused(host: Stubs, schema: Any, why: str) -> None:
    with pytest.raises(StubError, match=why):
        host.use_database(schema)


def test_a_file_that_is_neither_sql_nor_a_database_is_refused(host: Stubs, tmp_path: Path) -> None:
    (tmp_path / "x.bin").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(StubError, match="neither an SQLite database nor text"):
        host.use_database(tmp_path / "x.bin")
    host.use_database("CREATE TABLE a (b text)", "side")
    with pytest.raises(StubError, match="`side` is given twice"):
        host.use_database("CREATE TABLE a (b text)", "side")
    with pytest.raises(StubError, match="no database `other`"):
        host.rows("SELECT 1", database="other")


# -- being a Host ---------------------------------------------------------------------------------


def test_loops_are_answered_by_iteration_or_as_a_whole(host: Stubs, tmp_path: Path) -> None:
    node = loaded(tmp_path, LOOPED, host)
    host.answer("score", with_=lambda asked: Decimal(len(asked["request"]["name"])))
    host.answer("score[1]", Decimal("0.5"))
    assert node(names=["a", "bb", "ccc"])["scores"] == [Decimal(1), Decimal("0.5"), Decimal(3)]
    host.assert_asked("score", times=3)
    host.assert_asked("score[2]", request={"name": "ccc"})
    host.assert_all_used()


def test_one_answer_completes_a_request_without_retries(tmp_path: Path) -> None:
    with Stubs() as host:
        host.answer("score", fails="unavailable")
        outcome = loaded(tmp_path, LOOPED, host)(names=["a"])
        assert outcome.error is not None
        assert outcome.error.code == "unavailable"
        host.assert_asked("score", times=1)
    with Stubs(retries=True) as host:  # the node would wait one minute, then two
        host.answer("score", fails="unavailable", times=2)
        host.answer("score", Decimal(1))
        assert loaded(tmp_path, LOOPED, host)(names=["a"])["scores"] == [Decimal(1)]
        host.assert_asked("score", times=3)
        host.answer("score", fails="timeout", times=1)  # not retried by the step
        outcome = loaded(tmp_path, LOOPED, host)(names=["a"])
        assert outcome.error is not None
        assert outcome.error.code == "timeout"


def test_a_denial_of_the_node_applies_in_tests(host: Stubs, tmp_path: Path) -> None:
    own = "security: {denied_capabilities: [secrets.read], capabilities_required: [secrets.read.any, "
    text = LOOPED.replace("security: {capabilities_required: [", own)
    host.answer("score", 1)
    outcome = loaded(tmp_path, text, host)(names=["a"])
    assert outcome.error is not None
    assert (outcome.error.kind, outcome.error.code) == ("denied", "secrets.read.any")


def test_coroutines_and_threads_may_use_it(host: Stubs, pay: Any) -> None:
    host.answer("call_stripe_api", CHARGE)
    host.answer("record", 1)
    node = vesper.load(PAYMENT, host=host)
    assert asyncio.run(node.arun(order_id="ord_a", user_id="u", amount="5")).ok
    with pytest.raises(Unanswered):
        asyncio.run(node.arun(order_id="ord_b", user_id="u", amount="5", idempotency_key="k"))
    done: list[Any] = []
    threads = [threading.Thread(target=lambda n=n: done.append(pay(f"ord_{n}"))) for n in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert [each.ok for each in done] == [True] * 4
    assert len(host.asked) == 4 * 5 + 1


def test_it_leaves_nothing_behind() -> None:
    before = set(threading.enumerate())
    with Stubs(database=SCHEMA) as host:
        folder = host.folder
        host.answer("call_stripe_api", CHARGE)
        assert vesper.load(PAYMENT, host=host)(order_id="o", user_id="u", amount="5").ok
        assert folder.is_dir()
    assert not folder.exists()
    host.close()
    dropped = Stubs(database=SCHEMA)
    dropped.answer("call_stripe_api", CHARGE)
    assert vesper.load(PAYMENT, host=dropped)(order_id="o", user_id="u", amount="5").ok
    folder = dropped.folder
    del dropped
    gc.collect()
    assert not folder.exists()
    assert not [each for each in set(threading.enumerate()) - before if each.name.startswith("vesper-host")]


def test_the_module_is_there_under_its_name() -> None:
    from vesper import testing

    assert testing is vesper.testing
    assert "testing" in dir(vesper)
    assert set(testing.__all__) == {name for name in vars(testing) if name[0].isupper()} | {"fixed_sources", "model"}
