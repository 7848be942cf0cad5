"""Model answers drawn for a request: tool calls, structured output and text, valid and invalid.

Random JSON would name no tool and fit no schema, so runs would reach only the repair path of an agent.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from vesper.language.ir.nodes import Node
from vesper.language.json_schema.patterns import TEXTS
from vesper.values.pattern import PatternProblem
from vesper.values.types import BYTES, DATE, DECIMAL, DURATION, INTEGER, PERIOD, STRING, TIME_OF_DAY, TIMESTAMP, Type
from vesper.verify.inputs.edges import find_edges
from vesper.verify.inputs.json_shapes import SCALARS, json_text
from vesper.verify.inputs.pattern_texts import draw_text

_ODD_SHARE = 0.05
"""Share of the answers that are any JSON."""
_STOPS = ("refusal", "length")
_STOP_SHARE = 0.08
_CALL_SHARE = 0.4
_CALL_COUNTS = (1, 1, 1, 2, 3)
_UNKNOWN_SHARE = 0.08
"""Share of the calls of a tool that the request does not have."""
_TEXT_SHARE = 0.25
"""Share of the outputs that are in the text, as from a provider without structured output."""
_WRONG_SHARES = (0.0, 0.0, 0.1, 0.4)
_ITEMS = (0, 1, 1, 2, 3)
_ABSENT_SHARE = 0.3
_EDGE_SHARE = 0.5
_WRONG: tuple[object, ...] = (None, True, -1, Decimal("1.5"), "", "x", [], {}, {"a": 0})
_TEXTS = ("", "yes", "I cannot find it.", "é\n", "{}", '{"a": 1', "null")
_BY_PATTERN = {TEXTS["duration"]: DURATION, TEXTS["time_of_day"]: TIME_OF_DAY, TEXTS["period"]: PERIOD,
    TEXTS["bytes"]: BYTES}  # fmt: skip
_BY_FORMAT: dict[object, Type] = {"date": DATE, "date-time": TIMESTAMP}
_MAX_LENGTH = 2_000
"""Longest text that is drawn because the node compares a length with it."""


class ModelAnswers:
    """Generator of model answers for one node."""

    def __init__(self, node: Node) -> None:
        edges = find_edges(node)
        self._integers = [int(str(each)) for each in edges.values(INTEGER)]
        self._decimals = [each for each in edges.values(DECIMAL) if isinstance(each, Decimal)]
        self._strings = [each for each in edges.strings if len(each) <= _MAX_LENGTH]
        near = {each + step for each in edges.integers for step in (-1, 0, 1)}
        self._lengths = sorted(each for each in near if 0 <= each <= _MAX_LENGTH)

    def draw(self, request: object, chance: random.Random) -> object | None:
        """Return an answer to a request; None where it shall be any JSON."""
        if not isinstance(request, Mapping) or chance.random() < _ODD_SHARE:
            return None
        drawing = _Drawing(self, chance)
        tools = request.get("tools")
        answer: dict[str, object] = {"text": chance.choice(_TEXTS), "stop": "end"}
        if chance.random() < _STOP_SHARE:
            answer["stop"] = chance.choice(_STOPS)
        elif isinstance(tools, Sequence) and tools and chance.random() < _CALL_SHARE:
            answer |= {"stop": "tools", "tool_calls": drawing.calls(tools)}
        elif isinstance(form := request.get("output"), Mapping):
            output = drawing.value(form.get("schema"))
            is_text = chance.random() < _TEXT_SHARE
            answer |= {"text": json_text(output), "output": None if is_text else output}
        else:
            answer["text"] = drawing.text({})
        return answer


class _Drawing:
    """The draws of one answer."""

    def __init__(self, known: ModelAnswers, chance: random.Random) -> None:
        self._known = known
        self._chance = chance
        self._wrong_share = chance.choice(_WRONG_SHARES)

    def calls(self, tools: Sequence[Any]) -> list[object]:
        return [self._call(tools, at) for at in range(self._chance.choice(_CALL_COUNTS))]

    def _call(self, tools: Sequence[Any], at: int) -> object:
        tool = self._chance.choice(tools)
        name = str(tool["name"]) if self._chance.random() >= _UNKNOWN_SHARE else f"no_{tool['name']}"
        return {"id": f"call_{at}", "name": name, "arguments": self.value(tool.get("parameters"))}

    def value(self, schema: object) -> object:
        """Return a value that fits a schema; some parts do not where wrong ones are drawn."""
        if self._is_wrong():
            return self._chance.choice(_WRONG)
        if not isinstance(schema, Mapping):
            return self._chance.choice(_WRONG)
        if "enum" in schema:
            return self._chance.choice(schema["enum"])
        for several in ("anyOf", "oneOf"):
            if several in schema:
                return self.value(self._chance.choice(schema[several]))
        match schema.get("type"):
            case "object":
                return self._object(schema)
            case "array":
                return [self.value(schema.get("items")) for _ in range(self._chance.choice(_ITEMS))]
            case "integer" | "number" as kind:
                return self._number(kind == "integer", schema)
            case "string":
                return self.text(schema)
            case "boolean":
                return self._chance.random() < 0.5
            case "null":
                return None
            case _:
                return self._chance.choice(_WRONG)

    def _object(self, schema: Mapping[str, Any]) -> dict[str, object]:
        required = set(schema.get("required", ()))
        found = {
            name: self.value(each)
            for name, each in schema.get("properties", {}).items()
            if (not self._is_wrong() if name in required else self._chance.random() >= _ABSENT_SHARE)
        }
        others = schema.get("additionalProperties")
        if isinstance(others, Mapping):
            found |= {self.text({}): self.value(others) for _ in range(self._chance.choice(_ITEMS))}
        return found

    def _number(self, is_integer: bool, schema: Mapping[str, Any]) -> object:
        known: Sequence[int | Decimal] = self._known._integers if is_integer else self._known._decimals
        usual = [each for each in SCALARS[INTEGER if is_integer else DECIMAL] if isinstance(each, int | Decimal)]
        if is_integer:
            usual = [*range(10), *(each for each in usual if isinstance(each, int))]
        found = known if known and self._chance.random() < _EDGE_SHARE else usual
        low, high = schema.get("minimum"), schema.get("maximum")
        inside = [each for each in found if (low is None or each >= low) and (high is None or each <= high)]
        return self._chance.choice(inside or found)

    def text(self, schema: Mapping[str, Any]) -> str:
        pattern = schema.get("pattern")
        if isinstance(pattern, str) and pattern not in _BY_PATTERN:
            try:
                return draw_text(pattern, self._chance)
            except PatternProblem:  # of another dialect
                pass
        type_ = BYTES if "contentEncoding" in schema else _BY_PATTERN.get(str(pattern)) or _BY_FORMAT.get(
            schema.get("format")
        )  # fmt: skip
        if type_ is not None:
            return str(self._chance.choice(SCALARS[type_]))
        if self._known._lengths and self._chance.random() < _EDGE_SHARE:
            return "a" * self._chance.choice(self._known._lengths)
        return str(self._chance.choice([*SCALARS[STRING], *self._known._strings]))

    def _is_wrong(self) -> bool:
        return self._wrong_share > 0 and self._chance.random() < self._wrong_share
