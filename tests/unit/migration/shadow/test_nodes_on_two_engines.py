"""Every node with effects of this repository on two engines at once.

The scenarios of tests/unit/host/test_nodes_with_effects.py run in SQLite, Redis and loopback; each request is compared,
and both engines must agree.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from tests.support.servers import Redis
from tests.unit.host.tables import make_tables
from tests.unit.host.test_nodes_with_effects import SCENARIOS
from tests.unit.host.world import World, compiled_node
from tests.unit.migration.support.pairs import Both, Noting
from vesper.api.node import Node
from vesper.migration.compare.reports import Agreement
from vesper.migration.shadow.journal_replay import follow


@cache
def both_engines(name: str) -> Both:
    return Both.of(compiled_node(name))


class PairedWorld(World):
    """A world that runs every node on both engines."""

    watch: Noting
    kind: str
    """Program that combines the engines."""

    def node(self, name: str, engine: str | None = None) -> Node:
        both = both_engines(name)
        return Node(both.compiled, both.program(self.kind, self.watch), "interp", None, (), self.host)


PLAYED = [name for name in SCENARIOS if "hang" not in name]
"""Scenarios to run. Those that wait for a hanging server add nothing here, and take seconds."""


@pytest.mark.parametrize("number, name", list(enumerate(PLAYED)), ids=PLAYED)
def test_scenario(number: int, name: str, tmp_path: Path, redis_server: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    make_tables(dsn := f"sqlite:{tmp_path / 'shop.db'}")
    url = redis_server.url.removesuffix("/0") + "/13"  # emptied for each world: no other test uses this one
    with PairedWorld(tmp_path, dsn, url, "interp", monkeypatch) as world:
        # By turns: compared from the beginning, or at the end, on what was performed for the direct engine alone.
        world.watch, world.kind = Noting(), ("paired", "prefixes")[number % 2]
        SCENARIOS[name][1](world)
        for node, outcome in world.outcomes:
            if world.host.knows(outcome.trace_id):
                for program in (both_engines(node).python, both_engines(node).direct):
                    assert follow(program, world.entries(outcome)).difference is None
        assert [type(each) for each in world.watch.reports] == [Agreement] * len(world.outcomes), world.watch.reports
