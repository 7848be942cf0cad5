"""payment_handler for real: a provider on loopback, SQLite and Postgres, on both engines."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest

import vesper
from tests.support.servers import Postgres
from tests.support.web import FakeStripe, closes, hangs, message
from vesper.compiler import compile_file
from vesper.config.settings import config_from
from vesper.engines.registry import ENGINES
from vesper.host.host import Host
from vesper.journal.entry import Entry, Kind
from vesper.migration.shadow.journal_replay import follow

NODE = Path(__file__).parents[3] / "nodes" / "payments" / "payment_handler_v1.vsp"
TABLE = """CREATE TABLE transactions (
    transaction_id text PRIMARY KEY, order_id text, user_id text, amount {decimal}, status text,
    idempotency_key text UNIQUE, created_at {timestamp})"""
API_KEY = "sk_test_0123456789abcdef"


@dataclass
class Shop:
    """Everything that a payment needs, and what is in it."""

    host: Host
    stripe: FakeStripe
    dsn: str
    node: Any

    def pay(self, order: str = "ord_1", user: str = "cus_7", amount: str = "99.99", key: str | None = None) -> Any:
        return self.node(order_id=order, user_id=user, amount=amount, idempotency_key=key)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        if self.dsn.startswith("sqlite:"):
            with closing(sqlite3.connect(self.dsn.removeprefix("sqlite:"))) as connection:
                return connection.execute(sql).fetchall()
        with psycopg.connect(self.dsn) as postgres:
            return postgres.execute(sql.encode()).fetchall()

    def state(self, order: str) -> str | None:
        found = self.rows(f"SELECT state FROM vesper_states WHERE entity = '{order}'")  # noqa: S608
        return found[0][0] if found else None

    def entries(self, outcome: Any) -> list[Entry]:
        return [each.entry for each in self.host.journal.read(outcome.trace_id).entries]

    def kinds(self, outcome: Any) -> list[str]:
        return [f"{each.kind} {each.path}".strip() for each in self.entries(outcome)]


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        dsn = f"sqlite:{tmp_path / 'shop.db'}"
        with closing(sqlite3.connect(tmp_path / "shop.db")) as connection:
            connection.execute(TABLE.format(decimal="text", timestamp="text"))
        return dsn
    server: Postgres = request.getfixturevalue("postgres")
    dsn = server.new_database()
    with psycopg.connect(dsn) as postgres:
        postgres.execute(TABLE.format(decimal="numeric", timestamp="timestamptz").encode())
    return dsn


@pytest.fixture(params=list(ENGINES))
def shop(
    request: pytest.FixtureRequest, tmp_path: Path, database: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Shop]:
    monkeypatch.setenv("VESPER_SECRET_STRIPE_API_KEY", API_KEY)
    with FakeStripe(api_key=API_KEY) as stripe:
        settings = {
            "grants": [{"nodes": ["payment_handler"], "allow": ["database.*", "state.*", "network.*", "secrets.*"]}],
            "providers": {
                "stripe": {
                    "base_url": stripe.url,
                    "allow_private_addresses": True,
                    "auth": {"header": "Authorization", "value": "Bearer {secret:stripe_api_key}"},
                }
            },
            "databases": {"main": {"dsn": database}},
            "journal": {"dsn": f"sqlite:{tmp_path / 'journal.db'}" if database.startswith("sqlite") else database},
        }
        with Host(config_from(settings, tmp_path)) as host:
            node = vesper.load(NODE, engine=request.param, host=host)
            yield Shop(host, stripe, database, node)


def assert_the_other_engine_agrees(shop: Shop, outcome: Any) -> None:
    """Fed the records of the one, the other asks for the same and comes to the same."""
    compiled, _ = compile_file(NODE)
    assert compiled is not None
    for name, engine in ENGINES.items():
        followed = follow(engine.load(compiled), shop.entries(outcome))
        assert followed.difference is None, name


def test_a_card_is_charged_once_recorded_and_the_order_is_paid(shop: Shop) -> None:
    outcome = shop.pay(key="k-1")
    assert outcome.ok, outcome.error
    assert (outcome["transaction_id"], outcome["status"], outcome["is_repeat"]) == ("ch_1", "completed", False)
    assert shop.state("ord_1") == "paid"
    rows = shop.rows("SELECT transaction_id, amount, status FROM transactions")
    assert [(name, Decimal(str(amount)), status) for name, amount, status in rows] == [
        ("ch_1", Decimal("99.99"), "succeeded")
    ]
    assert shop.stripe.counts()["charges_by_key"] == {"ord_1": 1}
    assert shop.kinds(outcome) == [
        "START",
        "RESULT validate_request",
        "INTENT begin", "RESULT begin", "STATE begin",
        "INTENT call_stripe_api", "RESULT call_stripe_api",
        "INTENT record", "RESULT record",
        "INTENT settle", "RESULT settle", "STATE settle",
        "END",
    ]  # fmt: skip
    assert_the_other_engine_agrees(shop, outcome)


def test_a_repeat_gets_the_first_answer_and_charges_nothing(shop: Shop) -> None:
    assert shop.pay(key="k-1").ok
    again = shop.pay(key="k-1")
    assert (again["transaction_id"], again["is_repeat"]) == ("ch_1", True)
    other = shop.pay(key="k-1", amount="5")
    assert other.error.code == "other_amount"
    assert shop.stripe.counts()["charges"] == 1


def test_a_paid_order_is_not_paid_again(shop: Shop) -> None:
    assert shop.pay().ok
    assert shop.pay().error.code == "order_not_pending"
    assert shop.stripe.counts()["charges"] == 1


def test_a_declined_card_is_a_declared_error_and_may_be_tried_again(shop: Shop) -> None:
    outcome = shop.pay(user="declined")
    assert outcome.error.code == "card_declined"
    assert shop.state("ord_1") == "payment_failed"
    assert [each.body["code"] for each in shop.entries(outcome) if each.kind is Kind.FAILED] == ["http_402"]
    assert_the_other_engine_agrees(shop, outcome)


def test_a_provider_that_closes_early_is_tried_again_under_the_same_key(shop: Shop) -> None:
    shop.stripe.drop_answers = 2
    outcome = shop.pay()
    assert outcome.ok, outcome.error
    assert shop.stripe.counts()["charges_by_key"] == {"ord_1": 1}
    decisions = [each.body["decision"] for each in shop.entries(outcome) if each.kind is Kind.VALUE]
    assert decisions == ["retry", "retry"]
    sent = [got.headers["idempotency-key"] for got in shop.stripe.got if got.path == "/v1/charges"]
    assert sent == ["ord_1"] * 3
    assert_the_other_engine_agrees(shop, outcome)


@pytest.mark.parametrize("script", [closes, hangs], ids=["closes", "hangs"])
def test_a_provider_that_never_answers_leaves_the_order_unpaid(
    shop: Shop, script: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if script is hangs:  # the node would wait for thirty seconds
        node = tmp_path / NODE.name
        node.write_text(NODE.read_text("utf-8").replace("timeout: 30s", "timeout: 100ms"), encoding="utf-8")
        shop.node = vesper.load(node, engine=shop.node.engine, host=shop.host)
    monkeypatch.setattr(shop.stripe, "answer", script)
    outcome = shop.pay()
    assert outcome.error.code == "provider_unavailable"
    assert shop.state("ord_1") == "payment_failed"
    assert_the_other_engine_agrees(shop, outcome)


def test_an_error_of_the_provider_is_tried_no_more_than_the_node_says(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shop.stripe, "answer", lambda _, wire: wire.send(message(503)))
    assert shop.pay().error.code == "provider_unavailable"
    assert len(shop.stripe.got) == 1  # the node retries `timeout` and `unavailable`


def test_a_charge_that_cannot_be_recorded_is_given_back(shop: Shop) -> None:
    if shop.dsn.startswith("sqlite:"):
        with closing(sqlite3.connect(shop.dsn.removeprefix("sqlite:"))) as connection:
            connection.execute("ALTER TABLE transactions RENAME TO gone")
    else:
        with psycopg.connect(shop.dsn) as postgres:
            postgres.execute("ALTER TABLE transactions RENAME TO gone")
    outcome = shop.pay()
    assert outcome.error.kind == "failed"
    counts = shop.stripe.counts()
    assert counts["refunds_by_key"] == {"refund ch_1": 1}
    assert shop.state("ord_1") == "payment_failed"
    assert_the_other_engine_agrees(shop, outcome)


def test_the_secret_is_in_nothing_that_is_kept(shop: Shop, tmp_path: Path) -> None:
    outcome = shop.pay(key="k-1")
    assert outcome.ok
    assert any(API_KEY in got.headers["authorization"] for got in shop.stripe.got)
    shop.host.close()
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert API_KEY.encode() not in path.read_bytes(), path
    if not shop.dsn.startswith("sqlite:"):
        with psycopg.connect(shop.dsn) as postgres:
            for (table,) in postgres.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall():
                whole = f"SELECT t::text FROM {table} t"  # noqa: S608
                for row in postgres.execute(whole.encode()).fetchall():
                    assert API_KEY not in row[0], table


def test_without_its_grants_nothing_is_sent(shop: Shop, tmp_path: Path) -> None:
    for missing in ("database.read", "database.write", "state", "network", "secrets"):
        every = ("database.read.*", "database.write.*", "state.*", "network.*", "secrets.*")
        allow = [name for name in every if not name.startswith(missing)]
        config = shop.host.config
        grants = config_from({"grants": [{"nodes": ["*"], "allow": allow}]}, tmp_path).grants
        with Host(type(config)(config.path, config.folder, grants, config.journal, parts=config.parts)) as host:
            node = vesper.load(NODE, engine=shop.node.engine, host=host)
            order = f"ord_{missing}"
            outcome = node(order_id=order, user_id="cus_7", amount="5", idempotency_key=order)
            assert outcome.error is not None
            assert outcome.error.kind == "denied", missing
            assert outcome.error.code.startswith(missing)
            assert shop.kinds(outcome) == ["START", "END"]
    assert shop.stripe.got == []
    assert shop.rows("SELECT * FROM transactions") == []
