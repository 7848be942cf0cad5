"""Calls of a node without effects, where `[traces]` of the configuration asks for a share of them.

Where it asks for none, nothing here is in the way of a call: `node.call` is what it would be without this module, and
loading a node does not even load this module (`nearest.mentions`). Each way into a node is sampled: `call` and all that
goes through it here, `map`, `run_json` and `run_batch` in `vesper/api/batch_trace_sampling.py`.
"""

from __future__ import annotations

import atexit
import random
import threading
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vesper.api.batch_trace_sampling import for_many
from vesper.engines.engine import Limits
from vesper.engines.outcome import Failed, Outcome
from vesper.engines.registry import NAMES, PAIR
from vesper.kernels.raised import BadInput
from vesper.storage.per_process import PerProcess
from vesper.values.generated.errors import ErrorCode
from vesper.values.inputs import NotInputs

if TYPE_CHECKING:
    from vesper.api.node import Node
    from vesper.config.settings import Config
    from vesper.debug.captures import CaptureWatch
    from vesper.host.host import Host
    from vesper.trace.sampling import Given, Sampled, Sampler
    from vesper.trace.snapshot import Snapshot
    from vesper.values.types import Type

NEVER_BEGAN = (BadInput, NotInputs)
"""What is raised where an execution never began."""
_samplers: dict[tuple[str | None, str], tuple[Sampler, CaptureWatch | None]] = {}
_lock = PerProcess(threading.Lock)
_last = threading.local()
"""The inputs of the call that raised last: who asks the engine why gives the same again."""


def sample_calls(node: Node, host: Host | None) -> None:
    """Lets calls of the node have traces, where the configuration asks for it."""
    config = host.config if host is not None else _nearest(node.path)
    settings = None if config is None else config.traces
    if config is None or settings is None or not (settings.sample or settings.watch) or node._is_hosted:
        return
    from vesper.trace.sampling import Sampled
    from vesper.trace.snapshot import snapshot_of

    sampler, watch = _sampler(config)
    engines = (node.engine,) if node.engine in NAMES else tuple(PAIR)
    of = Sampled(node._compiled, engines, node._limits)
    chosen = Chosen(sampler, watch, of, snapshot_of(node._compiled.node), node._types)
    node.__dict__.update(
        call=_entry(node.call, chosen, node._takes_now),
        _engine_call=_engine_call(node._engine_call, chosen),
        _call_many=None if node._call_many is None else for_many(node._call_many, chosen),
        _chosen=chosen,
    )


def _nearest(node_path: str) -> Config | None:
    """The configuration that `default_host` would take."""
    from vesper.config.settings import find_config, read_config

    found = find_config() or find_config(Path(node_path).parent)
    return None if found is None or not found.is_file() else read_config(found)


def _sampler(config: Config) -> tuple[Sampler, CaptureWatch | None]:
    """One for each configuration: the nodes of a process share what may be sampled in a second."""
    from vesper.debug.captures import CaptureWatch
    from vesper.host.performers import Performers
    from vesper.trace.sampling import Sampler

    settings = config.tracing()
    name = (None if config.path is None else str(config.path), str(settings))
    with _lock.get():
        found = _samplers.get(name)
        if found is None:
            watch = CaptureWatch(config.folder) if settings.watch else None
            keys = Performers(config, {}).key_ring
            sampler = Sampler(settings, keys, None if watch is None else watch.capture_if_met)
            found = _samplers[name] = sampler, watch
        return found


@atexit.register
def wait_for_traces() -> None:
    """Stores what was sampled last."""
    for sampler, _ in list(_samplers.values()):
        sampler.wait()


class Chosen:
    """Decides which calls of a node have a trace, and makes those calls."""

    __slots__ = ("node", "sampler", "snapshot", "types", "watch")

    def __init__(
        self, sampler: Sampler, watch: CaptureWatch | None, node: Sampled, snapshot: Snapshot, types: Mapping[str, Type]
    ) -> None:
        self.sampler = sampler
        self.watch = watch
        self.node = node
        self.snapshot = snapshot
        self.types = types

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
        """The call itself; what it raises it raises."""
        try:
            kept: Mapping[str, Any] = self.snapshot(inputs)
        except (TypeError, ValueError):  # objects that are no inputs, or that nobody here can copy
            self.sampler.counts.lost += 1
            return call(inputs, **moment)
        began = time.time_ns()
        try:
            found = call(inputs, **moment)
        except NEVER_BEGAN:
            raise
        except Exception:
            self.ended(kept, moment.get("now"), began, time.time_ns(), is_sampled)
            _last.inputs = inputs
            raise
        self.ended(kept, moment.get("now"), began, time.time_ns(), is_sampled)
        return found

    def ended(self, given: Given, now: datetime | None, began: int, ended: int, is_sampled: bool) -> None:
        self.sampler.add((self.node, given, now, began, ended, is_sampled))


def _entry(call: Callable[..., dict[str, Any]], chosen: Chosen, takes_now: bool) -> Callable[..., dict[str, Any]]:
    """What callers call: a call that has no trace pays for one look at whether it has. One that has goes through
    `Chosen.run`, or where all have one, and nobody looks at them, through the same written out."""
    sampler, watch, draw, run = chosen.sampler, chosen.watch, random.random, chosen.run
    share, is_watched = sampler.settings.sample, chosen.watch is not None

    def sampled(inputs: dict[str, Any]) -> dict[str, Any]:
        is_sampled = share > 0 and (share == 1 or draw() < share) and chosen.has_room()
        if is_sampled or (is_watched and watch.is_armed()):  # type: ignore[union-attr]
            return run(call, inputs, {}, is_sampled)  # type: ignore[no-any-return]
        return call(inputs)

    def sampled_at(inputs: dict[str, Any], *, now: datetime) -> dict[str, Any]:
        is_sampled = share > 0 and (share == 1 or draw() < share) and chosen.has_room()
        if is_sampled or (is_watched and watch.is_armed()):  # type: ignore[union-attr]
            return run(call, inputs, {"now": now}, is_sampled)  # type: ignore[no-any-return]
        return call(inputs, now=now)

    if takes_now:
        return sampled_at
    return _always(call, chosen) if share == 1 and not is_watched else sampled


def _always(call: Callable[..., dict[str, Any]], chosen: Chosen) -> Callable[..., dict[str, Any]]:
    """As `Chosen.run` for every call, with `Sampler.add` in it: a function of Python that is called takes more than all
    else here."""
    sampler, node, snapshot = chosen.sampler, chosen.node, chosen.snapshot
    wait, clock = sampler.waiting.append, time.time_ns

    def sampled(inputs: dict[str, Any]) -> dict[str, Any]:
        left = sampler.left
        if left <= 0:
            sampler.counts.passed += 1
            return call(inputs)
        sampler.left = left - 1
        try:
            kept = snapshot(inputs)
        except (TypeError, ValueError):  # as there
            sampler.counts.lost += 1
            return call(inputs)
        began = clock()
        try:
            found = call(inputs)
        except NEVER_BEGAN:
            raise
        except Exception:
            chosen.ended(kept, None, began, clock(), True)
            _last.inputs = inputs
            raise
        wait((node, kept, None, began, clock(), True))
        if sampler.worker is None:
            sampler.begin()
        return found

    return sampled


def _engine_call(engine: Callable[..., Outcome], chosen: Chosen) -> Callable[..., Outcome]:
    """The engine, for inputs that `call` does not take as they are: objects, JSON text."""

    def sampled(inputs: Mapping[str, object], now: datetime | None = None, limits: Limits | None = None) -> Outcome:
        if getattr(_last, "inputs", None) is inputs:  # its trace is being made: the engine is only asked why it failed
            _last.inputs = None
            return engine(inputs, now, limits)
        is_sampled = chosen.is_sampled()
        if not (is_sampled or chosen.is_watched()):
            return engine(inputs, now, limits)

        def call(_: Mapping[str, object], now: datetime | None = None) -> Outcome:
            outcome = engine(inputs, now, limits)
            if isinstance(outcome, Failed) and outcome.code == ErrorCode.BAD_INPUT and outcome.at is None:
                raise _NeverBegan(outcome)
            return outcome

        try:
            found = chosen.run(call, dict(inputs), {} if now is None else {"now": now}, is_sampled)
        except _NeverBegan as refused:
            return refused.outcome
        assert isinstance(found, Outcome)
        return found

    return sampled


class _NeverBegan(BadInput):
    """The inputs do not fit: there was no execution, and there is no trace."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(())
        self.outcome = outcome
