"""A name without a version as a node: callers get the outcome of its present lead.

Every attribute is that of the present lead. When a person promotes the candidate, the next call goes to it; calls under
way end on the node that they began on.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from vesper.api.errors import NodeError
from vesper.api.node import _NOTHING, Node
from vesper.migration.candidates.decisions import breaking_changes
from vesper.values.vesper_error import VesperError

if TYPE_CHECKING:
    from vesper.api.outcome import AnyOutcome
    from vesper.compiler import Compiled
    from vesper.config.versions import VersionSettings
    from vesper.engines.engine import Program
    from vesper.migration.candidates.live_candidate import LiveCandidate
    from vesper.migration.router.routes import Routes

_log = logging.getLogger("vesper.api")
Wrap = Callable[["Compiled", "Program"], "Program"]


class LedNode(Node):
    """A name whose lead may change while the process runs."""

    def __init__(self, lead: Node, candidate: LiveCandidate, load_candidate: Callable[[], Node]) -> None:
        object.__setattr__(self, "_leadership", _Leadership(lead, candidate, load_candidate))

    def __getattribute__(self, name: str) -> Any:
        leadership: _Leadership = object.__getattribute__(self, "_leadership")
        if name == "call":  # callers keep this function
            return leadership.call
        if name == "served_as":
            return leadership.name
        return getattr(leadership.lead, name)

    def __call__(self, given: Any = _NOTHING, /, **inputs: Any) -> AnyOutcome:
        leadership: _Leadership = object.__getattribute__(self, "_leadership")
        return leadership.lead(given, **inputs)


class _Leadership:
    """The present lead of a name in this process."""

    def __init__(self, lead: Node, candidate: LiveCandidate, load_candidate: Callable[[], Node]) -> None:
        self.lead = lead
        self.name = candidate.name
        self._first = lead
        self._candidate = candidate
        self._load_candidate = load_candidate
        candidate.listen(self._update)
        self._update()

    def call(self, *arguments: Any, **named: Any) -> Any:
        return self.lead.call(*arguments, **named)

    def _update(self) -> None:
        """Apply the decision of a person. A candidate that cannot be loaded does not lead here."""
        if not self._candidate.is_promoted:
            self.lead = self._first
            return
        name, pair = self._candidate.name, self._candidate.pair
        try:
            promoted = self._load_candidate()
            if promoted.semantic_hash != pair.candidate_hash:
                raise NodeError(f"{promoted.path} was changed since the candidate was followed")
            breaking = breaking_changes(self._first._compiled, promoted._compiled)
            if breaking:
                raise NodeError("; ".join(each.text for each in breaking))
        except (VesperError, ValueError, OSError) as problem:
            _log.error(
                "%s: %s was promoted and cannot lead here, %s leads: %s", name, pair.candidate, pair.lead, problem
            )
        else:
            self.lead = promoted


def load_led(
    name: str,
    settings: VersionSettings,
    load_version: Callable[[str, Wrap | None], Node],
    compile_version: Callable[[str], Compiled],
    routes: Callable[[str], Routes],
) -> Node:
    """Return the node of a name: its lead, which the candidate follows where it can be compiled."""
    if settings.candidate is None:
        return load_version(settings.lead, None)
    try:
        candidate = compile_version(settings.candidate)
    except NodeError as problem:
        _log.error("%s: the candidate %s cannot be compiled and does not follow: %s", name, settings.candidate, problem)
        return load_version(settings.lead, None)
    followed: list[LiveCandidate] = []

    def wrap(lead: Compiled, program: Program) -> Program:
        from vesper.migration.candidates.led_program import led_program

        shared = routes(lead.path)
        followed.append(shared.candidate(name, settings, lead, candidate))
        return led_program(program, followed[0], shared.attach)

    lead = load_version(settings.lead, wrap)
    candidate_id = settings.candidate
    return LedNode(lead, followed[0], lambda: load_version(candidate_id, None))
