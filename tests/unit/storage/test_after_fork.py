from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vesper.storage import after_fork
from vesper.storage.after_fork import Order, register

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def _only_own_registrations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(after_fork, "_registrations", [])


def in_child(report: Callable[[], str]) -> str:
    """Fork, and return the text that the child reports."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writer, report().encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8") as file:
        text = file.read()
    os.waitpid(child, 0)
    return text


def test_callbacks_run_by_their_order_and_before_in_reverse() -> None:
    seen: list[str] = []

    def add(name: str, order: Order) -> None:
        register(
            order=order,
            before=lambda: seen.append(f"before {name}"),
            after_in_parent=lambda: seen.append(f"parent {name}"),
            after_in_child=lambda: seen.append(f"child {name}"),
        )

    add("router", Order.ROUTER)
    add("storage", Order.STORAGE)
    add("host", Order.HOST)
    before = ["before router", "before host", "before storage"]
    assert in_child(lambda: ",".join(seen)).split(",") == [*before, "child storage", "child host", "child router"]
    assert seen == [*before, "parent storage", "parent host", "parent router"]


def test_callbacks_of_one_order_run_as_registered() -> None:
    seen: list[str] = []

    def add(name: str) -> None:
        register(
            order=Order.HOST,
            before=lambda: seen.append(f"before {name}"),
            after_in_parent=lambda: seen.append(f"after {name}"),
        )

    add("1")
    add("2")
    in_child(str)
    assert seen == ["before 2", "before 1", "after 1", "after 2"]


def test_a_callback_that_raises_is_reported_and_the_others_run(monkeypatch: pytest.MonkeyPatch) -> None:
    reported: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda args: reported.append(args.exc_value))
    seen: list[str] = []

    def fail(text: str) -> Callable[[], None]:
        def callback() -> None:
            raise ValueError(text)

        return callback

    register(order=Order.STORAGE, after_in_parent=fail("first"), after_in_child=fail("in the child"))
    register(order=Order.HOST, after_in_parent=fail("second"))
    register(
        order=Order.ROUTER, after_in_parent=lambda: seen.append("parent"), after_in_child=lambda: seen.append("child")
    )
    child = in_child(lambda: f"{seen} {[str(each) for error in reported for each in error.exceptions]}")
    assert child == "['child'] ['in the child']"
    assert seen == ["parent"]
    (group,) = reported
    assert [str(each) for each in group.exceptions] == ["first", "second"]


def test_a_registration_during_a_fork_counts_from_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    reported: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda args: reported.append(args.exc_value))
    lock = threading.Lock()

    def register_in_another_thread() -> None:
        lock_callbacks = {"order": Order.STORAGE, "before": lock.acquire, "after_in_parent": lock.release}
        thread = threading.Thread(target=register, kwargs=lock_callbacks)
        thread.start()
        thread.join()

    register(order=Order.HOST, before=register_in_another_thread)
    in_child(str)
    assert len(after_fork._registrations) == 2
    assert not reported  # releasing a lock that nothing acquired would raise


def test_modules_register_nowhere_else() -> None:
    found = [
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "vesper").rglob("*.py")
        if "register_at_fork(" in path.read_text(encoding="utf-8")
    ]
    assert found == ["vesper/storage/after_fork.py"]
