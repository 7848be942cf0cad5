"""The parts that routing one node needs, built once by `Routes` and handed down.

The path of a routed run goes one way through these parts (docs/architecture.md, "The path of a routed run").
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from vesper._direct import size_of
from vesper.compiler import Compiled
from vesper.config.migration import Tolerance
from vesper.engines.python_engine import PythonProgram
from vesper.host.plans import Plans
from vesper.journal.errors import JournalError
from vesper.journal.typed_json import encode
from vesper.migration.compare.comparator import Comparator
from vesper.migration.compare.reports import Fault, Lost, Report
from vesper.migration.compare.transcript import Transcript
from vesper.migration.control.modes import Mode
from vesper.migration.control.routing import Shares, is_in_canary, is_sampled
from vesper.migration.router.node_state import Live
from vesper.migration.shadow.guarded_direct import PathedProgram
from vesper.migration.shadow.lockstep import Pair
from vesper.migration.shadow.shadow_queue import HANG_FACTOR, Followers, Following
from vesper.migration.stores.store import NodeKey


class Keyed(Protocol):
    """The source of the key of fingerprints and of routing. The store has it; it may change with the store."""

    @property
    def key(self) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Rules:
    """How requests of one node are routed."""

    shares: Shares
    routing_key: tuple[str, ...]
    deadline: float
    """Seconds that the direct engine may compute for one request."""
    tolerances: tuple[Tolerance, ...] = ()
    has_workers: bool = False
    """True where the direct engine runs in worker processes. A request to a worker takes longer than a short node, and
    there are fewer workers than callers: executions are always followed in the thread of the queue."""


@dataclass(frozen=True, slots=True)
class RoutingContext:
    """One routed node: its definition, its rules, and the shared parts."""

    compiled: Compiled
    key: NodeKey
    """The node and its epoch."""
    plans: Plans
    rules: Rules
    comparator: Comparator
    direct: PathedProgram
    live: Live
    """The state of the node in this process."""
    keyed: Keyed
    followers: Followers
    """The queue of shadow runs, with its admission."""
    is_ready: Callable[[], bool]
    """Whether the direct engine can follow now: in worker processes, while one of them is up."""

    @property
    def is_sensitive(self) -> bool:
        return self.plans.is_sensitive

    def following(
        self, follow: Callable[[], Report | None], transcript: Transcript, execution: str | None = None
    ) -> Following[Report]:
        """Return the entry of the shadow queue for one execution."""

        def follow_unless_stopped() -> Report | None:
            if self.live.local.mode is Mode.PYTHON_ONLY:  # it hung, for example, and the next one may hang too
                return Lost("the node runs on Python alone")
            return follow()

        return Following(
            follow_unless_stopped,
            self.live.report,
            size_of(transcript.inputs) + sum(size_of(each.value) for each in transcript.exchanges),
            None if self.rules.has_workers else HANG_FACTOR * self.rules.deadline,
            lambda why: Fault(why, transcript, execution),
        )

    def pair(self, python: PythonProgram, key: bytes) -> Pair:
        """Return both engines of the node, compared under this key."""
        return Pair(
            python, self.direct, self.comparator, key, self.live, self.rules.deadline, self.is_sensitive, self.plans
        )


class Chooser:
    """Draws for each request whether it is in the canary, in the sample, and followed."""

    def __init__(self, context: RoutingContext) -> None:
        self._node = context.key.node
        self._rules = context.rules
        self._keyed = context.keyed
        self._sample = context.rules.shares.sample / 10_000
        self.draw = random.Random().random
        """For executions without a name: they have no journal."""
        self.admits = context.followers.admission.admits
        self.is_ready = context.is_ready

    def is_in_canary(self, inputs: Mapping[str, object]) -> bool:
        """Return whether the routing key of these inputs is in the canary share."""
        named = self._rules.routing_key
        chosen = {name: inputs.get(name) for name in named} if named else dict(inputs)
        try:
            text = encode(chosen)
        except JournalError:  # the inputs are no values: Python refuses them
            return False
        return is_in_canary(self._node, text, self._keyed.key, self._rules.shares)

    def is_sampled(self, execution: str | None = None) -> bool:
        """Return whether an execution is in the sample of `direct_only` that Python leads."""
        if execution is None:
            return self.draw() < self._sample
        return is_sampled(self._node, execution.encode(), self._keyed.key, self._rules.shares)

    def is_followed(self, mode: Mode) -> bool:
        """Return whether a request that Python leads is followed.

        Admission does not apply to the sample of `direct_only`: it is the only guard of uncompared answers, and traffic
        of another node must not reduce it.
        """
        return mode is not Mode.PYTHON_ONLY and self.is_ready() and (mode is Mode.DIRECT_ONLY or self.admits())
