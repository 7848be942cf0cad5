"""Check of a supervisor: strategies, limits, names and nodes of its children."""

from __future__ import annotations

import re
from typing import Final

from vesper.language.check.callees import Callees, NotCallable
from vesper.language.check.expressions.literals import Unread, read_literal
from vesper.language.check.flow.policies import PolicyReader
from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.diagnostics.suggest import did_you_mean
from vesper.language.syntax import shapes
from vesper.language.syntax.fields import Fields, expect_mapping
from vesper.language.syntax.yaml_tree import Scalar, Sequence, Tree
from vesper.language.work_bindings import REACTIONS, STRATEGIES, Backoff, ChildField, SupervisorField
from vesper.values.types import INTEGER

MAX_AGENTS: Final = 1_000
MAX_DEPTH: Final = 8
"""Supervisors above an agent."""
_MAX_RESTARTS: Final = 10_000
_MAX_ATTEMPTS: Final = 100
_NAME: Final = re.compile(r"[a-z][a-z0-9_-]{0,63}", re.ASCII)
_OF_SUPERVISORS: Final = ("strategy", "max_restarts", "window", "backoff", "attempts")


class SupervisorChecker:
    """Reads a supervisor and all of its descendants."""

    def __init__(self, callees: Callees, bag: DiagnosticBag) -> None:
        self._callees = callees
        self._bag = bag
        self._policies = PolicyReader(bag)
        self._agents = 0

    def supervisor(self, field: Fields, depth: int = 1) -> SupervisorField:
        listed = field.sequence("children")
        if depth > MAX_DEPTH:
            self._bag.error(Code.TOO_DEEP, field.span, limit=str(MAX_DEPTH), what="supervisors")
            listed = None
        children = [self._child(each, depth) for each in (listed.items if listed else ())]
        if isinstance(listed, Sequence) and not listed.items:
            self._bag.error(
                Code.WRONG_KIND, listed.span, key="children", expected="at least one child", found="an empty list"
            )
        self._check_names(listed)
        if depth == 1 and self._agents > MAX_AGENTS:
            self._bag.error(Code.TOO_LARGE, field.span, limit=f"{MAX_AGENTS:,}", what="agents in this tree")
        default = SupervisorField(())
        return SupervisorField(
            tuple(each for each in children if each is not None),
            self._word(field, "strategy", STRATEGIES),
            self._restarts(field, default.max_restarts),
            self._duration(field, "window") or default.window_us,
            self._backoff(field),
            self._count(field, "attempts", _MAX_ATTEMPTS) or default.attempts,
        )

    def _child(self, tree: Tree, depth: int) -> ChildField | None:
        mapping = expect_mapping(tree, "a child", self._bag)
        if mapping is None:
            return None
        field = Fields(mapping, shapes.SUPERVISOR_CHILD, self._bag)
        name, node = field.scalar("name"), field.scalar("node")
        reaction = self._word(field, "on_failure", REACTIONS)
        has_children = field.get("children") is not None
        if (node is None) != has_children:
            found = "both" if has_children else "neither"
            self._bag.error(Code.WRONG_KIND, mapping.span, key="a child", expected="`node` or `children`", found=found)
            return None
        text = "" if name is None else name.text
        if has_children:
            return ChildField(text, None, reaction, self.supervisor(field, depth + 1))
        assert node is not None
        self._agents += 1
        for key in _OF_SUPERVISORS:
            if (given := field.get(key)) is not None:
                help_ = "write it in the supervisor above, or give this child `children`"
                self._bag.error(Code.UNKNOWN_KEY, given.span, where="an agent", key=key, help=help_)
        found_node = self._callees.find(node.text)
        if isinstance(found_node, NotCallable):
            self._bag.report(found_node.code, node.span, found_node.holes, found_node.help)
            return None
        return ChildField(text, found_node.node_id, reaction)

    def _check_names(self, listed: Sequence | None) -> None:
        seen: set[str] = set()
        for each in listed.items if listed else ():
            entries = getattr(each, "entries", ())
            name = next((value for key, value in entries if key.text == "name" and isinstance(value, Scalar)), None)
            if name is None:
                continue
            if not _NAME.fullmatch(name.text) or name.text == "dead":
                self._bag.error(Code.BAD_NAME, name.span, name=name.text, what="a child")
            elif name.text in seen:
                self._bag.error(Code.DUPLICATE_KEY, name.span, key=name.text)
            seen.add(name.text)

    # -- settings ---------------------------------------------------------------------------------

    def _word(self, field: Fields, key: str, allowed: tuple[str, ...]) -> str:
        scalar = field.scalar(key)
        if scalar is None:
            return allowed[0]
        if scalar.text not in allowed:
            expected = " or ".join(f"`{each}`" for each in allowed)
            help_ = did_you_mean(scalar.text, allowed)
            found = f"`{scalar.text}`"
            self._bag.error(Code.WRONG_KIND, scalar.span, key=key, expected=expected, found=found, help=help_)
        return scalar.text

    def _restarts(self, field: Fields, default: int) -> int:
        """Read a number of restarts, from 0 on."""
        tree = field.get("max_restarts")
        value = default if tree is None else read_literal(INTEGER, tree, "max_restarts", self._bag)
        if tree is None or isinstance(value, Unread) or not isinstance(value, int):
            return default
        if not 0 <= value <= _MAX_RESTARTS:
            expected = f"a number from 0 to {_MAX_RESTARTS:,}"
            self._bag.error(Code.BAD_LITERAL, tree.span, text=str(value), expected=expected)
        return value

    def _count(self, field: Fields, key: str, maximum: int) -> int | None:
        tree = field.get(key)
        return None if tree is None else self._policies.read_count(tree, key, maximum)

    def _duration(self, field: Fields, key: str) -> int | None:
        tree = field.get(key)
        return None if tree is None else self._policies.read_duration_us(tree, key)

    def _backoff(self, field: Fields) -> Backoff:
        default = SupervisorField(()).backoff
        mapping = field.mapping("backoff")
        if mapping is None:
            return default
        entry = Fields(mapping, shapes.ATTEMPT_WAITS, self._bag)
        base = self._duration(entry, "base") or default.base_us
        factor = self._count(entry, "factor", 100) or default.factor
        return Backoff(base, factor, self._duration(entry, "max") or max(default.max_us, base))
