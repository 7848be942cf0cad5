"""Picture of a node's flow as SVG: steps from top to bottom, alternatives side by side."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.diagnostics.source import SourceFile, Span
from vesper.language.syntax import ast
from vesper.language.syntax.yaml.reader import read_yaml
from vesper.language.syntax.yaml_to_ast import build_ast

_MAX_CHARACTERS = 52
"""Longest line of a box; longer texts are wrapped."""
_MAX_LINES = 6
_CHARACTER, _LINE, _PADDING, _GAP = 7.3, 16, 8, 8
"""Sizes in pixels, of a monospaced font of 12 pixels."""
_STYLE = (
    "text{font:12px monospace;fill:currentColor;white-space:pre}rect{fill:currentColor;fill-opacity:.04;"
    "stroke:currentColor;stroke-opacity:.5}.name{font-weight:bold}.label{font-style:italic;fill-opacity:.75}"
    ".effect{fill:#2b7de9;fill-opacity:.18}.end{fill:#2a9d5c;fill-opacity:.18}.failure{fill:#d1495b;fill-opacity:.18}"
)


@dataclass(frozen=True, slots=True)
class _Box:
    """A step: its text, and the boxes of its alternatives, each with a label."""

    title: str
    lines: tuple[str, ...]
    kind: str = ""
    columns: tuple[tuple[str, tuple[_Box, ...]], ...] = ()

    @property
    def own_height(self) -> int:
        return _LINE * (1 + len(self.lines)) + 2 * _PADDING

    @property
    def height(self) -> int:
        inner = max((_LINE + _GAP + _stack_height(boxes) for _, boxes in self.columns), default=0)
        return self.own_height + (inner + _GAP if inner else 0)

    @property
    def width(self) -> float:
        own = max(len(line) for line in (self.title, *self.lines)) * _CHARACTER + 2 * _PADDING
        return max(own, sum(_column_width(*each) + _GAP for each in self.columns) + _GAP if self.columns else 0)


def draw_flow(source: SourceFile) -> str:
    """Return the picture of a node without errors."""
    bag = DiagnosticBag(source)
    tree = read_yaml(bag)
    document = None if tree is None else build_ast(tree, bag)
    assert document is not None, f"{source.path} has errors"
    boxes = _Drawer(document.source).boxes(document.flow)
    width, height = max(box.width for box in boxes) + 2 * _GAP, _stack_height(boxes) + 2 * _GAP
    body = "\n".join(_stack(boxes, _GAP, _GAP, width - 2 * _GAP))
    title = escape(f"Flow of {document.node_id.text}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" role="img">'
        f"<title>{title}</title><style>{_STYLE}</style>\n{body}\n</svg>\n"
    )


# -- boxes ----------------------------------------------------------------------------------------


class _Drawer:
    def __init__(self, source: SourceFile) -> None:
        self._source = source

    def boxes(self, steps: Iterable[ast.Step]) -> tuple[_Box, ...]:
        return tuple(self._box(step) for step in steps)

    def _box(self, step: ast.Step) -> _Box:
        operation = step.operation.text
        title = operation if step.name is None else f"{step.name.text}: {operation}"
        lines = [f"when {self._text(each.span)}" for each in step.conditions]
        details, columns = self._parts(step.action)
        columns += [
            (f"on {', '.join(code.text for code in each.codes)}", self._block(each.steps, each.value))
            for each in step.handlers
        ]
        kind = "effect" if isinstance(step.action, ast.EffectStep | ast.Transition | ast.CallNode) else ""
        kind = {ast.Return: "end", ast.Raise: "failure"}.get(type(step.action), kind)
        return _Box(title, _wrapped([*lines, *details]), kind, tuple(columns))

    def _parts(self, action: ast.Action) -> tuple[list[str], list[tuple[str, tuple[_Box, ...]]]]:
        """Return the text of an action, and its blocks with their labels."""
        match action:
            case ast.Compute(value):
                return [self._text(value.span)], []
            case ast.DecisionTable(rows, otherwise, _):
                if isinstance(rows, ast.TableFile):
                    return [f"rows of {rows.path.text}"], []
                return [self._row(row) for row in (*rows, *((otherwise,) if otherwise else ()))], []
            case ast.Validation(requirements):
                return [f"require {each.clause.text}" for each in requirements], []
            case ast.Conditional(condition, then, otherwise_block):
                blocks = [("yes", then), ("no", otherwise_block)]
                return [self._text(condition.span)], [(label, self._of(block)) for label, block in blocks if block]
            case ast.Match(on, cases, otherwise_block):
                labels = [(", ".join(each.text for each in case.literals), case.then) for case in cases]
                labels += [("otherwise", otherwise_block)] if otherwise_block else []
                return [self._text(on.span)], [(label, self._of(block)) for label, block in labels]
            case ast.Loop(binding, condition):
                head = []
                if binding is not None:
                    names = ", ".join(each.text for each in binding.names)
                    where = [] if binding.where is None else [f"WHERE {self._text(binding.where.span)}"]
                    head = [f"{names} IN {self._text(binding.over.span)}", *where]
                head += [] if condition is None else [f"while {self._text(condition.span)}"]
                next_ = [f"{name.text} = {self._text(value.span)}" for name, value in action.next]
                next_ += [] if action.collect is None else [f"collect {self._text(action.collect.span)}"]
                return [*head, *next_], [("each", self.boxes(action.steps))] if action.steps else []
            case ast.Return(values):
                return [f"{name.text} = {self._text(value.span)}" for name, value in values], []
            case ast.Raise(error):
                return [f"{name.text} = {self._text(value.span)}" for name, value in error.values], []
            case ast.CallNode(node):
                return [node.text], []
            case ast.Transition(machine, entity, _, target):
                return [f"{machine.text} of {self._text(entity.span)} → {target.text}"], []
            case ast.StateRead(machine, entity):
                return [f"{machine.text} of {self._text(entity.span)}"], []
            case ast.EffectStep(_, words):
                sql = [] if action.sql is None else [" ".join(action.sql.text.split())]
                return [" ".join(word.text for word in words.values()), *sql], []

    def _row(self, row: ast.Row) -> str:
        tests = [f"{name.text} {cell.text.text}" for name, cell in row.cells]
        tests += [] if row.when is None else [self._text(row.when.span)]
        result = "counted" if row.then is None else self._text(row.then.span)
        return f"{' and '.join(tests) or 'otherwise'} → {result}"

    def _of(self, block: ast.Block) -> tuple[_Box, ...]:
        return self._block(block.steps, block.value)

    def _block(self, steps: Sequence[ast.Step], value: ast.Expression | None) -> tuple[_Box, ...]:
        last = () if value is None else (_Box("value", _wrapped([self._text(value.span)])),)
        return (*self.boxes(steps), *last)

    def _text(self, span: Span) -> str:
        return " ".join(self._source.slice(span).split())


def _wrapped(texts: Iterable[str]) -> tuple[str, ...]:
    lines = [line for text in texts for line in textwrap.wrap(text, _MAX_CHARACTERS)]
    hidden = len(lines) - _MAX_LINES + 1
    return tuple(lines if hidden <= 1 else [*lines[: _MAX_LINES - 1], f"… {hidden} more lines"])


# -- layout ---------------------------------------------------------------------------------------


def _stack_height(boxes: Sequence[_Box]) -> int:
    return sum(box.height for box in boxes) + _GAP * max(0, len(boxes) - 1)


def _column_width(label: str, boxes: Sequence[_Box]) -> float:
    return max(len(label) * _CHARACTER, *(box.width for box in boxes), 0)


def _stack(boxes: Iterable[_Box], left: float, top: float, width: float) -> list[str]:
    found = []
    for box in boxes:
        found += _drawn(box, left, top, width)
        top += box.height + _GAP
    return found


def _drawn(box: _Box, left: float, top: float, width: float) -> list[str]:
    kind = f' class="{box.kind}"' if box.kind else ""
    found = [f'<rect x="{left:.0f}" y="{top:.0f}" width="{width:.0f}" height="{box.height}" rx="3"{kind}/>']
    found += [_line(text, left + _PADDING, top + _PADDING + _LINE * number) for number, text in enumerate(box.lines, 1)]
    found.append(_line(box.title, left + _PADDING, top + _PADDING, "name"))
    top += box.own_height
    # Columns share what their box is wider than them.
    widths = [_column_width(*each) for each in box.columns]
    spare = max(0.0, width - _GAP - sum(each + _GAP for each in widths)) / max(1, len(widths))
    left += _GAP
    for (label, boxes), own in zip(box.columns, widths, strict=True):
        found.append(_line(label, left, top, "label"))
        found += _stack(boxes, left, top + _LINE + _GAP, own + spare)
        left += own + spare + _GAP
    return found


def _line(text: str, left: float, top: float, kind: str = "") -> str:
    class_ = f' class="{kind}"' if kind else ""
    return f'<text x="{left:.0f}" y="{top + _LINE - 4:.0f}"{class_}>{escape(text)}</text>'
