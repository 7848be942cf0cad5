"""Tests of a DMN model as data: the format of the DMN TCK."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from vesper.importers.dmn.xml_reader import Element, XmlProblem, read_xml


@dataclass(frozen=True, slots=True)
class Temporal:
    """A date, time or duration of a test, as text."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class TestCase:
    """A case: inputs by name, and the expected value of one decision."""

    __test__ = False

    name: str
    service: str
    """Name of the decision service that the case invokes; empty for a decision."""
    inputs: dict[str, Any]
    decision: str
    expected: Any
    is_error: bool
    line: int


def read_cases(path: Path) -> tuple[str, list[TestCase]]:
    """Return the name of the model's file and the cases. Raises `XmlProblem`."""
    root = read_xml(path)
    if root.tag != "testCases":
        raise XmlProblem(f"{path.as_posix()} has no test cases")
    model = root.first("modelName")
    found = []
    for case in root.all("testCase"):
        inputs = {each.get("name"): read_value(each) for each in case.all("inputNode")}
        service = case.get("invocableName") if case.get("type") == "decisionService" else ""
        for result in case.all("resultNode"):
            expected = result.first("expected")
            value = None if expected is None else read_value(expected)
            is_error = result.get("errorResult") == "true"
            name = f"{path.stem} {case.get('id')} {result.get('name')}"
            found.append(TestCase(name, service, inputs, result.get("name"), value, is_error, result.line))
    return "" if model is None else model.text.strip(), found


def read_value(element: Element) -> Any:
    """Return the value below an element: a value, a list, or components."""
    components = element.all("component")
    if components:
        return {each.get("name"): read_value(each) for each in components}
    items = element.first("list")
    if items is not None:
        return [read_value(each) for each in items.all("item")]
    value = element.first("value")
    return None if value is None else _scalar(value)


def _scalar(value: Element) -> Any:
    if value.get("xsi:nil") == "true":
        return None
    kind = value.get("xsi:type").rpartition(":")[2]
    text = value.text
    match kind:
        case "decimal" | "double" | "integer" | "int" | "long" | "float":
            try:
                return Decimal(text.strip())
            except InvalidOperation:
                return text
        case "boolean":
            return text.strip() == "true"
        case "date" | "time" | "dateTime" | "duration" | "dayTimeDuration" | "yearMonthDuration":
            return Temporal(kind, text.strip())
    return text
