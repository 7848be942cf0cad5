"""Stops of a sensitive run with masks: values are masked by taint flags, as in traces.

An expression could reveal what a mask hides, by its value or by where it stops. One that reads a sensitive name is
refused.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from vesper.debug.breakpoints import Breakpoint, Kind
from vesper.debug.session import Session, called_by
from vesper.debug.stops import Clause, Stop
from vesper.engines.outcome import ContractBroken
from vesper.host.masking import SENSITIVE, Masks
from vesper.language.ir import nodes as ir
from vesper.trace.expressions import BoundExpression, Key
from vesper.values.vesper_error import VesperError


class SensitiveExpression(VesperError):
    """An expression reads a sensitive value."""


class SessionMasks:
    """Masks of a session of the debugger, and of the nodes that it calls."""

    def __init__(self, masks: Masks) -> None:
        self._root = masks

    def _of(self, session: Session) -> Masks:
        return self._root.called(session.prefix.rstrip("/")) if session.prefix else self._root

    def mask_stop(self, session: Session, stop: Stop) -> Stop:
        """Return the stop without sensitive values. Conditions stay: they are the path."""
        masks = self._of(session)
        if not masks.is_active:
            return stop
        call, request, given = called_by(stop), stop.request, stop.given
        if request is not None:
            mask = masks.request(request.path)
            arguments: Any = mask.mask_arguments(request.arguments)
            request = replace(request, arguments=arguments, key=mask.mask_key(request.key))
        if given is not None and call is not None:
            hidden: Any = masks.called(call.name).inputs(given)
            given = hidden
        gives = stop.gives
        if gives is not None:
            gives = replace(gives, value=_mask_value(masks, ("step", getattr(stop.statement, "name", "")), gives.value))
        return replace(
            stop,
            names={key: replace(each, value=_mask_value(masks, key, each.value)) for key, each in stop.names.items()},
            request=request,
            given=given,
            clauses=[_mask_clause(session.compiled.node, masks, each) for each in stop.clauses],
            gives=gives,
            fails=stop.fails if stop.fails is None or request is not None else SENSITIVE,
            outcome=None if stop.outcome is None else masks.outcome(stop.outcome),
        )

    def check(self, session: Session, question: BoundExpression | None) -> None:
        """Raise `SensitiveExpression` if the expression reads a sensitive name."""
        masks = self._of(session)
        for key in () if question is None else question.mentions:
            if _mask_value(masks, key, "a value") != "a value":
                raise SensitiveExpression(
                    f"`{key[1] if key[0] != 'local' else 'a name of the loop'}` is sensitive here, and an expression "
                    "could reveal it; `vesper debug --trace ID --reveal` evaluates it on the machine of the service"
                )

    def check_breakpoint(self, session: Session, point: Breakpoint) -> None:
        """Raise `SensitiveExpression` if the breakpoint reads a sensitive name, or may read one in a called node."""
        self.check(session, point.question)
        if point.kind is Kind.INSIDE and " if " in point.inner:
            raise SensitiveExpression("a condition in a called node of a sensitive run could reveal its values")

    def value(self, session: Session, index: int | None, value: object) -> object:
        """Return the shown value of an expression, or of a text that may hold any value."""
        masks = self._of(session)
        return SENSITIVE if masks.is_active and index is None else value if index is None else masks.mark(index, value)


def _mask_value(masks: Masks, key: Key, value: object) -> Any:
    """Return the shown value of a name. Names of loops have no flags of their own."""
    kind, name = key
    if kind == "local":
        return SENSITIVE if masks.is_active else value
    return masks.named(kind, name, value)


def _mask_clause(node: ir.Node, masks: Masks, clause: Clause) -> Clause:
    known = dict(node.phases()).get(clause.phase, ())
    if clause.index >= len(known) or known[clause.index].text != clause.text:
        return replace(clause, values=dict.fromkeys(clause.values, SENSITIVE))
    values: Any = masks.broken(ContractBroken(clause.phase, clause.index, clause.values))
    return replace(clause, values=values)
