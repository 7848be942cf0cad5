"""Keys of `keyed` effects in loops: a warning for a key that rounds share, and the key that help lines propose.

The other side takes a second request under one key for a repetition of the first, so its effect is lost. A key differs
between rounds if it depends on a name of the loop: what it binds, its state, or a step of its body that reads one of
these or makes a request.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import DiagnosticBag, Label
from vesper.language.diagnostics.source import Span
from vesper.language.ir import nodes as ir
from vesper.language.ir.statements import all_statements, expressions_of, inner_blocks
from vesper.values.types import PRIMITIVES, STRING, Enum, Record, Type

_WITH_TEXT = tuple(PRIMITIVES[name] for name in ("integer", "date", "timestamp", "decimal"))
"""Types that `text(…)` takes and that are likely to tell rounds apart."""
_Depths = frozenset[int]
"""The open loops that a value depends on, by depth."""


def round_key(base: str, names: Iterable[tuple[str, Type | None]]) -> str:
    """Return a key that differs in each round, as an expression: a base and the text of a name of the loop."""
    part = next((text for name, type_ in names if (text := _as_text(name, type_)) is not None), None)
    base = f"({base})" if "??" in base or "IF " in base else base
    return f"{base} + '-' + {part or 'text(…)'}"


def check_loop_keys(body: ir.Block, bag: DiagnosticBag) -> None:
    """Warn of each key of a `keyed` effect that several rounds of a loop share."""
    _LoopKeys(bag).block(body)


class _LoopKeys:
    """Computes which open loops each name depends on."""

    def __init__(self, bag: DiagnosticBag) -> None:
        self._bag = bag
        self._open: list[ir.Loop] = []
        self._depths: dict[int | str, _Depths] = {}
        """Of each local by its number, and of each statement by its name."""

    def block(self, block: ir.Block) -> None:
        for statement in block:
            if isinstance(statement, ir.Request):
                self._check(statement)
            if isinstance(statement, ir.Loop):
                self._loop(statement)
            else:
                self._blocks(inner_blocks(statement))
            if self._open and not isinstance(statement, ir.Return | ir.Raise | ir.Require):
                self._depths[statement.name] = self._of_statement(statement)

    def _blocks(self, blocks: Iterable[ir.Block]) -> None:
        for block in blocks:
            self.block(block)

    def _loop(self, loop: ir.Loop) -> None:
        own = frozenset((len(self._open),))
        over = frozenset[int]() if loop.over is None else self._of(loop.over)
        self._depths |= dict.fromkeys(loop.locals, own | over)
        self._depths |= {each.local: own | self._of(each.value) for each in loop.state}
        self._open.append(loop)
        self.block(loop.body)
        self._open.pop()
        self._blocks(handler.body for handler in loop.handlers)

    def _of(self, expression: ir.Expression) -> _Depths:
        found = frozenset[int]()
        for part in ir.walk(expression):
            if isinstance(part, ir.Local):
                found |= self._depths.get(part.number, frozenset())
            elif isinstance(part, ir.Ref) and part.kind == "step":
                found |= self._depths.get(part.name, frozenset())
        return found

    def _of_statement(self, statement: ir.Statement) -> _Depths:
        """Return the open loops that a statement's value depends on. A completion may differ in every round."""
        every = frozenset(range(len(self._open)))
        if any(isinstance(each, ir.Request | ir.CallNode) for each in all_statements((statement,))):
            return every
        return every & frozenset().union(*map(self._of, expressions_of((statement,))))

    def _check(self, request: ir.Request) -> None:
        if request.key is None or request.effect_class != "keyed":
            return
        depths = self._of(request.key)
        shared = [loop for depth, loop in enumerate(self._open) if depth not in depths]
        if shared:
            self._report(request.key, shared[-1])

    def _report(self, key: ir.Expression, loop: ir.Loop) -> None:
        span, step = (_span(self._bag, place) for place in (key.place, loop.place))
        names = _names(loop)
        shown = " and ".join(f"`{name}`" for name, _ in names)
        help_ = (
            f"write a key that differs in each round, such as `{round_key(self._bag.source.slice(span), names)}`; "
            "to try one effect again until it succeeds, use `retry`"
        )
        problem = "rounds of this loop share a `key`: only the first effect takes place"
        label = f"does not depend on {shown}" if shown else "depends on nothing that the loop changes"
        also = (Label(step, "the loop"),)
        self._bag.warning(Code.EFFECT_CLASS, span, label, also=also, problem=problem, help=help_)


def _names(loop: ir.Loop) -> list[tuple[str, Type | None]]:
    """Return what a loop binds, then its state, with their types."""
    items: Sequence[Type] = () if loop.over is None else ir.item_types(loop.over.type)
    return [*zip(loop.names, items, strict=False), *((each.name, each.value.type) for each in loop.state)]


def _span(bag: DiagnosticBag, place: ir.Place) -> Span:
    source = bag.source
    return Span(source.offset(place.line, place.column), source.offset(place.end_line, place.end_column))


def _as_text(name: str, type_: Type | None) -> str | None:
    """Return an expression for the text of a value, or of a field that is likely to identify it."""
    if type_ == STRING:
        return name
    if type_ in _WITH_TEXT or isinstance(type_, Enum):
        return f"text({name})"
    if not isinstance(type_, Record):
        return None
    fields = sorted(type_.fields, key=lambda field: (not _is_id(field[0]), field[1] != STRING))
    return next((text for field, of in fields if (text := _as_text(f"{name}.{field}", of)) is not None), None)


def _is_id(name: str) -> bool:
    return name == "id" or name.endswith("_id")
