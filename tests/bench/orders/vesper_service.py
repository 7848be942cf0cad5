"""Orders paid by `payment_handler_v1` in a mode: `python -m tests.bench.orders.vesper_service FOLDER URL MODE`.

The node gets the evidence that the mode needs for the path of a paid order.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import vesper
from tests.bench.orders.contestant import AMOUNT, API_KEY, main
from tests.unit.migration.support.routed import put_into
from vesper.compiler import compile_file
from vesper.config.settings import config_from
from vesper.migration.compare.paths import PathNote
from vesper.migration.control.modes import Mode
from vesper.migration.router.routes import Routes

NODE = Path(__file__).parents[3] / "nodes" / "payments" / "payment_handler_v1.vsp"
_SHADOWED = 20
"""Orders of which the direct engine learns the path."""


class VesperService:
    def __init__(self, folder: Path, url: str) -> None:
        os.environ["VESPER_SECRET_STRIPE_API_KEY"] = API_KEY
        settings = {
            "grants": [{"nodes": ["payment_handler"], "allow": ["database.*", "state.*", "network.*", "secrets.*"]}],
            "providers": {
                "stripe": {
                    "base_url": url,
                    "allow_private_addresses": True,
                    "auth": {"header": "Authorization", "value": "Bearer {secret:stripe_api_key}"},
                }
            },
            "databases": {"main": {"dsn": f"sqlite:{folder / 'shop.db'}"}},
            "journal": {"dsn": f"sqlite:{folder / 'journal.db'}"},
            "recovery": {"enabled": False},
            "migration": {"store": f"sqlite:{folder / 'migration.db'}"},
        }
        config = config_from(settings, folder)
        self._host = vesper.Host(config)
        self._routes = Routes(config)
        self._node = vesper.load(NODE, engine="auto", host=self._host, routes=self._routes)
        self._enter_mode(Mode(sys.argv[3]), folder.name)

    def _enter_mode(self, mode: Mode, name: str) -> None:
        for number in range(_SHADOWED):
            self.pay(f"shadowed_{name}_{number}", "cus_7", f"shadowed_{name}_{number}")
        self._routes.followers.drain(60)
        self._routes.migration.tend(is_all=True)
        compiled, bag = compile_file(NODE)
        assert compiled is not None, bag.sorted()
        program = self._routes.program(compiled)
        texts = self._routes.migration.store.paths(program.live.key).values()
        put_into(self._routes, program, mode, *map(PathNote.from_text, texts))

    def pay(self, order: str, user: str, key: str) -> None:
        outcome = self._node(order_id=order, user_id=user, amount=AMOUNT, idempotency_key=key)
        assert outcome.ok, outcome.error

    def close(self) -> None:
        self._host.close()
        self._routes.close()


if __name__ == "__main__":
    main(VesperService)
