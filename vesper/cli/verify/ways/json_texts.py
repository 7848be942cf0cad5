"""`node.run_json`, and lines of JSON in a batch: inputs as text, outcomes as canonical text."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, cast

from vesper.api.input_conversion import Plain, inputs_of_json
from vesper.api.json_calls import (
    declared_text,
    declared_values,
    fields_text,
    mentioned_types,
    object_text,
    outcome_json,
    outcome_of_json,
)
from vesper.cli.verify.ways.node_calls import LoadedNode, is_explained
from vesper.engines.outcome import (
    ContractBroken,
    DeclaredError,
    Denied,
    EngineFault,
    Failed,
    LimitHit,
    Outcome,
    Returned,
)
from vesper.language.ir.nodes import Node, record_of
from vesper.values.generated.errors import ErrorCode
from vesper.values.json_forms import has_names
from vesper.values.json_value import MAX_TEXT, json_string
from vesper.values.model import base64_text, scalar_text
from vesper.values.outside_names import spelled_record, to_outside
from vesper.values.period import Period
from vesper.values.strict_json import forms_of_json, has_surrogate
from vesper.values.types import STRING, ArrayOf, MapOf, OptionalOf, Record, SetOf, Type
from vesper.verify.differential.ways.way import Answer, Given, Subject, Way

_SHARE = 2
_ESCAPED_SHARE = 0.2
_MAX_ESCAPED = 1_000
_NODES_PER_LONG_TEXT = 20
"""One in this many nodes is given a text over the limit, which takes a tenth of a second."""
_NUMBER_SHARE = 0.5
_EXPONENT_SHARE = 0.2
_MAX_SHOWN = 300


@dataclass(frozen=True, slots=True)
class JsonInputs:
    """The inputs of a run as JSON text, and the reference's outcome on that text."""

    text: str
    plain: Plain
    wanted: Outcome


class RunJson(Way):
    """`run_json`: the bytes of the answer are compared.

    For some inputs they include the texts that `node.run_json` adds.
    """

    name = "run_json"
    share = _SHARE

    def __init__(self, loaded: LoadedNode, most_text: int = MAX_TEXT) -> None:
        """`most_text` is the limit of a text, which some nodes exceed by one."""
        self._loaded = loaded
        self._most_text = most_text
        node = loaded.subject.compiled.node
        chance = random.Random(f"{loaded.subject.seed} text {node.node_id}")
        texts = [each.name for each in node.inputs if each.type == STRING]
        self.long_input = texts[0] if texts and chance.randrange(_NODES_PER_LONG_TEXT) == 0 else None

    def answers(self, given: Sequence[Given]) -> Iterator[Answer]:
        subject = self._loaded.subject
        for each in given:
            yield self._answer(each, json_inputs(subject, each))
        name, self.long_input = self.long_input, None
        if name is not None:
            yield self._answer_long(given[0], name)

    def _answer_long(self, given: Given, name: str) -> Answer:
        """Compare a text that is one over the limit; it is shown by its length."""
        inputs = {**given.inputs, name: "x" * (self._most_text + 1)}
        answer = self._answer(given, json_inputs(self._loaded.subject, replace(given, inputs=inputs)))
        return replace(answer, detail=f"{name} of {self._most_text + 1:,} code points")

    def _answer(self, given: Given, inputs: JsonInputs) -> Answer:
        subject, start = self._loaded.subject, self._loaded.start(given)
        text = inputs.text.encode("utf-8")
        if is_explained(given):
            answer = self._loaded.node(given.number).run_json(text, **start)
            expected = outcome_json(subject.compiled, inputs.wanted, inputs.plain).encode()
        else:
            answer = subject.program(given.number).run_json(text, **start)
            expected = bare_json(subject.compiled.node, inputs.wanted).encode()
        if answer == expected:
            return Answer(given, inputs.wanted, inputs.wanted)
        found = _read_answer(subject, answer, inputs.wanted, expected)
        return Answer(given, found, inputs.wanted, inputs.text[:_MAX_SHOWN])


def bare_json(node: Node, outcome: Outcome) -> str:
    """Return an outcome as an engine writes it, without messages."""
    entries = [("kind", json_string(outcome.kind))]
    match outcome:
        case Returned(value):
            entries.append(("value", declared_text(node.outputs, value)))
        case DeclaredError(value):
            entries.append(("value", declared_text(node.errors, value)))
        case Failed(code, at, problems):
            listed = (f'{{"kind":"{each.kind.value}","path":{json_string(each.path)}}}' for each in problems)
            entries += [("code", json_string(code)), ("at", "null" if at is None else str(at))]
            entries.append(("problems", f"[{','.join(listed)}]"))
        case ContractBroken(phase, index, values):
            shown = fields_text(mentioned_types(node, phase, index), values)
            entries += [("index", str(index)), ("phase", json_string(phase)), ("values", shown)]
        case LimitHit(limit):
            entries.append(("limit", json_string(limit)))
        case Denied(capability):
            entries.append(("capability", json_string(capability)))
        case EngineFault(message):
            entries.append(("message", json_string(message)))
    return object_text(entries)


def json_inputs(subject: Subject, given: Given, now: datetime | None = None) -> JsonInputs:
    """Write inputs as JSON text, and run the reference on the objects of that text."""
    declared = subject.compiled.node.inputs
    writer = JsonWriter(random.Random(f"{subject.seed} json {given.number}"))
    text = writer.inputs(record_of(declared), given.inputs)
    found = inputs_of_json(declared, text)
    if found.refused:
        return JsonInputs(text, found, Failed(ErrorCode.BAD_INPUT, None, found.refused))
    wanted = subject.expect(given, found.inputs, now)
    if isinstance(wanted, Failed):
        wanted = Failed(wanted.code, wanted.at, tuple(map(found.caller_problem, wanted.problems)))
    return JsonInputs(text, found, wanted)


def _read_answer(subject: Subject, answer: bytes, wanted: Outcome, expected: bytes) -> Outcome:
    """Return the outcome that differs; where only its text differs, both texts."""
    try:
        form: dict[str, Any] = forms_of_json(answer.decode())
        if form["kind"] == "returned":
            found: Outcome = Returned(declared_values(subject.compiled.node.outputs, form["value"]))
        else:
            found = outcome_of_json(subject.compiled.node, answer)
    except (ValueError, KeyError, AttributeError) as error:
        return EngineFault(f"answers {answer[:_MAX_SHOWN]!r}, which is no outcome: {error}")
    if not Answer(Given(0, {}, None), found, wanted).differs:  # type: ignore[arg-type]  # only outcomes are compared
        place = next((at for at, pair in enumerate(zip(answer, expected, strict=False)) if pair[0] != pair[1]), 0)
        around = slice(max(0, place - 40), place + _MAX_SHOWN)
        return EngineFault(f"answers …{answer[around]!r}, and the canonical text is …{expected[around]!r}")
    return found


class JsonWriter:
    """A writer of inputs as JSON text, in varying forms of the same values."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def inputs(self, whole: Record, given: Mapping[str, object]) -> str:
        spelled, outside = spelled_record(whole), to_outside(whole, dict(given))
        names = list(outside)
        self._chance.shuffle(names)
        return self._dict(spelled, {name: outside[name] for name in names})

    def value(self, type_: Type | None, value: object) -> str:
        """Return a value as JSON; one without a JSON form as its text."""
        inner = type_.inner if isinstance(type_, OptionalOf) else type_
        match value:
            case None:
                return "null"
            case bool():
                return "true" if value else "false"
            case int():
                return str(value) if value.bit_length() < 4096 else f"{'-' * (value < 0)}{'9' * 1001}"
            case Decimal():
                return self._decimal(value)
            case float():
                return scalar_text(value) if math.isfinite(value) else json_string(scalar_text(value))
            case str():
                return self._string(value)
            case bytes() | bytearray():
                return self._string(base64_text(bytes(value)))
            case datetime() if value.utcoffset() is None:
                return self._string(value.isoformat())
            case time() if value.tzinfo is not None:
                return self._string(value.isoformat())
            case date() | timedelta() | time() | Period():
                return self._string(scalar_text(value))
            case dict():
                return self._dict(inner, value)
            case list() | tuple() | set() | frozenset():
                element = inner.element if isinstance(inner, ArrayOf | SetOf) else None
                items = value if isinstance(value, list | tuple) else sorted(value, key=repr)
                return self._join("[", [self.value(element, each) for each in items], "]")
            case _:
                return self._string(repr(value))

    def _dict(self, type_: Type | None, value: dict[Any, object]) -> str:
        if isinstance(type_, MapOf) and not has_names(type_.key):
            pairs = [
                self._join("[", [self.value(type_.key, key), self.value(type_.value, each)], "]")
                for key, each in value.items()
            ]
            return self._join("[", pairs, "]")
        types = dict(type_.fields) if isinstance(type_, Record) else {}
        other = type_.value if isinstance(type_, MapOf) else None
        return self._object({str(name): self.value(types.get(name, other), each) for name, each in value.items()})

    def _object(self, members: Mapping[str, str]) -> str:
        return self._join("{", [f"{self._string(name)}:{text}" for name, text in members.items()], "}")

    def _join(self, opening: str, texts: Sequence[str], closing: str) -> str:
        space = self._chance.choice(("", "", "", " ", "\n\t"))
        return f"{opening}{space}{f',{space}'.join(texts)}{space}{closing}"

    def _decimal(self, value: Decimal) -> str:
        if not value.is_finite():
            return json_string(str(value))
        text = f"{value:f}" if abs(cast(int, value.as_tuple().exponent)) < 2000 else str(value)
        if self._chance.random() < _EXPONENT_SHARE:
            text = f"{value:e}".replace("e", self._chance.choice("eE"))
        return text if self._chance.random() < _NUMBER_SHARE else json_string(text)

    def _string(self, text: str) -> str:
        is_escaped = len(text) <= _MAX_ESCAPED and self._chance.random() < _ESCAPED_SHARE
        if is_escaped or has_surrogate(text):
            units = text.encode("utf-16-be", "surrogatepass")
            return '"' + "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2)) + '"'
        return json_string(text)
