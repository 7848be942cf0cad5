"""Cache of results around a program (L3), used only if a configuration or a caller requests it.

The key of a result is a hash of the node's meaning, with all nodes that it calls, of the engine, of Vesper's own
sources, of the inputs as values, and of the fuel: no other fact influences the outcome. Outputs, declared errors and
failures of the closed list are cached. A limit hit, a fault and a denial belong to one execution; a broken contract is
computed again, so that it can be inspected. Returned values are copies: callers share no objects.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from vesper.cache.entries import digest
from vesper.cache.fingerprint import source_hash
from vesper.cache.results import Kept, Results
from vesper.effects.cache.node_results import RedisResults
from vesper.effects.redis_server import RedisServer
from vesper.engines.engine import DEFAULT_LIMITS, Execution, Limits, Observer, Program
from vesper.engines.outcome import DeclaredError, Failed, Outcome, Returned
from vesper.host.plans import plans_of
from vesper.journal.errors import JournalError
from vesper.journal.typed_json import decode, encode
from vesper.language.ir.nodes import Node, Now
from vesper.storage.after_fork import Order, register
from vesper.values.generated.errors import ErrorCode
from vesper.values.inputs import NotInputs, accept_inputs
from vesper.values.model import plain

if TYPE_CHECKING:
    from vesper.compiler import Compiled
    from vesper.config.result_cache import ResultSettings

_FORMAT = b"vesper-result-1"
_CODES = frozenset(code.value for code in ErrorCode)
_ALL: WeakSet[Results] = WeakSet()


class NotKept(ValueError):
    """The reason why results of a node cannot be cached, with advice."""


def results_of(settings: ResultSettings) -> Results:
    """Return the cache of these settings. Redis is opened at its first use."""
    shared = shared_of(settings)
    made = Results(settings.max_bytes, settings.ttl, shared, settings.wait)
    _ALL.add(made)
    return made


def shared_of(settings: ResultSettings) -> RedisResults | None:
    """Return the part of the cache that processes share; None without an address."""
    if settings.address is None:
        return None
    server = RedisServer(settings.address, settings.timeout, "the cache of results", None)
    return RedisResults(server, settings.prefix)


class CachedProgram:
    """A program that runs only for unknown results. Observed executions always run."""

    def __init__(
        self, compiled: Compiled, program: Program, engine: str, results: Results, shares_sensitive: bool = False
    ) -> None:
        refuse_what_cannot_be_kept(compiled)
        node = compiled.node
        self.results = results
        self._program = program
        self._declared = node.declared_inputs
        self._outputs = [(each.name, each.type, None) for each in node.outputs]
        self._errors = [(each.name, each.type, None) for each in node.errors]
        self._is_shared = shares_sensitive or not plans_of(compiled).is_sensitive
        self._meaning = digest(
            _FORMAT, source_hash(), engine.encode(), *(each.encode() for each in sorted(_hashes(compiled)))
        )

    @property
    def semantic_hash(self) -> str:
        return self._program.semantic_hash

    def call(self, inputs: Mapping[str, object], now: datetime | None = None, limits: Limits | None = None) -> Outcome:
        key = self._key(inputs, limits)
        if key is None:
            return self._program.call(inputs, now, limits)
        outcome, _ = self.results.find_or_make(
            key, lambda: self._to_entry(self._program.call(inputs, now, limits)), self._read
        )
        return _copy_outcome(outcome)

    def start(
        self,
        inputs: Mapping[str, object],
        now: datetime | None = None,
        limits: Limits | None = None,
        observe: Observer | None = None,
        is_traced: bool = True,
    ) -> Execution:
        return self._program.start(inputs, now, limits, observe, is_traced)

    def _key(self, inputs: Mapping[str, object], limits: Limits | None) -> str | None:
        """Return the key of a result. None if the inputs are refused, or a time limit may end the execution."""
        given = limits or DEFAULT_LIMITS
        if given.seconds is not None:
            return None
        try:
            values, problems = accept_inputs(self._declared, inputs)
        except NotInputs:
            return None
        if problems:
            return None
        try:
            text = encode(values)
        except JournalError:  # larger than anything that is worth keeping
            return None
        return digest(self._meaning, f"{given.fuel} {given.memory}".encode(), text).hex()

    def _to_entry(self, outcome: Outcome) -> Kept:
        try:
            data = _encode_outcome(outcome)
        except JournalError:
            data = None
        if data is None:
            return Kept(outcome, is_kept=False)
        return Kept(_copy_outcome(outcome), data, is_shared=self._is_shared)

    def _read(self, data: bytes) -> Outcome | None:
        """Read an outcome that another process wrote; None if the node cannot have it.

        The writer is not trusted: values are checked against the declared types, as inputs are.
        """
        try:
            form = decode(data)
            kind, value = form["kind"], form["value"]
            if kind == "failed":
                code, at = value
                if code not in _CODES or code == ErrorCode.BAD_INPUT or type(at) is not int:
                    return None
                return Failed(ErrorCode(code), at)
            declared = {"returned": self._outputs, "declared_error": self._errors}[kind]
            values, problems = accept_inputs(declared, value)
        except (JournalError, NotInputs, KeyError, TypeError, ValueError):
            return None
        if problems:
            return None
        found: dict[str, Any] = {name: plain(each) for name, each in values.items()}
        return Returned(found) if kind == "returned" else DeclaredError(found)


def refuse_what_cannot_be_kept(compiled: Compiled) -> None:
    """Raise `NotKept` for a node whose outcome is not a function of its inputs, or that is audited."""
    node = compiled.node
    if not node.is_pure():
        raise NotKept(
            f"{node.node_id} asks for effects, so its results are not kept; a `cache` step can keep what it asked for"
        )
    if node.grants.audit != "none":
        raise NotKept(f"{node.node_id} is audited: every execution is to be written down, so none can be left out")
    if any(map(_depends_on_time, _nodes(compiled))):
        raise NotKept(f"{node.node_id} depends on when it runs, so its results are not kept; give it the time as input")


def _depends_on_time(node: Node) -> bool:
    return any(isinstance(each, Now) for each in node.expressions())


def _nodes(compiled: Compiled) -> list[Node]:
    return [compiled.node, *(node for callee in compiled.callees for node in _nodes(callee))]


def _hashes(compiled: Compiled) -> set[str]:
    return {compiled.semantic_hash}.union(*map(_hashes, compiled.callees))


def _encode_outcome(outcome: Outcome) -> bytes | None:
    """Return an outcome as bytes; None if it is not cached."""
    match outcome:
        case Returned(value) | DeclaredError(value):
            return encode({"kind": outcome.kind, "value": dict(value)})
        case Failed(code, int(at), ()) if code in _CODES:
            return encode({"kind": outcome.kind, "value": [str(code), at]})
        case _:
            return None


def _copy_outcome(outcome: Outcome) -> Outcome:
    """Return a copy of the outcome, so that changes of its values affect no other caller."""
    match outcome:
        case Returned(value):
            return Returned({name: plain(each) for name, each in value.items()})
        case DeclaredError(value):
            return DeclaredError({name: plain(each) for name, each in value.items()})
        case _:
            return outcome


def _reset_after_fork() -> None:
    for each in list(_ALL):
        each.after_fork()


register(order=Order.HOST, after_in_child=_reset_after_fork)
