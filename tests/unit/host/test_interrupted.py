"""Ctrl-C while a Host runs something."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.support.striking import SOON, within
from tests.unit.host.custom_world import World, acting, host_of, settings
from vesper.effects.performer import Ask


def interrupted(_: Ask) -> object:
    raise KeyboardInterrupt


def test_a_run_that_is_interrupted_does_not_count_for_ever(tmp_path: Path) -> None:
    world = World(first=interrupted)
    host = host_of(settings(tmp_path), world)
    node = acting(tmp_path, host, "first")
    for number in range(3):
        with pytest.raises(KeyboardInterrupt):
            node(event_id=f"e{number}", text="t")
        assert host.lull(0.0), number
    del world.does["first"]
    assert node(event_id="another", text="t").ok
    within(host.close)


def test_a_thread_that_is_interrupted_keeps_nobody_from_closing(tmp_path: Path) -> None:
    began, may_end = threading.Event(), threading.Event()

    def first(ask: Ask) -> object:
        began.set()
        assert may_end.wait(SOON)
        return interrupted(ask)

    host = host_of(settings(tmp_path), World(first=first))
    node = acting(tmp_path, host, "first")

    def call() -> None:
        with pytest.raises(KeyboardInterrupt):
            node(event_id="e", text="t")

    caller = threading.Thread(target=call)
    caller.start()
    assert began.wait(SOON)
    closing = threading.Thread(target=host.close, daemon=True)
    closing.start()
    may_end.set()
    closing.join(SOON)
    caller.join(SOON)
    assert not closing.is_alive()
