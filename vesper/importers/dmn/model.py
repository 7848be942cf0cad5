"""A DMN model as data: item definitions, input data, decisions, knowledge models, services, boxed expressions."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias


@dataclass(slots=True)
class ItemDefinition:
    """A named type: a reference to another, or components."""

    name: str
    type_ref: str
    is_collection: bool
    components: list[ItemDefinition]
    allowed: str
    line: int
    is_function: bool = False


@dataclass(slots=True)
class Literal:
    """FEEL text."""

    text: str
    type_ref: str
    line: int
    language: str = ""


@dataclass(slots=True)
class Entry:
    """A named part of a boxed expression."""

    name: str
    type_ref: str
    value: Boxed | None
    line: int


@dataclass(slots=True)
class BoxedContext:
    """Entries in order; the one without name is the result."""

    entries: list[Entry]
    type_ref: str
    line: int


@dataclass(slots=True)
class BoxedInvocation:
    """A call with named arguments."""

    function: Boxed | None
    bindings: list[Entry]
    type_ref: str
    line: int


@dataclass(slots=True)
class BoxedList:
    """A list of expressions."""

    items: list[Boxed | None]
    type_ref: str
    line: int


@dataclass(slots=True)
class BoxedRelation:
    """Rows of expressions under named columns."""

    columns: list[Entry]
    rows: list[list[Boxed | None]]
    type_ref: str
    line: int


@dataclass(slots=True)
class BoxedFunction:
    """A function definition."""

    parameters: list[Entry]
    body: Boxed | None
    kind: str
    type_ref: str
    line: int


@dataclass(slots=True)
class BoxedConditional:
    """`if`, `then`, `else` as elements."""

    condition: Boxed | None
    then: Boxed | None
    otherwise: Boxed | None
    type_ref: str
    line: int


@dataclass(slots=True)
class BoxedFilter:
    """`in` and `match` as elements."""

    source: Boxed | None
    match: Boxed | None
    type_ref: str
    line: int


@dataclass(slots=True)
class BoxedIterator:
    """`for`, `some` or `every` as elements."""

    kind: str
    variable: str
    source: Boxed | None
    body: Boxed | None
    type_ref: str
    line: int


@dataclass(slots=True)
class TableInput:
    """An input column."""

    label: str
    expression: Literal
    values: str
    line: int


@dataclass(slots=True)
class TableOutput:
    """An output column."""

    name: str
    label: str
    type_ref: str
    values: str
    default: Literal | None
    line: int


@dataclass(slots=True)
class TableRule:
    """A row: cells, results and annotations."""

    inputs: list[Literal]
    outputs: list[Literal]
    annotations: list[str]
    line: int


@dataclass(slots=True)
class BoxedTable:
    """A decision table."""

    hit: str
    aggregation: str
    inputs: list[TableInput]
    outputs: list[TableOutput]
    annotations: list[str]
    rules: list[TableRule]
    type_ref: str
    line: int


@dataclass(slots=True)
class BoxedUnknown:
    """An element that the importer does not know."""

    tag: str
    type_ref: str
    line: int


Boxed: TypeAlias = (
    Literal
    | BoxedContext
    | BoxedInvocation
    | BoxedList
    | BoxedRelation
    | BoxedFunction
    | BoxedConditional
    | BoxedFilter
    | BoxedIterator
    | BoxedTable
    | BoxedUnknown
)


@dataclass(slots=True)
class InputData:
    """Data that a caller gives."""

    id: str
    name: str
    type_ref: str
    line: int
    model: Model


@dataclass(slots=True)
class Decision:
    """A decision: what it requires, and its logic."""

    id: str
    name: str
    type_ref: str
    logic: Boxed | None
    required: list[tuple[str, str]]
    """References in written order; each is the href and the name of an import, empty for the model itself."""
    question: str
    description: str
    line: int
    model: Model


@dataclass(slots=True)
class KnowledgeModel:
    """A business knowledge model: a function."""

    id: str
    name: str
    function: BoxedFunction | None
    type_ref: str
    required: list[tuple[str, str]]
    line: int
    model: Model


@dataclass(slots=True)
class Service:
    """A decision service."""

    id: str
    name: str
    type_ref: str
    outputs: list[str]
    encapsulated: list[str]
    input_decisions: list[str]
    input_data: list[str]
    line: int
    model: Model


Required: TypeAlias = InputData | Decision | KnowledgeModel | Service


@dataclass(slots=True, eq=False)
class Model:
    """One `definitions` element, with the models that it imports."""

    name: str
    namespace: str
    path: Path
    items: dict[str, ItemDefinition] = field(default_factory=dict)
    inputs: dict[str, InputData] = field(default_factory=dict)
    decisions: dict[str, Decision] = field(default_factory=dict)
    knowledge: dict[str, KnowledgeModel] = field(default_factory=dict)
    services: dict[str, Service] = field(default_factory=dict)
    imports: dict[str, Model] = field(default_factory=dict)
    """Imported models by the name of the import."""
    problems: list[tuple[str, int, str]] = field(default_factory=list)
    """Element, line and reason of each part that is not read."""

    def resolve(self, href: str) -> tuple[str, Required] | None:
        """Return the name of the import (empty for this model) and the element of a reference."""
        namespace, _, identifier = href.rpartition("#")
        if namespace in ("", self.namespace):
            found = self._own(identifier)
            return None if found is None else ("", found)
        for name, model in self.imports.items():
            if model.namespace == namespace:
                found = model._own(identifier)
                return None if found is None else (name, found)
        return None

    def _own(self, identifier: str) -> Required | None:
        tables: tuple[dict[str, InputData] | dict[str, Decision] | dict[str, KnowledgeModel] | dict[str, Service], ...]
        tables = (self.inputs, self.decisions, self.knowledge, self.services)
        for table in tables:
            if identifier in table:
                return table[identifier]
        return None
