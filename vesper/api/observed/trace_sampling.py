"""Sampling of traces for calls of nodes without effects, according to `[traces]` of the configuration.

Where the configuration asks for none, `vesper.load` does not import this module (`config.locate.may_have_table`), and
`node.call` is the engine's own entry. Each entry of a node is sampled: `call` and its callers here; `map`, `run_json`
and `run_batch` in `vesper/api/observed/batch_trace_sampling.py`.
"""

from __future__ import annotations

import atexit
import random
import threading
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from vesper.api.call_entry import Entries
from vesper.api.observed.batch_trace_sampling import sample_many
from vesper.api.run_captures import catcher
from vesper.engines.engine import Limits
from vesper.engines.outcome import Failed, Outcome
from vesper.engines.registry import NAMES, PAIR
from vesper.kernels.raised import BadInput
from vesper.storage.per_process import PerProcess
from vesper.trace.armed_breakpoints import ArmedWatch
from vesper.values.generated.errors import ErrorCode
from vesper.values.inputs import NotInputs

if TYPE_CHECKING:
    from vesper.compiler import Compiled
    from vesper.config.settings import Config
    from vesper.language.ir.nodes import Input
    from vesper.trace.sampling import Given, Sampled, Sampler
    from vesper.trace.snapshot import Snapshot

NEVER_BEGAN = (BadInput, NotInputs)
"""The exceptions of executions that never began."""
_samplers: dict[tuple[str | None, str], tuple[Sampler, ArmedWatch | None]] = {}
_lock = PerProcess(threading.Lock)


class _LastRaised(threading.local):
    """The inputs of this thread's last call that raised.

    `Node` runs them again to explain the exception.
    """

    inputs: object = None


_last = _LastRaised()


def with_sampling(
    entries: Entries, compiled: Compiled, engine: str, limits: Limits | None, config: Config | None
) -> Entries:
    """Return entries that sample traces; unchanged entries if the configuration has no traces."""
    settings = None if config is None else config.traces
    if config is None or settings is None or not (settings.sample or settings.watch):
        return entries
    from vesper.trace.sampling import Sampled
    from vesper.trace.snapshot import snapshot_of

    node = compiled.node
    engines = (engine,) if engine in NAMES else tuple(PAIR)
    sampling = CallSampling(*_sampler(config), Sampled(compiled, engines, limits), snapshot_of(node), node.inputs)
    takes_now = node.type != "function"
    return Entries(
        call=_entry(entries.call, sampling, takes_now),
        call_many=None if entries.call_many is None else sample_many(entries.call_many, sampling),
        engine_call=_engine_call(entries.engine_call, sampling),
        json=entries.json,
        sampling=sampling,
    )


def nearest_settings(node_path: str) -> Config | None:
    """Return the configuration that `default_host` would read; None where there is no such file."""
    from vesper.config.locate import nearest_config
    from vesper.config.settings import read_config

    found = nearest_config(node_path)
    return None if found is None or not found.is_file() else read_config(found)


def _sampler(config: Config) -> tuple[Sampler, ArmedWatch | None]:
    """Return the sampler of a configuration: the nodes of a process share its budget per second."""
    from vesper.host.performers import Performers
    from vesper.trace.sampling import Sampler

    settings = config.trace_settings()
    name = (None if config.path is None else str(config.path), str(settings))
    with _lock.get():
        found = _samplers.get(name)
        if found is None:
            watch = ArmedWatch(config.folder) if settings.watch else None
            keys = Performers(config, {}).key_ring
            sampler = Sampler(settings, keys, None if watch is None else catcher(watch))
            found = _samplers[name] = sampler, watch
        return found


@atexit.register
def wait_for_traces() -> None:
    """Store the traces that are still queued."""
    for sampler, _ in list(_samplers.values()):
        sampler.wait()


class CallSampling:
    """The sampling of one node's calls: decides which have a trace, and makes those calls."""

    __slots__ = ("inputs", "node", "sampler", "snapshot", "watch")

    def __init__(
        self, sampler: Sampler, watch: ArmedWatch | None, node: Sampled, snapshot: Snapshot, inputs: tuple[Input, ...]
    ) -> None:
        self.sampler = sampler
        self.watch = watch
        self.node = node
        self.snapshot = snapshot
        self.inputs = inputs

    def is_sampled(self) -> bool:
        share = self.sampler.settings.sample
        return bool(share) and (share == 1 or random.random() < share) and self.has_room()

    def is_watched(self) -> bool:
        return self.watch is not None and self.watch.is_armed()

    def has_room(self) -> bool:
        if self.sampler.left > 0:
            return True
        self.sampler.counts.passed += 1
        return False

    def run(self, call: Callable[..., Any], inputs: Any, moment: dict[str, Any], is_sampled: bool) -> Any:
        """Make the call, and queue its trace. Raises what the call raises."""
        try:
            kept: Mapping[str, Any] = self.snapshot(inputs)
        except (TypeError, ValueError):  # no inputs, or objects that cannot be copied
            self.sampler.counts.lost += 1
            return call(inputs, **moment)
        began = time.time_ns()
        try:
            found = call(inputs, **moment)
        except NEVER_BEGAN:
            raise
        except Exception:
            self.queue_trace(kept, moment.get("now"), began, time.time_ns(), is_sampled)
            _last.inputs = inputs
            raise
        self.queue_trace(kept, moment.get("now"), began, time.time_ns(), is_sampled)
        return found

    def queue_trace(self, given: Given, now: datetime | None, began: int, ended: int, is_sampled: bool) -> None:
        self.sampler.add((self.node, given, now, began, ended, is_sampled))


def _entry(
    call: Callable[..., dict[str, Any]], sampling: CallSampling, takes_now: bool
) -> Callable[..., dict[str, Any]]:
    """Return `call` with sampling: a call without a trace pays for the draw alone.

    A sampled call is made by `CallSampling.run`, or by `_always` where every call has a trace.
    """
    sampler, watch, draw, run = sampling.sampler, sampling.watch, random.random, sampling.run
    share, is_watched = sampler.settings.sample, sampling.watch is not None

    def call_with_sampling(inputs: dict[str, Any]) -> dict[str, Any]:
        is_sampled = share > 0 and (share == 1 or draw() < share) and sampling.has_room()
        if is_sampled or (is_watched and watch.is_armed()):  # type: ignore[union-attr]
            return run(call, inputs, {}, is_sampled)  # type: ignore[no-any-return]
        return call(inputs)

    def call_with_sampling_at(inputs: dict[str, Any], *, now: datetime) -> dict[str, Any]:
        is_sampled = share > 0 and (share == 1 or draw() < share) and sampling.has_room()
        if is_sampled or (is_watched and watch.is_armed()):  # type: ignore[union-attr]
            return run(call, inputs, {"now": now}, is_sampled)  # type: ignore[no-any-return]
        return call(inputs, now=now)

    if takes_now:
        return call_with_sampling_at
    return _always(call, sampling) if share == 1 and not is_watched else call_with_sampling


def _always(call: Callable[..., dict[str, Any]], sampling: CallSampling) -> Callable[..., dict[str, Any]]:
    """Return `call` with a trace of every call.

    Repeats `CallSampling.run` and `Sampler.add` inline: a Python call costs more than the rest of this function.
    """
    sampler, node, snapshot = sampling.sampler, sampling.node, sampling.snapshot
    wait, clock = sampler.waiting.append, time.time_ns

    def call_with_sampling(inputs: dict[str, Any]) -> dict[str, Any]:
        left = sampler.left
        if left <= 0:
            sampler.counts.passed += 1
            return call(inputs)
        sampler.left = left - 1
        try:
            kept = snapshot(inputs)
        except (TypeError, ValueError):  # as in `CallSampling.run`
            sampler.counts.lost += 1
            return call(inputs)
        began = clock()
        try:
            found = call(inputs)
        except NEVER_BEGAN:
            raise
        except Exception:
            sampling.queue_trace(kept, None, began, clock(), True)
            _last.inputs = inputs
            raise
        wait((node, kept, None, began, clock(), True))
        if sampler.worker is None:
            sampler.begin()
        return found

    return call_with_sampling


def _engine_call(engine: Callable[..., Outcome], sampling: CallSampling) -> Callable[..., Outcome]:
    """Return `Program.call` with sampling, for inputs that `call` does not accept: objects, JSON text."""

    def call_with_sampling(
        inputs: Mapping[str, object], now: datetime | None = None, limits: Limits | None = None
    ) -> Outcome:
        if _last.inputs is inputs:  # the call has a trace already
            _last.inputs = None
            return engine(inputs, now, limits)
        is_sampled = sampling.is_sampled()
        if not (is_sampled or sampling.is_watched()):
            return engine(inputs, now, limits)

        def call(_: Mapping[str, object], now: datetime | None = None) -> Outcome:
            outcome = engine(inputs, now, limits)
            if isinstance(outcome, Failed) and outcome.code == ErrorCode.BAD_INPUT and outcome.at is None:
                raise _NeverBegan(outcome)
            return outcome

        try:
            found = sampling.run(call, dict(inputs), {} if now is None else {"now": now}, is_sampled)
        except _NeverBegan as refused:
            return refused.outcome
        assert isinstance(found, Outcome)
        return found

    return call_with_sampling


class _NeverBegan(BadInput):
    """A refusal of the inputs: there was no execution, and there is no trace."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(())
        self.outcome = outcome
