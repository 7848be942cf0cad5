"""Kinds of change: how two endings differ, as a text that all runs with the same change share.

The native scan of a journal (`direct_runtime/crates/vesper-host/src/backtest/kind.rs`) writes the same texts.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

from vesper.changes.backtest.replay import Ended, Unanswered, ending_text
from vesper.compiler import Compiled
from vesper.engines.outcome import EngineFault, LimitHit, Returned
from vesper.engines.version_outcomes import ChangedOutcome, VersionOutcomes
from vesper.host.masking import SENSITIVE, masks_of_versions
from vesper.journal.typed_json import encode_text
from vesper.language.ir.nodes import Output
from vesper.values.types import BOOLEAN, STRING, Enum, OptionalOf, Type

MAX_QUOTED = 40
"""Characters of a text that a kind quotes; a longer text only `changes`."""
ARROW = " → "
_ERROR_FIELD = re.compile(r"error\.[^.\[]+")


class NotCompared(Exception):
    """An outcome of one version says nothing about it: a limit of this machine, or a fault of an engine."""


class Kinds:
    """The kinds of change between two versions. A sensitive output only `changes`."""

    def __init__(self, before: Compiled, after: Compiled, reveals: bool = False) -> None:
        self._rule = VersionOutcomes(before.node, after.node)
        self.outputs = self._rule.outputs
        self._fields = {
            name: VersionOutcomes(*(replace(each.node, outputs=_only(each, name)) for each in (before, after)))
            for name in self.outputs
        }
        masks = () if reveals else masks_of_versions(before, after)
        self.hidden = frozenset(
            name for name in self.outputs if any(each.named("output", name, "shown") == SENSITIVE for each in masks)
        )
        self.hides_codes = any(
            each.hides_failures or each.named("error", "error_code", "shown") == SENSITIVE for each in masks
        )

    def kind(self, before: Ended, after: Ended) -> str | None:
        """Return the kind of change, None for the same outcome. Raises `NotCompared`."""
        if isinstance(before, Returned) and isinstance(after, Returned):
            return self._of_outputs(before, after)
        one, other = (ending_text(each, self.hides_codes) for each in (before, after))
        for each, text in ((before, one), (after, other)):
            if isinstance(each, LimitHit | EngineFault):
                raise NotCompared(text)
        if isinstance(before, Unanswered) or isinstance(after, Unanswered):
            return None if one == other else f"{one}{ARROW}{other}"
        found = self._rule.compare(before, after)
        if not isinstance(found, ChangedOutcome):
            return None
        if one != other:
            return f"{one}{ARROW}{other}"
        field = _ERROR_FIELD.match(found.where)
        return f"{one}, another {field[0] if field else 'error'}"

    def _of_outputs(self, before: Returned, after: Returned) -> str | None:
        parts = [
            self._of_field(name, self.outputs[name], before.value.get(name), after.value.get(name))
            for name, rule in self._fields.items()
            if isinstance(rule.compare(before, after), ChangedOutcome)
        ]
        return ", ".join(parts) or None

    def _of_field(self, name: str, type_: Type, before: object, after: object) -> str:
        inner = type_.inner if isinstance(type_, OptionalOf) else type_
        if name in self.hidden:
            return f"{name} changes"
        if isinstance(inner, Enum) or inner in (BOOLEAN, STRING):
            if all(len(each) <= MAX_QUOTED for each in (before, after) if isinstance(each, str)):
                return f"{name}: {encode_text(before)}{ARROW}{encode_text(after)}"
            return f"{name} changes"
        if before is None or after is None:
            one, other = ("null" if each is None else "a value" for each in (before, after))
            return f"{name}: {one}{ARROW}{other}"
        return f"{name} {_direction(before, after)}"


def _only(version: Compiled, name: str) -> tuple[Output, ...]:
    return tuple(each for each in version.node.outputs if each.name == name)


def _direction(before: object, after: object) -> str:
    for kind in (int, Decimal, float, timedelta):
        if type(before) is kind and type(after) is kind:
            if after > before:  # type: ignore[operator]
                return "rises"
            return "falls" if after < before else "changes"  # type: ignore[operator]
    return "changes"
