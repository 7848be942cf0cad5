"""Runs of a routed node that wait: resumed through its route, compared once, when they end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.host.recovery.sleeping import HOUR_US, SLEEPER, Clock, clocked_host
from tests.unit.host.recovery.test_keeper import AN_HOUR
from tests.unit.host.small import node_from
from tests.unit.migration.support.routed import Misbehaving, divergences_of, lying, put_into, routes_in, state_of
from vesper.engines.outcome import Returned
from vesper.host.host import Host
from vesper.host.waiting import RunWaits
from vesper.migration.control.modes import Mode
from vesper.migration.router.router import RoutedProgram


class Here:
    """A routed sleeper on a Host whose clock a test moves."""

    def __init__(self, folder: Path, host: Host, mode: Mode) -> None:
        self.host, self.routes = host, routes_in(folder)
        self.node = node_from(SLEEPER, folder, host)._compiled
        self.direct = Misbehaving(self.node)
        self.routes._direct = lambda _: self.direct  # type: ignore[assignment,method-assign]
        self.program: RoutedProgram = self.routes.program(self.node)
        put_into(self.routes, self.program, mode)
        self.before = self.counts()

    def counts(self) -> tuple[int, int]:
        self.routes.followers.drain(5)
        self.routes.migration.tend(is_all=True)
        state = state_of(self.routes, self.program)
        return state.compared, state.unknown

    def begin(self) -> RunWaits:
        prepared = self.host.prepare(self.node, self.program, "auto")
        with pytest.raises(RunWaits) as waits:
            self.host.run(prepared, AN_HOUR, self.host.moment())
        return waits.value


@pytest.mark.parametrize("mode", [Mode.SHADOW_DIRECT, Mode.CANARY_DIRECT, Mode.DIRECT_ONLY])
def test_a_run_that_waited_is_compared_when_it_ends(tmp_path: Path, mode: Mode) -> None:
    clock = Clock()
    with clocked_host(tmp_path, clock) as host:
        here = Here(tmp_path, host, mode)
        waits = here.begin()
        assert here.counts() == here.before, "a wait is no evidence, and no lost comparison"
        clock.shift_us = 2 * HOUR_US
        (ended,) = host.keep()
        assert ended.outcome == Returned({"woken": waits.due})
        compared, unknown = here.counts()
        assert (compared - here.before[0], unknown) == (1, here.before[1])
        here.routes.close()


def test_a_lie_about_a_run_that_waited_is_found(tmp_path: Path) -> None:
    clock = Clock()
    with clocked_host(tmp_path, clock) as host:
        here = Here(tmp_path, host, Mode.SHADOW_DIRECT)
        waits = here.begin()
        here.direct.does = lying
        clock.shift_us = 2 * HOUR_US
        (ended,) = host.keep()
        assert ended.outcome == Returned({"woken": waits.due}), "the caller gets Python's outcome"
        here.counts()
        assert len(divergences_of(here.routes, here.program)) == 1
        here.routes.close()


def test_a_process_without_the_node_finishes_it_on_the_engine_it_was_on(tmp_path: Path) -> None:
    clock = Clock()
    engines: list[Any] = []
    with clocked_host(tmp_path, clock) as host:
        here = Here(tmp_path, host, Mode.SHADOW_DIRECT)
        execution = here.begin().execution
        here.routes.close()
    with clocked_host(tmp_path, clock) as other:
        clock.shift_us = 2 * HOUR_US
        other.after_run = lambda prepared, _: engines.append(prepared.engine)
        (ended,) = other.keep()
    assert (ended.execution, engines) == (execution, ["python"])
