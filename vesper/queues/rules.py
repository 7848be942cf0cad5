"""Limits of a queue, its lanes, and the terms that a queued run carries in its row (docs/spec/queues.md)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

from vesper.config.queues import QueueSettings, Rate
from vesper.config.settings import Config
from vesper.effects.settings import ConfigError
from vesper.host.background_work import Nodes
from vesper.language.ir.nodes import Node
from vesper.language.work_bindings import Backoff, QueueField, queue_of
from vesper.values.node_id import split_node_id

QUEUED = "queued"
"""Kind of the rows of queued runs in the journal."""
DEFAULT_QUEUE = "default"
DEAD_SUFFIX = "/dead"
"""A dead letter is a row in the queue of this suffix, which no worker claims."""


@dataclass(frozen=True, slots=True)
class QueueRules:
    """A queue as workers of one process claim from it."""

    name: str
    settings: QueueSettings
    lane_concurrency: int | None = None
    lane_rate: Rate | None = None

    @property
    def is_limited(self) -> bool:
        """Return whether a claim must leave rows to later ones."""
        own = self.settings.concurrency, self.settings.rate, self.lane_concurrency, self.lane_rate
        return any(each is not None for each in own)


def rules_of(config: Config, nodes: Nodes) -> dict[str, QueueRules]:
    """Return the queues of these nodes and `default`, by name. Raises `ConfigError` for nodes that disagree."""
    found: dict[str, tuple[str, QueueRules]] = {}
    for node in nodes:
        field = queue_of(node._compiled)
        if field is None:
            continue
        rate = None if field.rate_limit is None else Rate(field.rate_limit, field.rate_per_us or 0)
        concurrency = 1 if field.is_singleton else field.concurrency
        rules = QueueRules(field.name, config.queues.get(field.name, QueueSettings()), concurrency, rate)
        other, known = found.setdefault(field.name, (node.id, rules))
        if known != rules:
            raise ConfigError(
                f"queue `{field.name}`",
                f"{other} and {node.id} have different limits for its keys: give both the same `concurrency` and "
                "`rate`, or one of them a queue of another name",
            )
    default = QueueRules(DEFAULT_QUEUE, config.queues.get(DEFAULT_QUEUE, QueueSettings()))
    return {DEFAULT_QUEUE: default} | {name: rules for name, (_, rules) in found.items()}


def lane_of(node: Node, field: QueueField, inputs: Mapping[str, object]) -> str:
    """Return the lane of a run: the value or default of its key, or the name of the node where that is empty."""
    defaults = {each.name: each.default for each in node.inputs if each.name == field.by}
    value = {**defaults, **inputs}.get(field.by or "")
    if isinstance(value, str) and value:
        return value
    parts = split_node_id(node.node_id)
    return node.node_id if parts is None else parts[0]


@dataclass(frozen=True, slots=True)
class Terms:
    """What a queued run needs to be attempted again; the body of its row."""

    attempts: int
    backoff: Backoff
    lane: str
    """In clear: the row of a sensitive run has only a digest of it."""
    attempt: int = 1
    retry_of: str | None = None
    """The run that this one repeats."""
    tenant: str | None = None
    """The tenant of the caller: debounce and singletons of one do not touch runs of another."""

    @classmethod
    def from_body(cls, body: str) -> Terms:
        """Return the terms of a row; without attempts left where its body was erased."""
        found = json.loads(body)
        backoff = Backoff(*found["backoff"]) if "backoff" in found else Backoff()
        attempts, attempt = found.get("attempts", 1), found.get("attempt", 1)
        return cls(attempts, backoff, found.get("lane", ""), attempt, found.get("retry_of"), found.get("tenant"))

    def to_body(self) -> str:
        backoff = [self.backoff.base_us, self.backoff.factor, self.backoff.max_us]
        found = {"attempt": self.attempt, "attempts": self.attempts, "backoff": backoff, "lane": self.lane}
        optional = {"retry_of": self.retry_of, "tenant": self.tenant}
        return json.dumps(found | {name: text for name, text in optional.items() if text is not None})

    def next(self, execution: str) -> Terms:
        """Return the terms of the attempt after that of a run."""
        return replace(self, attempt=self.attempt + 1, retry_of=execution)
