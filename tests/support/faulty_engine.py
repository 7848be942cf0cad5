"""An engine that fails on chosen inputs in ways that end or stall its process."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Mapping
from datetime import datetime

from vesper.compiler import Compiled
from vesper.engines.engine import Done, Engine, Execution, Limits, Observer, Program, PureExecution
from vesper.engines.outcome import EngineFault, Outcome


def loop_forever() -> None:
    while True:
        pass


def hang_in_native_code() -> None:
    """Wait in native code without releasing the GIL."""
    ctypes.PyDLL(None).sleep(3600)


def abort() -> None:
    os.abort()


def violate_memory() -> None:
    ctypes.string_at(0)


def allocate_20_gib() -> None:
    held: list[bytes] = []
    while len(held) < 20 * 64:
        held.append(b"x" * (16 << 20))


def allocate_at_once() -> None:
    bytearray(20 << 30)


def exit_early() -> None:
    os._exit(5)


def raise_error() -> None:
    raise RuntimeError("planted")


class Panic(BaseException):
    """Like the exception of a Rust panic, which is no `Exception`."""


def panic() -> None:
    raise Panic("planted")


class FaultyEngine:
    """Answers as another engine does, but for executions on which `strikes` holds."""

    def __init__(
        self,
        engine: Engine,
        node_id: str,
        fault: Callable[[], None] | None,
        strikes: Callable[[Mapping[str, object]], bool],
        when_loading: bool = False,
    ) -> None:
        """Without a fault, the outcome is an engine fault."""
        self.name = engine.name
        self._engine = engine
        self._node_id = node_id
        self._fault = fault
        self._strikes = strikes
        self._when_loading = when_loading

    def load(self, compiled: Compiled) -> Program:
        program = self._engine.load(compiled)
        if not compiled.node.node_id.startswith(self._node_id):
            return program
        if self._when_loading and self._fault is not None:
            self._fault()
        return FaultyProgram(program, self._fault, self._strikes)


class FaultyProgram:
    def __init__(
        self, program: Program, fault: Callable[[], None] | None, strikes: Callable[[Mapping[str, object]], bool]
    ) -> None:
        self._program = program
        self._fault = fault
        self._strikes = strikes

    @property
    def semantic_hash(self) -> str:
        return self._program.semantic_hash

    def call(self, inputs: Mapping[str, object], now: datetime | None = None, limits: Limits | None = None) -> Outcome:
        return self._program.call(inputs, now, limits)

    def start(
        self,
        inputs: Mapping[str, object],
        now: datetime | None = None,
        limits: Limits | None = None,
        observe: Observer | None = None,
        is_traced: bool = True,
    ) -> Execution:
        if self._strikes(inputs):
            if self._fault is None:
                return PureExecution(lambda: Done(EngineFault("planted"), ()))
            self._fault()
        return self._program.start(inputs, now, limits, observe, is_traced)
