"""Breakpoints in terms of the node: contracts, transitions, steps, effects, expressions.

Forms: `contract_violation`, `state_transition:paid->refunded` (with `*`), an expression (`input.amount > 10000`),
`divergence`, `step:NAME`, `effect:http`, `FILE:LINE`; each takes an optional ` if EXPRESSION`. Texts are parsed and
rejected before an execution starts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from fnmatch import fnmatchcase
from pathlib import PurePath

from vesper.compiler import Compiled
from vesper.debug.stops import guarded_by, label, line_of
from vesper.host.plans import plans_of
from vesper.language.diagnostics.suggest import did_you_mean
from vesper.language.ir import nodes as ir
from vesper.language.ir.nodes import item_types
from vesper.language.ir.statements import all_statements, value_type
from vesper.trace.expressions import BadExpression, BoundExpression, Expressions, Key, Name, Names
from vesper.values.generated.effects import EFFECTS
from vesper.values.model import same
from vesper.values.types import BOOLEAN


class BadBreakpoint(ValueError):
    """The text names no place of this node; the message gives the reason and valid forms."""


class Kind(Enum):
    CONTRACT = "contract_violation"
    DIVERGENCE = "divergence"
    TRANSITION = "state_transition"
    STEP = "step"
    EFFECT = "effect"
    LINE = "line"
    EXPRESSION = "expression"
    WATCH = "watch"
    INSIDE = "inside"


AFTER = frozenset({Kind.CONTRACT, Kind.TRANSITION})
"""Kinds that concern the result of a statement rather than reaching it."""
_ANYWHERE = AFTER | {Kind.EFFECT}
"""Kinds that also apply inside called nodes without naming them."""


@dataclass(frozen=True, slots=True)
class Breakpoint:
    text: str
    kind: Kind
    pattern: str = ""
    """Step, effect or `from->to`, depending on the kind."""
    line: int = 0
    question: BoundExpression | None = None
    """Condition, breakpoint expression or watched expression."""
    callee: str = ""
    """Id of the called node for a breakpoint of kind `INSIDE`."""
    inner: str = ""
    """Text of the breakpoint inside that node."""


_TRANSITION = re.compile(r"\s*(?P<from>[^\s>-]+)\s*(?:->|→)\s*(?P<to>\S+)\s*")
_PLACE = re.compile(r"(?P<file>[^:]*\.vsp)?:?(?P<line>[0-9]+)")
_CONDITION = re.compile(r"(?P<place>\S.*?)\s+if\s+(?P<condition>.+)", re.DOTALL)


def parse_breakpoint(text: str, compiled: Compiled, expressions: Expressions) -> Breakpoint:
    """Parse a breakpoint.

    Raises `BadBreakpoint`, and `BadExpression` for an invalid expression.
    """
    try:
        return _parse_here(text.strip(), compiled, expressions)
    except BadBreakpoint as problem:
        found = _parse_inside(text.strip(), compiled)
        if found is None:
            raise problem from None
        return found


def _parse_inside(text: str, compiled: Compiled) -> Breakpoint | None:
    """Parse a step, line or transition of a called node, or return None.

    Examples: `step:pay/charge`, `step:charge`, `charge_v1.vsp:12`.
    """
    head, _, rest = text.partition(":")
    for callee, wanted in _callees_for(head, rest, text, compiled):
        try:
            parse_breakpoint(wanted, callee, Expressions(callee))
        except (BadBreakpoint, BadExpression):
            continue
        return Breakpoint(text, Kind.INSIDE, callee=callee.node.node_id, inner=wanted)
    return None


def _callees_for(head: str, rest: str, text: str, compiled: Compiled) -> Iterator[tuple[Compiled, str]]:
    """Yield the called nodes that a text may name, each with its text inside that node."""
    by_id = {each.node.node_id: each for each in compiled.callees}
    if head == "step" and "/" in rest:
        step, _, inner = rest.strip().partition("/")
        for statement in all_statements(compiled.node.body):
            if isinstance(statement, ir.CallNode) and label(statement) == step:
                yield by_id[statement.node], f"step:{inner}"
    elif head in ("step", Kind.TRANSITION.value) or _PLACE.fullmatch(text.partition(" if ")[0]):
        yield from ((each, text) for each in compiled.callees)


def inside(points: Iterable[Breakpoint], callee: Compiled) -> Iterator[tuple[str, str]]:
    """Yield the breakpoints that apply in a called node: the text there, and the user's text."""
    for each in points:
        if each.kind is Kind.INSIDE and each.callee == callee.node.node_id:
            yield each.inner, each.text
        elif each.kind in _ANYWHERE and each.question is None:
            yield each.text, each.text


def _parse_here(stripped: str, compiled: Compiled, expressions: Expressions) -> Breakpoint:
    place, question = stripped, None
    conditional = _CONDITION.fullmatch(stripped)
    if conditional is not None and _names_a_place(conditional["place"]):
        place = conditional["place"]
        question = expressions.parse(conditional["condition"], all_names(compiled.node), BOOLEAN, "breakpoint")
    return _build(stripped, place, question, compiled, expressions)


def _names_a_place(text: str) -> bool:
    words = (Kind.CONTRACT.value, Kind.DIVERGENCE.value)
    return (
        text in words
        or text.partition(":")[0] in ("step", "effect", "state_transition")
        or bool(_PLACE.fullmatch(text))
    )


def _build(
    text: str, place: str, question: BoundExpression | None, compiled: Compiled, expressions: Expressions
) -> Breakpoint:
    head, _, rest = place.partition(":")
    if place in (Kind.CONTRACT.value, Kind.DIVERGENCE.value):
        return Breakpoint(text, Kind(place), question=question)
    if head == "state_transition":
        return Breakpoint(text, Kind.TRANSITION, _check_transition(rest, compiled.node), question=question)
    if head == "step":
        return Breakpoint(text, Kind.STEP, _check_step(rest.strip(), compiled), question=question)
    if head == "effect":
        return Breakpoint(text, Kind.EFFECT, _check_effect(rest.strip(), compiled), question=question)
    found = _PLACE.fullmatch(place)
    if found is not None:
        return Breakpoint(
            text, Kind.LINE, line=_statement_line(found["file"], int(found["line"]), compiled), question=question
        )
    if re.fullmatch(r"[a-z_]+", place) and place not in {name.name for name in all_names(compiled.node).values()}:
        words = [Kind.CONTRACT.value, Kind.DIVERGENCE.value, *(f"step:{each}" for each in step_names(compiled))]
        hint = did_you_mean(place, words) or did_you_mean(f"step:{place}", words) or HELP
        raise BadBreakpoint(f"`{place}` is not a breakpoint, and {compiled.node.node_id} has no such name; {hint}")
    return Breakpoint(
        text, Kind.EXPRESSION, question=expressions.parse(place, all_names(compiled.node), BOOLEAN, "breakpoint")
    )


HELP = (
    "write contract_violation, state_transition:FROM->TO, divergence, step:NAME, effect:NAME, FILE:LINE "
    "or an expression"
)


def check_engines(point: Breakpoint, count: int) -> None:
    """Raise `BadBreakpoint` for a breakpoint that this number of engines never reaches."""
    if point.kind is Kind.DIVERGENCE and count < 2:
        raise BadBreakpoint("`divergence` needs two engines; start with --comparative to run both")


def parse_watch(text: str, compiled: Compiled, expressions: Expressions) -> Breakpoint:
    """Parse a watch, which stops where the value of its expression changes."""
    question = expressions.parse(text.strip(), all_names(compiled.node), None, "watch")
    return Breakpoint(text.strip(), Kind.WATCH, question=question)


def all_names(node: ir.Node) -> Names:
    """Return every name that has a value somewhere in the flow, with its declared type."""
    found: dict[Key, Name] = {("input", each.name): Name(each.name, each.type) for each in node.inputs}
    for statement in all_statements(node.body):
        type_ = value_type(statement)
        if type_ is not None and not isinstance(statement, ir.Return | ir.Raise | ir.Require):
            name = statement.name.lstrip("_")
            if not any(each.name == name for each in found.values()):  # the guard comes before the step that it guards
                found["step", statement.name] = Name(name, type_)
        if isinstance(statement, ir.Loop):
            if statement.over is not None:
                for number, name, item in zip(
                    statement.locals, statement.names, item_types(statement.over.type), strict=False
                ):
                    found["local", str(number)] = Name(name, item)
            for each in statement.state:
                found["local", str(each.local)] = Name(each.name, each.value.type)
    return found


def step_names(compiled: Compiled, prefix: str = "") -> Iterator[str]:
    """Yield the names of a node's steps as its author wrote them."""
    seen = set()
    for statement in all_statements(compiled.node.body):
        name = label(statement)
        if ":" not in name and name not in seen:
            seen.add(name)
            yield f"{prefix}{name}"


def _check_step(wanted: str, compiled: Compiled) -> str:
    names = list(step_names(compiled))
    if wanted in names or (any(sign in wanted for sign in "*?[") and any(fnmatchcase(each, wanted) for each in names)):
        return wanted
    hint = did_you_mean(wanted, names) or f"its steps are {', '.join(names)}"
    raise BadBreakpoint(f"{compiled.node.node_id} has no step `{wanted}`; {hint}")


def _check_effect(wanted: str, compiled: Compiled) -> str:
    if not any(matches_effect(wanted, each) for each in EFFECTS):
        families = sorted({each.partition("_")[0] for each in EFFECTS})
        hint = did_you_mean(wanted, [*EFFECTS, *families]) or f"effects are {', '.join(families)}"
        raise BadBreakpoint(f"there is no effect `{wanted}`; {hint}")
    asked = sorted({plan.effect for plan in plans_of(compiled).requests.values()})
    if not any(matches_effect(wanted, each) for each in asked):
        others = f"it requests {', '.join(asked)}" if asked else "it has no effects"
        raise BadBreakpoint(f"{compiled.node.node_id} never requests `{wanted}`; {others}")
    return wanted


def matches_effect(wanted: str, effect: str) -> bool:
    """Return whether a name, a family such as `http`, or a pattern matches an effect."""
    return effect == wanted or effect.startswith(f"{wanted}_") or fnmatchcase(effect, wanted)


def _check_transition(text: str, node: ir.Node) -> str:
    found = _TRANSITION.fullmatch(text)
    if found is None:
        raise BadBreakpoint(f"`state_transition:{text}`: write state_transition:paid->refunded; `*` is any state")
    states = [state for machine in node.machines for state in machine.states]
    if not states:
        raise BadBreakpoint(f"{node.node_id} has no state machine: it makes no transitions")
    for wanted in (found["from"], found["to"]):
        if not any(fnmatchcase(state, wanted) for state in states):
            hint = did_you_mean(wanted, states) or f"its states are {', '.join(dict.fromkeys(states))}"
            raise BadBreakpoint(f"{node.node_id} has no state `{wanted}`; {hint}")
    return f"{found['from']}->{found['to']}"


def matches_transition(pattern: str, before: str, after: str) -> bool:
    wanted, _, to = pattern.partition("->")
    return fnmatchcase(before, wanted) and fnmatchcase(after, to)


def _statement_line(file: str | None, wanted: int, compiled: Compiled) -> int:
    """Return the line of the statement at or above the wanted line."""
    own = PurePath(compiled.source.path)
    if file and PurePath(file).name != own.name:
        raise BadBreakpoint(f"`{file}:{wanted}`: this session debugs {own.name}")
    lines = statement_lines(compiled)
    last = compiled.source.text.count("\n") + 1
    reached = [each for each in lines if each <= wanted]
    if not reached or wanted > last:
        raise BadBreakpoint(f"line {wanted} is in no step; the steps are in lines {lines[0]} to {lines[-1]}")
    return reached[-1]


def statement_lines(compiled: Compiled) -> list[int]:
    guarded = {id(each) for each in map(guarded_by, all_statements(compiled.node.body)) if each is not None}
    statements = all_statements(compiled.node.body)
    return sorted({line_of(each) for each in statements if id(each) not in guarded})


def has_changed(before: object, after: object) -> bool:
    return not same(before, after)
