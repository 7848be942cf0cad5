"""The one registry of callbacks that run around a fork.

A fork copies memory and open files, but only the thread that calls it: locks stay held for ever, threads are gone, and
two processes share one connection. Modules with such state register callbacks here. `PerProcess` serves state that a
child can simply make anew (`vesper/storage/per_process.py`).

`before` callbacks run from the highest order to the lowest, the others from the lowest to the highest: a callback finds
everything below it ready. Callbacks of one order run in the order of their registration, `before` in reverse.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias

Callback: TypeAlias = Callable[[], object]


class Order(IntEnum):
    """The layers with process state, lowest first."""

    STORAGE = 0
    EFFECTS = 10
    HOST = 20
    TRACE = 30
    WORKERS = 40
    ROUTER = 50
    OUTPUT = 60


@dataclass(frozen=True, slots=True)
class _Registration:
    order: int
    before: Callback | None
    after_in_parent: Callback | None
    after_in_child: Callback | None


class _Forking(threading.local):
    """The registrations of the fork that this thread is in.

    Another thread may register between the callbacks: `after_in_parent` never runs without its `before`.
    """

    registrations: tuple[_Registration, ...] = ()


_registrations: list[_Registration] = []
_forking = _Forking()


def register(
    *,
    order: Order,
    before: Callback | None = None,
    after_in_parent: Callback | None = None,
    after_in_child: Callback | None = None,
) -> None:
    """Run these callbacks around every later fork of this process."""
    _registrations.append(_Registration(order, before, after_in_parent, after_in_child))


def _before() -> None:
    _forking.registrations = tuple(sorted(_registrations, key=lambda each: each.order))
    _run_all(each.before for each in reversed(_forking.registrations))


def _after_in_parent() -> None:
    registrations, _forking.registrations = _forking.registrations, ()
    _run_all(each.after_in_parent for each in registrations)


def _after_in_child() -> None:
    registrations, _forking.registrations = _forking.registrations, ()
    _run_all(each.after_in_child for each in registrations)


def _run_all(callbacks: Iterable[Callback | None]) -> None:
    """Run every callback, also after one that raised.

    Raises all exceptions as one group: the interpreter reports it (`sys.unraisablehook`) and completes the fork.
    """
    errors: list[BaseException] = []
    for callback in callbacks:
        if callback is not None:
            try:
                callback()
            except BaseException as error:  # noqa: BLE001  # the remaining callbacks release locks
                errors.append(error)
    if errors:
        raise BaseExceptionGroup("callbacks of a fork failed", errors)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
