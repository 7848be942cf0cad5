"""The explanation of one execution as plain data (docs/spec/explanations.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from vesper.engines.outcome import Outcome
from vesper.language.ir.nodes import Node
from vesper.values.types import Type


@dataclass(frozen=True, slots=True)
class NamedValue:
    """The value of a name in a condition; a field of a record is `order.total`."""

    value: object
    type: Type | None


@dataclass(frozen=True, slots=True)
class MatchedRow:
    """A row of a decision table whose condition held, or its `otherwise` where none did."""

    table: str
    hit: str
    row: int
    """Number of the row, from 1."""
    line: int
    text: str
    """The condition as written; `otherwise` for the default row."""
    cells: Mapping[str, str]
    annotation: str | None
    reason: str | None
    times: int = 1


@dataclass(frozen=True, slots=True)
class Condition:
    """An evaluated condition or clause."""

    index: int
    """Index of its expression (docs/spec/ir.md)."""
    kind: str
    """`when`, `branch`, `row`, `if`, `where`, `while`, `stop_when`, or the phase of a clause."""
    step: str
    text: str
    line: int
    holds: bool
    values: Mapping[str, NamedValue]
    reason: str | None = None
    """Reason code that the author gave for the result."""
    times: int = 1


@dataclass(frozen=True, slots=True)
class UsedParameter:
    """A dated parameter that the execution may have read, with the entry in force."""

    name: str
    date: str | None
    """The date of the lookup; None where it is not known."""
    since: str | None
    """First date of the entry; None where none was in force."""
    value: NamedValue
    reference: str | None
    unit: str | None
    line: int


@dataclass(frozen=True, slots=True)
class Change:
    """A changed part of the inputs: `amount`, `order.lines[0].quantity`."""

    path: str
    before: object
    after: object
    type: Type


@dataclass(frozen=True, slots=True)
class Nearest:
    """The nearest input with another outcome that a bounded search found."""

    tries: int
    """Executions of the search."""
    changes: tuple[Change, ...] = ()
    """Empty where none was found."""
    inputs: Mapping[str, object] | None = None
    outcome: Outcome | None = None
    kind: str = ""
    """What changes: a `decision` (an enum, a boolean, an error), the `path`, or only a `value`."""

    @property
    def is_found(self) -> bool:
        return self.inputs is not None


@dataclass(frozen=True, slots=True)
class Explanation:
    """The reasons for the outcome of an execution. Equal on every engine."""

    node_id: str
    semantic_hash: str
    outcome: Outcome | None
    reasons: tuple[str, ...]
    """Reason codes, in the order in which they applied, each once."""
    rows: tuple[MatchedRow, ...]
    conditions: tuple[Condition, ...]
    """Distinct results in the order of evaluation; `times` counts repetitions."""
    parameters: tuple[UsedParameter, ...]
    nearest: Nearest | None
    """None where it was not searched."""
    omitted: int = 0
    """Further distinct conditions and rows beyond the maximum."""
    node: Node | None = field(default=None, compare=False, repr=False)
    """The node, whose types the JSON form needs."""

    @property
    def text(self) -> str:
        from vesper.api.explanation.render import text_of

        return text_of(self)

    @property
    def markdown(self) -> str:
        from vesper.api.explanation.render import markdown_of

        return markdown_of(self)

    def to_json(self) -> dict[str, Any]:
        """Return the explanation as a JSON object with values in their JSON forms."""
        from vesper.api.explanation.json_form import json_of_explanation

        return json_of_explanation(self)

    def __str__(self) -> str:
        return self.text

    def _repr_markdown_(self) -> str:
        return self.markdown
