"""A shop with `payment_handler_v1`: a database, a counting provider on loopback, a Host.

The clock is scaled: with `scale=100` a second of the node's policies is ten milliseconds, and a provider that responds
after 45 seconds takes less than half a second.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Self

import pytest

from tests.support.web import FakeStripe
from vesper.compiler import Compiled, compile_file
from vesper.config.settings import Config, read_config
from vesper.engines.registry import ENGINES
from vesper.host.host import Host
from vesper.host.prepared import Ran
from vesper.replay.live import LiveHost
from vesper.testing import Sources

ROOT = Path(__file__).parents[2]
NOW = datetime(2025, 1, 8, 14, 23, 15, tzinfo=UTC)
ORDER = "ord_0123456789abcdef"
KEY = "sk_test_0123456789abcdef"
_TABLE = """CREATE TABLE transactions (transaction_id text PRIMARY KEY, order_id text, user_id text, amount text,
    status text, idempotency_key text UNIQUE, created_at text)"""


def founding_text(is_sensitive: bool = False) -> str:
    """Return the handler of the founding document, with the first of its cases.

    Its timeout has no handler and ends the execution at the third step.
    """
    text = (ROOT / "nodes" / "payments" / "payment_handler_v1.vsp").read_text("utf-8")
    text = text.partition("    - name: without a key nobody is asked about repeats")[0]
    text = text.replace("      timeout, unavailable, http_5xx:", "      http_5xx:")
    return text if is_sensitive else text.replace("  sensitive_data: [user_id]\n", "")


class Shop:
    def __init__(
        self,
        folder: Path,
        monkeypatch: pytest.MonkeyPatch,
        text: str | None = None,
        scale: float = 100,
        settings: str = "",
    ) -> None:
        self.folder = folder
        self.scale = scale
        self._sources = Sources(wait_scale=0, timeout_scale=1 / scale)
        self.stripe = FakeStripe(api_key=KEY)
        monkeypatch.chdir(folder)
        monkeypatch.setenv("VESPER_SECRET_STRIPE_API_KEY", KEY)
        self.node = folder / "nodes" / "payment_handler_v1.vsp"
        self.node.parent.mkdir()
        self.node.write_text(founding_text() if text is None else text, encoding="utf-8")
        with closing(sqlite3.connect(folder / "shop.db")) as connection:
            connection.execute(_TABLE)
        self.configure(settings)

    def configure(self, settings: str = "") -> None:
        (self.folder / "vesper.toml").write_text(
            f"""\
[[grants]]
nodes = ["*"]
allow = ["*"]

[providers.stripe]
base_url = "{self.stripe.url}"
allow_private_addresses = true
auth = {{header = "Authorization", value = "Bearer {{secret:stripe_api_key}}"}}

[databases.main]
dsn = "sqlite:shop.db"

[recovery]
enabled = false

[journal]
dsn = "sqlite:journal.db"
{settings}""",
            encoding="utf-8",
        )

    @property
    def config(self) -> Config:
        return read_config(self.folder / "vesper.toml")

    def compiled(self) -> Compiled:
        found, bag = compile_file(self.node.relative_to(self.folder))
        assert found is not None, bag.sorted()
        return found

    def host(self) -> Host:
        return Host(self.config, sources=self._sources)

    def live_host(self) -> LiveHost:
        return LiveHost(self.config, self._sources)

    def answers_after(self, seconds: float) -> None:
        """Set the provider's latency in seconds of the scaled clock."""
        self.stripe.latency = seconds / self.scale

    def pay(self, engine: str = "python", **inputs: object) -> Ran:
        """Make the founding document's payment, unless other inputs are given."""
        given = {"order_id": ORDER, "user_id": "user_123", "amount": Decimal("99.99"), "idempotency_key": "k-1"}
        compiled = self.compiled()
        with self.host() as host:
            return host.run(host.prepare(compiled, ENGINES[engine].load(compiled), engine), {**given, **inputs}, NOW)

    def rows(self) -> list[tuple[str, str]]:
        """Return the recorded orders with their status."""
        with closing(sqlite3.connect(self.folder / "shop.db")) as connection:
            return connection.execute("SELECT order_id, status FROM transactions ORDER BY 1").fetchall()

    def close(self) -> None:
        self.stripe.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
